"""The device plugin API, package ``v1beta1``; what is in it says ``device_plugin.proto``."""

from partita.wire import descriptors

_API = descriptors.load("device_plugin")

__all__ = list(_API)

globals().update(_API)
