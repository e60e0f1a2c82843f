"""The messages and methods of the kubelet's gRPC APIs.

One module per API: its messages are classes, its services hold their methods
(``device_plugin.DevicePlugin.Allocate``). The ``.proto`` files are the source; the descriptors
(``.binpb``) and the stubs (``.pyi``) beside them are made by ``tools/generate_wire.py``.
Knows nothing of partita.
"""
