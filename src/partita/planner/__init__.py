"""What stands, what is wanted, and the exact steps between: pure functions over values.

No I/O, no clock, no randomness, no logging. ``inventory`` concludes what stands from reports;
``plan`` holds the result; ``solver`` finds it; ``steps`` orders it.
"""
