"""The nouns: frozen values that every other layer speaks in. No I/O, no decisions."""
