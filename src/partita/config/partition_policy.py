"""``PartitionPolicy``: what an operator wants of a set of GPUs (``partita.dev/v1alpha1``)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "API_VERSION",
    "KIND",
    "BudgetEnforcement",
    "ConfigMapRef",
    "Follow",
    "GpuSelector",
    "MigParameters",
    "PartitionPolicy",
    "SharedResource",
    "SharingParameters",
    "Strategy",
    "Via",
]

API_VERSION = "partita.dev/v1alpha1"
KIND = "PartitionPolicy"


class Strategy(Enum):
    """How the selected GPUs are served."""

    WHOLE = "Whole"
    MIG = "MIG"
    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"
    AUTO = "Auto"


class Follow(Enum):
    """Whether the cut follows what pods ask for, or stays as written."""

    DEMAND = "Demand"
    FIXED = "Fixed"


class BudgetEnforcement(Enum):
    """What happens to a pod that exceeds its memory budget on a time-sliced GPU."""

    OFF = "Off"
    WARN = "Warn"
    EVICT = "Evict"


class Via(Enum):
    """Who carries the policy out."""

    PARTITA = "partita"
    NVIDIA_OPERATOR = "nvidia-operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSelector:
    """Which GPUs of a selected node are meant; an empty list does not restrict.

    Attributes:
        models: Catalogue ids or product names.
        indices: NVML indices.
        uuids: GPU UUIDs.
    """

    models: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigParameters:
    """Parameters of the ``MIG`` strategy (and of the MIG part of ``Auto``).

    Attributes:
        layout: Profile → count on every selected GPU. Needed under ``follow: Fixed``; an empty
            layout means MIG on without instances.
        profiles: Profiles that may be created under ``follow: Demand``; empty = all.
        allow_reset: Whether a GPU reset for a mode change (Ampere) is allowed. Default false: it
            stops everything on that GPU.
    """

    layout: Mapping[str, int] | None = None
    profiles: tuple[str, ...] = ()
    allow_reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResource:
    """One resource that is served several times over.

    Attributes:
        name: Full resource name, for example ``nvidia.com/gpu``.
        replicas: Replicas of each device of it, 2 or more.
    """

    name: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingParameters:
    """Parameters of the ``TimeSlicing`` and ``MPS`` strategies.

    Attributes:
        resources: What is shared how often.
        rename_by_default: Whether the shared resource gets the suffix ``.shared``.
        fail_requests_greater_than_one: Whether a container asking for more than one replica is
            refused; None = the default of the strategy (false for time-slicing, true for MPS).
    """

    resources: tuple[SharedResource, ...]
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMapRef:
    """A ConfigMap in NVIDIA's device-plugin format that stands in for the parameters.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        key: Which of its configs, None = the only one.
    """

    namespace: str
    name: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPolicy:
    """A policy document.

    Attributes:
        name: ``metadata.name``.
        strategy: How the selected GPUs are served.
        node_selector: Labels a node must have; empty = every node with GPUs.
        gpu_selector: Which of its GPUs.
        follow: Demand or Fixed.
        mig: Parameters under MIG and Auto.
        time_slicing: Parameters under TimeSlicing and Auto.
        mps: Parameters under MPS.
        budget: Budget enforcement.
        config_map_ref: Where the parameters are instead, None when they are here.
        via: Who carries it out.
    """

    name: str
    strategy: Strategy
    node_selector: Mapping[str, str] = field(default_factory=dict)
    gpu_selector: GpuSelector = field(default_factory=GpuSelector)
    follow: Follow = Follow.DEMAND
    mig: MigParameters = field(default_factory=MigParameters)
    time_slicing: SharingParameters | None = None
    mps: SharingParameters | None = None
    budget: BudgetEnforcement = BudgetEnforcement.WARN
    config_map_ref: ConfigMapRef | None = None
    via: Via = Via.PARTITA
