"""The text of a source: its places, words, macros and numbers."""
