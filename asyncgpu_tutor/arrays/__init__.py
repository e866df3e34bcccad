"""Arrays on a device, and host arrays that a copy is still writing: handles, and who may use them."""
