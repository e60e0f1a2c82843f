"""What a kubelet writes to ``kubelet_internal_checkpoint``, as values and as the document.

Source: Kubernetes 1.37, ``pkg/kubelet/cm/devicemanager/checkpoint``. The real checksum is over
Go's way to print the structure; the one here is 0, and a real kubelet would refuse the file.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NO_NUMA_NODE", "Checkpoint", "Entry"]

NO_NUMA_NODE = -1
"""Stands for the NUMA node of a device that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The devices of one resource that a container was given.

    Attributes:
        pod_uid: UID of the pod.
        container: Name of the container.
        resource: Resource name.
        by_node: NUMA node → device IDs; a device of several nodes is with each.
        answer: What the plugin answered, serialised.
        devices: Every device ID once.
    """

    pod_uid: str
    container: str
    resource: str
    by_node: Mapping[int, tuple[str, ...]]
    answer: bytes = b""
    devices: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the devices, which are looked at far more often than they are given."""
        devices = frozenset(one for listed in self.by_node.values() for one in listed)
        object.__setattr__(self, "devices", devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that outlives a kubelet.

    Attributes:
        entries: What containers were given.
        registered: Resource name → its healthy devices.
    """

    entries: tuple[Entry, ...] = ()
    registered: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return it as the kubelet's JSON: no entries are ``null``, NUMA nodes are text."""
        entries = [
            {
                "PodUID": entry.pod_uid,
                "ContainerName": entry.container,
                "ResourceName": entry.resource,
                "DeviceIDs": {str(node): list(ids) for node, ids in entry.by_node.items()},
                "AllocResp": base64.b64encode(entry.answer).decode(),
            }
            for entry in self.entries
        ]
        registered = {name: sorted(devices) for name, devices in self.registered.items()}
        data = {"PodDeviceEntries": entries or None, "RegisteredDevices": registered}
        return {"Data": data, "Checksum": 0}

    @staticmethod
    def parse(document: Mapping[str, Any]) -> "Checkpoint":
        """Return what ``document`` made a document of."""
        data = document["Data"]
        entries = tuple(
            Entry(
                pod_uid=entry["PodUID"],
                container=entry["ContainerName"],
                resource=entry["ResourceName"],
                by_node={int(node): tuple(ids) for node, ids in entry["DeviceIDs"].items()},
                answer=base64.b64decode(entry["AllocResp"]),
            )
            for entry in data["PodDeviceEntries"] or ()
        )
        registered = data["RegisteredDevices"]
        return Checkpoint(
            entries=entries,
            registered={name: frozenset(devices) for name, devices in registered.items()},
        )
