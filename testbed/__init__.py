"""A real Kubernetes on one Linux machine, for tests: built once, up in seconds, then gone.

The three Go modules beside this file pin what is built; the Python modules build and run it. They
share one folder because neither is of use without the other; nothing here ships with partita.

``programs`` builds, ``isolation`` makes the namespaces, ``cluster`` runs Kubernetes inside them.
"""
