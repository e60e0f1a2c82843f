"""What the kubelet of this node says about who holds which device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Holding", "Kubelet", "Remembered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A device that a container of an active pod holds.

    Attributes:
        namespace: Namespace of the pod.
        pod: Name of the pod.
        container: Name of the container.
        resource: Resource name; the name of the driver when it is held through a claim (DRA).
        device_id: Device ID; ``pool/device`` when it is held through a claim.
        claimed: Whether it is held through a claim.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str
    claimed: bool = False

    @property
    def holder(self) -> str:
        """``namespace/pod``."""
        return f"{self.namespace}/{self.pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A device that the kubelet keeps for a container, as it wrote to its checkpoint.

    Attributes:
        pod_uid: UID of the pod.
        container: Name of the container.
        resource: Resource name.
        device_id: Device ID.
    """

    pod_uid: str
    container: str
    resource: str
    device_id: str


class Kubelet(Protocol):
    """The reading side of a kubelet. Every method raises ``KubeletError`` when it gives no answer.

    ``holdings`` alone proves nothing: right after a restart of the kubelet it is empty although
    pods hold devices. The checkpoint is complete at all times, but names pods that have ended
    until it is written again, which each list of devices that a plugin sends brings about
    (Kubernetes 1.34 to 1.37, ``pkg/kubelet/cm/devicemanager``). So a device is free when
    ``holdings``, asked first, and then a checkpoint of after a newly sent list both lack it.
    """

    async def holdings(self) -> Sequence[Holding]:
        """Return the devices that active pods hold. The kubelet also lets go of ended pods'."""

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """Return by resource the device IDs that the kubelet may give to pods, held or not."""

    async def held_by(self, namespace: str, pod: str) -> frozenset[str]:
        """Return the device IDs that one pod holds now; empty when there is no such pod.

        Unlike ``holdings`` this changes nothing in the kubelet.
        """

    async def remembered(self) -> Sequence[Remembered]:
        """Return the kubelet's checkpoint; empty when it has never written one."""
