"""What a kernel did: its counts, line by line, its accesses, and what the model makes of them."""
