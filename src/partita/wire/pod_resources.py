"""The PodResources API, package ``v1``; what is in it says ``pod_resources.proto``."""

from partita.wire import descriptors

_API = descriptors.load("pod_resources")

__all__ = list(_API)

globals().update(_API)
