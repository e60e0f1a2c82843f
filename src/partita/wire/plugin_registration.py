"""The plugin registration API; what is in it says ``plugin_registration.proto``."""

from partita.wire import descriptors

_API = descriptors.load("plugin_registration")

__all__ = list(_API)

globals().update(_API)
