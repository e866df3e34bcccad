"""What a kernel costs: charges for its code (`walk`), and counts of what ran (`tally`, `counts`)."""
