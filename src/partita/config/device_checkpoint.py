"""The kubelet's ``kubelet_internal_checkpoint``: which device it keeps for which container.

``DeviceIDs`` is a mapping by NUMA node; old kubelets wrote a list. Source: Kubernetes,
``pkg/kubelet/cm/devicemanager/checkpoint``. The checksum is over Go's memory layout and is not
verified; what a device plugin answered (``AllocResp``) is not needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from partita.config.untyped import Untyped

__all__ = ["CheckpointEntry", "entries", "read_entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """The devices of one resource that are kept for one container.

    Attributes:
        pod_uid: UID of the pod.
        container: Name of the container.
        resource: Resource name.
        device_ids: Device IDs.
    """

    pod_uid: str
    container: str
    resource: str
    device_ids: tuple[str, ...]


def entries(document: Untyped) -> Iterator[tuple[str, Untyped]]:
    """Yield resource name and entry; ``read_entry`` reads it.

    Raises:
        InputError: When it is no checkpoint.
    """
    listed = document.need("Data").get("PodDeviceEntries")
    for entry in listed.elements() if listed is not None else ():
        yield entry.need("ResourceName").name(), entry


def read_entry(entry: Untyped, device_id: Callable[[Untyped], str]) -> CheckpointEntry:
    """Return what an entry says; device IDs are whatever ``device_id`` takes.

    Raises:
        InputError: When a field is missing or a value has the wrong type.
    """
    return CheckpointEntry(
        pod_uid=entry.need("PodUID").name(),
        container=entry.need("ContainerName").name(),
        resource=entry.need("ResourceName").name(),
        device_ids=tuple(map(device_id, _devices(entry.get("DeviceIDs")))),
    )


def _devices(listed: Untyped | None) -> Iterator[Untyped]:
    if listed is None:
        return
    if isinstance(listed.value, list):
        yield from listed.elements()
        return
    for _numa_node, devices in listed.items():  # noqa: PERF102 - no dict
        yield from devices.elements()
