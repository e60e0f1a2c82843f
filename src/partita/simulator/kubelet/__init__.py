"""A kubelet without a cluster: its device manager in memory, and the real protocols on top.

``device_manager`` and what it stands on decide everything, without I/O, clock or threads.
``in_memory`` speaks our ports to it; ``server`` speaks gRPC on sockets in one folder. The facts it
is held to run over a real kubelet of Kubernetes 1.37 as well.
"""
