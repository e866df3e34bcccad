"""The text of a source: what of it is for the device, its places, words, macros and numbers."""
