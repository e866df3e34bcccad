"""Asynchronous GPU programming in Python, taught."""
