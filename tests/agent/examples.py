"""GPUs, devices and observations as values, for tests of the pure parts of the agent."""

from collections.abc import Mapping

from partita.agent.decision import Decision, Phase
from partita.agent.observation import KubeletEvidence, Observation
from partita.agent.presence import Device
from partita.agent.serving_rules import Family
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.model.slice import Slice
from partita.ports.gpu_driver import DriverGpu, DriverInstance, MigDevice
from partita.ports.kubelet import Holding, Remembered
from partita.ports.slice_server import OfferedSlice

GIB = 1 << 30
GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
SMALL = "nvidia.com/mig-1g.5gb"

PROFILE_IDS: Mapping[str, int] = {"1g.5gb": 19, "2g.10gb": 14, "3g.20gb": 9, "7g.40gb": 0}
"""Of the A100 with 40 GB."""


def a100(
    index: int = 0,
    *,
    mode: MigMode = MigMode.OFF,
    pending: MigMode | None = None,
    instances: tuple[DriverInstance, ...] = (),
) -> DriverGpu:
    """Return an A100 with 40 GB, its driver well and without needs."""
    return DriverGpu(
        uuid=f"GPU-{index}",
        index=index,
        minor=index,
        product="NVIDIA A100-SXM4-40GB",
        pci_device="0x20B010DE",
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        numa_node=0,
        memory_bytes=40 * GIB,
        mig_mode=mode,
        pending_mig_mode=pending if pending is not None else mode,
        instances=instances,
    )


def instance(
    instance_id: int,
    start: int,
    profile: str = "1g.5gb",
    *,
    size: int = 1,
    devices: tuple[str, ...] | None = None,
) -> DriverInstance:
    """Return an instance of an A100, with one MIG device ``MIG-<id>`` unless told otherwise."""
    names = devices if devices is not None else (f"MIG-{instance_id}",)
    return DriverInstance(
        instance_id=instance_id,
        profile_id=PROFILE_IDS[profile],
        placement=Placement(start=start, size=size),
        mig_devices=tuple(
            MigDevice(uuid=name, index=number, compute_instance_id=number)
            for number, name in enumerate(names)
        ),
    )


def device(family: Family | None, *, uuid: str = "GPU-0", memory_mib: int | None = None) -> Device:
    """Return a device of the first GPU."""
    pattern = Slice(device_id=uuid, resource="", gpu_uuid="GPU-0", gpu_index=0)
    return Device(pattern=pattern, family=family, memory_mib=memory_mib)


def offered(  # noqa: PLR0913 - a value with many facets
    device_id: str,
    *,
    resource: str = GPU,
    gpu: int = 0,
    instance_id: int | None = None,
    numa_node: int | None = None,
    usable: bool = True,
    leaving: bool = False,
) -> OfferedSlice:
    """Return a slice in an offer; the slot follows from the device ID."""
    _, shared, slot = device_id.partition("::")
    return OfferedSlice(
        slice=Slice(
            device_id=device_id,
            resource=resource,
            gpu_uuid=f"GPU-{gpu}",
            gpu_index=gpu,
            instance_id=instance_id,
            slot=int(slot) if shared else None,
            numa_node=numa_node,
        ),
        usable=usable,
        leaving=leaving,
    )


def holding(device_id: str, *, resource: str = GPU, pod: str = "train") -> Holding:
    """Return a device that a pod of the namespace ``lab`` holds."""
    return Holding(
        namespace="lab", pod=pod, container="main", resource=resource, device_id=device_id
    )


def remembered(device_id: str, *, resource: str = GPU, uid: str = "uid-1") -> Remembered:
    """Return an entry of the kubelet's checkpoint."""
    return Remembered(pod_uid=uid, container="main", resource=resource, device_id=device_id)


def look(
    *gpus: DriverGpu, at: float = 100.0, kubelet: KubeletEvidence | None = None
) -> Observation:
    """Return a look at GPUs without processes, and at a kubelet that knows nothing unless told."""
    return Observation(
        at=at,
        kubelet=kubelet if kubelet is not None else KubeletEvidence(),
        gpus=gpus,
        processes={gpu.uuid: () for gpu in gpus if gpu.failure is None},
    )


def phase(decision: Decision, number: int = 0) -> tuple[Phase, str | None]:
    """Return phase and reason of a GPU, by its place in the list."""
    state = list(decision.states.values())[number]
    return state.phase, state.reason


def slices(decision: Decision, gpu: str | None = None) -> list[OfferedSlice]:
    """Return what is offered, of one GPU or of all."""
    assert decision.offers is not None
    every = (one for offer in decision.offers for one in offer.slices)
    return [one for one in every if gpu in (None, one.slice.gpu_uuid)]


def usable(decision: Decision, gpu: str | None = None) -> list[str]:
    """Return the device IDs that new pods may get."""
    return [one.slice.device_id for one in slices(decision, gpu) if one.usable]
