"""Traces of others: Nsight Systems, Perfetto, Chrome, and the recordings that are shipped."""
