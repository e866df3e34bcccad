"""The memories of a kernel, and what is checked at each access.

A pointer (`pointers`) leads into a region: global, shared, of each thread, or of several kinds at once
(`access`). A region checks bounds and alignment (`names`), what nobody wrote, and who else was there
(`races`).
"""
