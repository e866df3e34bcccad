"""The simulated device held against an H200: what was recorded there, and what the model says of it."""
