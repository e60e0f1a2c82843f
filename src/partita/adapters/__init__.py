"""Readers of outside formats: each turns one file into an ``Observation``. They translate only."""
