"""Which measure of future requests should break ties: ``python -m bench.future``."""
