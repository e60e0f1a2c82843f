"""The command line: the only place that builds and connects real objects."""
