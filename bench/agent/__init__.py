"""How fast and light the node agent is, beside the least there is: ``python -m bench.agent``."""
