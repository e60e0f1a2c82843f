"""What holds for all tests."""

from hypothesis import settings

# A test says what is true, not how fast: on a loaded machine any example may take a second.
settings.register_profile("partita", deadline=None)
settings.load_profile("partita")
