"""What the program needs of the outside, as protocols that speak the model's nouns."""
