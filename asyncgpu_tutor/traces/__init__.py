"""What you see: spans, the formats that they come and go in, what is read out of them, and their pictures."""
