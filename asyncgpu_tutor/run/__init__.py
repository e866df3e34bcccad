"""One run of one operation: the current device and policy, submissions, captures, futures, recordings."""
