"""The node agent: observes, decides, acts, verifies. Decides purely; acts through ports."""
