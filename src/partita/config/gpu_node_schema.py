"""The table of a ``GPUNode``: its keys, their types, and which section belongs to which layout."""

from collections.abc import Mapping
from enum import Enum

from partita.config import condition_document, policy_schema
from partita.config.schema import (
    Choice,
    Field,
    Flag,
    ListOf,
    Moment,
    Record,
    Rule,
    Text,
    Whole,
)
from partita.model.agent_status import AgentStatus, GpuStatus, ResourceStatus, SliceStatus
from partita.model.gpu import MigMode
from partita.model.gpu_node import (
    GpuNode,
    MigLayout,
    PlacedProfile,
    SharedDevices,
    TimeSlicedLayout,
    WantedGpu,
)

__all__ = ["KIND", "OVERLAP", "SECTIONS", "SPEC", "STATUS", "LayoutKind"]

KIND = "GPUNode"
_MOST_GPUS = 64  # bounds what the API server may spend on rules; no node has as many
_MOST_INSTANCES = 32  # likewise; no GPU has more than 8
_MIG_RESOURCE = r"^nvidia\.com/mig-[0-9]+g\.[0-9]+gb(\.[a-z]+)*(-[a-z]+)?$"


class LayoutKind(Enum):
    """How a GPU is cut."""

    WHOLE = "Whole"
    MIG = "MIG"
    TIME_SLICING = "TimeSlicing"


SECTIONS: Mapping[LayoutKind, str] = {
    LayoutKind.MIG: "mig",
    LayoutKind.TIME_SLICING: "timeSlicing",
}
"""The section that a layout needs and that no other layout may have."""

OVERLAP = Rule(
    expression=(
        "self.all(a, self.all(b, a.start == b.start"
        " || a.start + a.size <= b.start || b.start + b.size <= a.start))"
    ),
    message="two instances take the same memory slice",
)
"""Instances stand side by side; equal starts are excluded by the list's key."""


def _section_rule(kind: LayoutKind, key: str) -> Rule:
    return Rule(
        expression=f"(self.layout == '{kind.value}') == has(self.{key})",
        message=f"{key} belongs to layout {kind.value}, and only to it",
    )


_INSTANCE = Record(
    of=PlacedProfile,
    fields={
        "profile": Field(kind=Text(pattern=policy_schema.PROFILE), required=True),
        "start": Field(kind=Whole(at_least=0), required=True, meaning="Its first memory slice."),
        "size": Field(
            kind=Whole(at_least=1), required=True, meaning="How many memory slices it takes."
        ),
    },
)
_SHARED = Record(
    of=SharedDevices,
    fields={
        "name": Field(kind=Text(pattern=_MIG_RESOURCE), required=True),
        "replicas": Field(kind=Whole(at_least=2), required=True),
    },
)
_MIG = Record(
    of=MigLayout,
    fields={
        "instances": Field(
            kind=ListOf(item=_INSTANCE, keys=("start",), at_most=_MOST_INSTANCES, rules=(OVERLAP,)),
            required=True,
        ),
        "shared": Field(kind=ListOf(item=_SHARED, keys=("name",), at_most=_MOST_INSTANCES)),
        "renamed": Field(kind=Flag()),
        "oneEach": Field(kind=Flag()),
    },
)
_TIME_SLICING = Record(
    of=TimeSlicedLayout,
    fields={
        "replicas": Field(kind=Whole(at_least=2), required=True),
        "renamed": Field(kind=Flag()),
        "oneEach": Field(kind=Flag()),
    },
)
_WANTED = Record(
    of=WantedGpu,
    fields={
        "uuid": Field(kind=Text(at_least=1), required=True),
        "layout": Field(kind=Choice(members=LayoutKind), required=True),
        "mig": Field(kind=_MIG, meaning="The layout MIG: MIG on, with these instances only."),
        "timeSlicing": Field(
            kind=_TIME_SLICING,
            meaning="The layout TimeSlicing: MIG off, and the GPU served several times over.",
        ),
        "mayReset": Field(kind=Flag()),
        "policy": Field(kind=Text()),
    },
    rules=tuple(_section_rule(kind, key) for kind, key in SECTIONS.items()),
)

SPEC = Record(
    of=GpuNode,
    fields={"gpus": Field(kind=ListOf(item=_WANTED, keys=("uuid",), at_most=_MOST_GPUS))},
)
"""What the controller or ``partita apply`` writes."""

_SLICE = Record(
    of=SliceStatus,
    fields={
        "deviceId": Field(kind=Text(at_least=1), required=True),
        "resource": Field(kind=Text(at_least=1), required=True),
        "profile": Field(kind=Text()),
        "placement": Field(kind=Text(pattern=r"^[0-9]+:[0-9]+$")),
        "usable": Field(kind=Flag(), required=True),
        "leaving": Field(kind=Flag()),
        "holders": Field(kind=ListOf(item=Text())),
        "budgetMib": Field(kind=Whole(at_least=0)),
    },
)
_GPU = Record(
    of=GpuStatus,
    fields={
        "index": Field(kind=Whole(at_least=0), required=True),
        "uuid": Field(kind=Text(at_least=1), required=True),
        "product": Field(kind=Text(), required=True),
        "memoryMib": Field(kind=Whole(at_least=0)),
        "migMode": Field(kind=Choice(members=MigMode)),
        "phase": Field(kind=Text(at_least=1), required=True),
        "reason": Field(kind=Text()),
        "since": Field(kind=Moment()),
        "processes": Field(kind=ListOf(item=Text())),
        "slices": Field(kind=ListOf(item=_SLICE, keys=("resource", "deviceId"))),
    },
)
_RESOURCE = Record(
    of=ResourceStatus,
    fields={
        "name": Field(kind=Text(at_least=1), required=True),
        "slices": Field(kind=Whole(at_least=0), required=True),
        "usable": Field(kind=Whole(at_least=0), required=True),
        "held": Field(kind=Whole(at_least=0), required=True),
        "connected": Field(kind=Flag(), required=True),
        "problem": Field(kind=Text()),
    },
)
_AGENT = Record(
    of=AgentStatus,
    fields={
        "version": Field(kind=Text(), required=True),
        "processId": Field(kind=Whole(at_least=0), required=True),
        "reportedAt": Field(kind=Moment(), required=True, attribute="at"),
        "source": Field(kind=Text()),
    },
)
_COUNTS = Record(
    of=AgentStatus,
    fields={
        "gpus": Field(kind=Whole(at_least=0), meaning="How many GPUs the node has."),
        "slices": Field(kind=Whole(at_least=0), meaning="How many slices are offered."),
        "held": Field(kind=Whole(at_least=0), meaning="How many of the slices are held."),
        "models": Field(kind=Text(), meaning="Which GPUs it has, in words."),
    },
)

STATUS = Record(
    of=AgentStatus,
    fields={
        "observedGeneration": Field(
            kind=Whole(at_least=0), meaning="Number of the version of spec that this is about."
        ),
        "counts": Field(
            kind=_COUNTS, meaning="Sums over gpus, for tables; absent while they are not known."
        ),
        "conditions": Field(kind=ListOf(item=condition_document.SCHEMA, keys=("type",))),
        "gpus": Field(kind=ListOf(item=_GPU, keys=("uuid",))),
        "resources": Field(kind=ListOf(item=_RESOURCE, keys=("name",))),
        "agent": Field(kind=_AGENT, required=True, meaning="Who says this, and when."),
    },
)
"""What the agent writes."""
