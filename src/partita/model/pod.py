"""A pod as far as GPUs are concerned: what it asks for, where it may run, where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["NodeRequirement", "Phase", "Pod", "Toleration"]


class Phase(Enum):
    """Pod phase; only what holds or may hold a slice matters."""

    PENDING = "Pending"
    RUNNING = "Running"
    FINISHED = "Finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A pod's toleration of node taints.

    Attributes:
        key: Taint key, empty = every key (with operator ``Exists``).
        operator: ``Exists`` or ``Equal``.
        value: Compared under ``Equal``.
        effect: Taint effect, empty = every effect.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirement:
    """One expression of required node affinity.

    Attributes:
        key: Node label.
        operator: ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``.
        values: Values to compare with.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod that asks for GPU slices.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        uid: ``metadata.uid``, None when unknown.
        requests: Count per ``nvidia.com/…`` resource, summed over containers; all on one node.
        memory_mib: GPU memory it says it needs (fleet file only), None when it says nothing.
        node: Node it is bound to, None while pending.
        gpu_index: GPU it is known to hold on that node, None when unknown.
        placement_start: Start of the MIG placement it is known to hold, None when unknown.
        phase: Its phase.
        priority: ``spec.priority``; higher goes first.
        created: Creation time as RFC 3339 text (it sorts by age), None when unknown.
        node_selector: Labels its node must have.
        node_affinity: Required node affinity: one of the outer terms must hold, each with all of
            its expressions; empty = no requirement.
        tolerations: Tolerated taints.
    """

    namespace: str
    name: str
    requests: Mapping[str, int]
    uid: str | None = None
    memory_mib: int | None = None
    node: str | None = None
    gpu_index: int | None = None
    placement_start: int | None = None
    phase: Phase = Phase.PENDING
    priority: int = 0
    created: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
