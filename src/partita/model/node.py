"""A node of the cluster, with what its scheduler-visible object says."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Node", "Taint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint. Only ``NoSchedule`` and ``NoExecute`` keep a pod away.

    Attributes:
        key: Taint key.
        value: Taint value, empty when none.
        effect: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``.
    """

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a node object says.

    Attributes:
        name: Node name.
        labels: Node labels.
        annotations: Node annotations.
        capacity: Extended resources under ``nvidia.com/`` that the kubelet has ever heard of.
        allocatable: The same resources as far as pods may be bound to them now. This counts.
        taints: Taints that keep pods away.
        schedulable: False when the node is cordoned or not ready.
        reason: Why it is not schedulable, None when it is.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True
    reason: str | None = None
