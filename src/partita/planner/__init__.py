"""What is wanted of what stands, and the exact steps to it: pure functions over values."""
