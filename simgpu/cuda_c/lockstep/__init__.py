"""All threads at once: which of them execute, what they compute, and the state of a batch of blocks."""
