"""The kubelet's ``kubelet_internal_checkpoint``: which device each container was given.

No object of the API says it. The file lies in ``/var/lib/kubelet/device-plugins`` of a node and
does not name the node. ``DeviceIDs`` is a mapping by NUMA node; old kubelets wrote a list.
Source: Kubernetes, ``pkg/kubelet/cm/devicemanager/checkpoint``. The checksum is over Go's memory
layout and is not verified; what a device plugin answered (``AllocResp``) is not needed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from partita.config.untyped import Untyped
from partita.model import resource
from partita.model.report import DeviceClaim, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "copy /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint to NODE.checkpoint.json"


def recognises(value: object) -> bool:
    """Tell whether a document looks like the checkpoint."""
    return isinstance(value, dict) and "Data" in value and "Checksum" in value


def read(document: Untyped, *, node: str) -> Observation:
    """Return the claims on NVIDIA's devices of one node.

    Raises:
        InputError: When an entry lacks a field or a value has the wrong type.
    """
    hinted = replace(document, hint=HINT, where="checkpoint")
    entries = hinted.need("Data").get("PodDeviceEntries")
    claims, foreign = [], Counter[str]()
    for entry in entries.elements() if entries is not None else ():
        name = entry.need("ResourceName").name()
        if not name.startswith(resource.DOMAIN):
            foreign[name] += 1
            continue
        claims.append(
            DeviceClaim(
                node=node,
                pod_uid=entry.need("PodUID").name(),
                container=entry.need("ContainerName").name(),
                resource=name,
                device_ids=tuple(_devices(entry.get("DeviceIDs"))),
            )
        )
    notes = [f"node {node}: skipped devices of resource {name}: {n}" for name, n in foreign.items()]
    if not claims:
        notes.append(f"node {node}: the kubelet remembers no NVIDIA device that a pod holds")
    return Observation(claims=tuple(claims), checkpoints=frozenset({node}), notes=tuple(notes))


def _devices(listed: Untyped | None) -> Iterator[str]:
    if listed is None:
        return
    if isinstance(listed.value, list):
        yield from (device.name() for device in listed.elements())
        return
    for _numa_node, devices in listed.items():  # noqa: PERF102 - no dict
        yield from (device.name() for device in devices.elements())
