"""The memories of a kernel, and what is checked at each access."""
