"""Translators between the outside and our nouns: files of others, and the GPU driver."""
