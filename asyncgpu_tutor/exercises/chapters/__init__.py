"""The exercises, one file a chapter: what each one checks, its hints, and why the solution is right."""
