"""The simulated world: product code with the true rules, without any hardware.

What stands here refuses what the real thing refuses, with the same failure, and is built to pass
the same contract suites. It also refuses worlds that cannot be (``ImpossibleWorldError``), so a
demonstration or a test never rests on one.
"""
