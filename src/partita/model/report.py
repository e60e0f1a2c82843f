"""What single sources say of GPUs, before anything is concluded from it.

Adapters fill these; ``inventory.assembly`` merges them into a fleet.
"""

from dataclasses import dataclass

from partita.model.gpu import ComputeInstance, MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Pod

__all__ = ["DeviceClaim", "GpuReport", "InstanceReport", "NodeReport", "Observation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReport:
    """A GPU instance as one source shows it. Unknown is None.

    Attributes:
        profile: Profile name, for example ``1g.10gb+me``.
        profile_id: Profile id as ``-lgi`` prints it (19, 14, 9 …).
        instance_id: GPU-instance id.
        placement: Where it stands.
        memory_mib: Its memory.
        decoder_count: Decoders it shows; tells profiles of equal memory apart.
        copy_engine_count: Copy engines it shows; likewise.
        jpeg_count: JPEG engines it shows; likewise.
        ofa_count: Optical-flow engines it shows; likewise.
        compute_instances: What it is split into.
        process_ids: Processes on it, host PIDs.
        used_memory_mib: Memory in use on it, None also where the source has no such reading.
        used_unreadable: Whether the source has that reading, but it could not be read.
        processes_unreadable: Whether a process on it may be there whose id cannot be read.
    """

    profile: str | None = None
    profile_id: int | None = None
    instance_id: int | None = None
    placement: Placement | None = None
    memory_mib: int | None = None
    decoder_count: int | None = None
    copy_engine_count: int | None = None
    jpeg_count: int | None = None
    ofa_count: int | None = None
    compute_instances: tuple[ComputeInstance, ...] = ()
    process_ids: tuple[int, ...] = ()
    used_memory_mib: int | None = None
    used_unreadable: bool = False
    processes_unreadable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """A GPU as one source shows it. Unknown is None.

    Attributes:
        index: NVML index (order of the file when the source prints none).
        product: Product name.
        pci_device: PCI device and vendor id as NVML prints it, for example ``0x20B210DE``.
        uuid: ``GPU-…``.
        mig_mode: Current MIG mode.
        pending_mig_mode: Pending MIG mode.
        instances: GPU instances; None = the source does not list them.
        process_ids: Processes on the GPU that no instance is said of, host PIDs.
        used_memory_mib: Memory in use, None also where the source has no such reading.
        used_unreadable: Whether the source has that reading, but it could not be read.
        processes_unreadable: Whether a process may be on it whose id cannot be read.
        memory_mib: Total memory.
        reserved_memory_mib: Memory the driver keeps.
        replicas: Time-sliced replicas it is served as, 1 = not shared (fleet file only).
        problem: What the source says is wrong (``GPU is lost``, ``Unknown Error`` …).
    """

    index: int
    product: str | None = None
    pci_device: str | None = None
    uuid: str | None = None
    mig_mode: MigMode | None = None
    pending_mig_mode: MigMode | None = None
    instances: tuple[InstanceReport, ...] | None = None
    process_ids: tuple[int, ...] = ()
    used_memory_mib: int | None = None
    used_unreadable: bool = False
    processes_unreadable: bool = False
    memory_mib: int | None = None
    reserved_memory_mib: int | None = None
    replicas: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The GPUs of one node as one source shows them.

    Attributes:
        node: Node name (from the file name when the source does not say it).
        source: The file, as the user named it.
        gpus: One report per GPU.
        driver_version: Driver version, None when unknown.
        complete: Whether the file tells who holds what on the node as well (fleet file only).
    """

    node: str
    source: str
    gpus: tuple[GpuReport, ...]
    driver_version: str | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """Devices that a container of a pod was given, as the kubelet of a node remembers it.

    A claim may outlive its pod: the kubelet forgets finished pods only when it allocates again.

    Attributes:
        node: Node name.
        pod_uid: ``metadata.uid`` of the pod.
        container: Name of the container.
        resource: Resource the devices were asked for by, for example ``nvidia.com/mig-1g.5gb``.
        device_ids: ``GPU-…``, ``MIG-…`` or, shared, ``GPU-…::<replica>``, as the device plugin
            names them.
    """

    node: str
    pod_uid: str
    container: str
    resource: str
    device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that one file said.

    Attributes:
        nodes: Node objects.
        reports: GPU reports of nodes.
        pods: Pods that ask for GPU resources.
        pod_namespaces: Namespaces of all pods in its lists of pods, also of pods without GPU;
            None = it has no list of pods, so that a pod that is not in it may well run.
        claims: Devices that pods were given.
        checkpoints: Nodes whose kubelet tells all claims of the node, also when there are none.
        notes: What the reader skipped or could not use, in words for the user.
    """

    nodes: tuple[Node, ...] = ()
    reports: tuple[NodeReport, ...] = ()
    pods: tuple[Pod, ...] = ()
    pod_namespaces: frozenset[str] | None = None
    claims: tuple[DeviceClaim, ...] = ()
    checkpoints: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
