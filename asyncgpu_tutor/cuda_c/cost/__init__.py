"""What a kernel costs: charges for its code (`walk`), and counts, such as of bank conflicts (`tally`)."""
