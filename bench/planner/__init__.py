"""How good and how fast plans are, beside HiGHS on the same fleets: ``python -m bench.planner``."""
