"""A slice: what one container gets of a GPU, and how the kubelet knows it."""

from dataclasses import dataclass

__all__ = ["SEPARATOR", "Slice", "device_of", "slot_id"]

SEPARATOR = "::"
"""Stands between the UUID of a device and the number of one of its shared slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A whole GPU, a MIG device, or a shared slot of either.

    Attributes:
        device_id: What the kubelet calls it: ``GPU-…``, ``MIG-…``, or ``<UUID>::<slot>``.
        resource: Resource name it is served as.
        gpu_uuid: GPU it is of.
        gpu_index: NVML index of that GPU.
        minor: Minor number of the GPU's device node, None when unknown.
        instance_id: GPU instance it is of, None outside of MIG.
        compute_instance_id: Compute instance it is, None outside of MIG or when unknown.
        mig_index: NVML index of the MIG device on its GPU, None outside of MIG or when unknown.
        slot: Number of the shared slot, None when it is not shared.
        numa_node: NUMA node of the GPU, None when unknown.
        budget_mib: Memory it may use, None when unknown.
    """

    device_id: str
    resource: str
    gpu_uuid: str
    gpu_index: int
    minor: int | None = None
    instance_id: int | None = None
    compute_instance_id: int | None = None
    mig_index: int | None = None
    slot: int | None = None
    numa_node: int | None = None
    budget_mib: int | None = None

    @property
    def device(self) -> str:
        """UUID of the GPU or MIG device, without the slot."""
        return device_of(self.device_id)


def slot_id(device: str, slot: int) -> str:
    """Return the device ID of a shared slot: ``GPU-…::3``."""
    return f"{device}{SEPARATOR}{slot}"


def device_of(device_id: str) -> str:
    """Return the UUID of the device that a device ID is of: ``GPU-…::3`` → ``GPU-…``."""
    return device_id.split(SEPARATOR, 1)[0]
