"""What a kernel costs: charges for its code, and counts of what ran."""
