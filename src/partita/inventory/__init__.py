"""What stands: partial sources merged into one fleet, with nothing guessed to be free."""
