"""The table of a ``PartitionPolicy``: its keys, their types, and what a strategy needs."""

from dataclasses import dataclass
from operator import attrgetter

from partita.config import condition_document
from partita.config.partition_policy import (
    BudgetEnforcement,
    ConfigMapRef,
    Follow,
    GpuSelector,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
    Via,
)
from partita.config.schema import (
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Rule,
    Text,
    Whole,
)
from partita.model.policy_status import PolicyStatus

__all__ = ["NEEDS", "PROFILE", "RESOURCE", "SPEC", "STATUS", "Need"]

PROFILE = r"^[1-9][0-9]*g\.[1-9][0-9]*gb([+-][a-z]+(\.[a-z]+)*)*$"
"""Form of a MIG profile's name; whether there is such a profile is for the catalogue to say."""
RESOURCE = r"^nvidia\.com/(gpu|mig-[0-9]+g\.[0-9]+gb(\.[a-z]+)*(-[a-z]+)?)$"
"""Form of a resource name that a policy can share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Parameters that a strategy cannot do without, unless a ConfigMap stands in for them.

    Attributes:
        strategy: The strategy.
        key: Path of the parameters below ``spec``.
        attribute: Path of the same in a policy.
        follow: Under which ``follow``, None = under any.
    """

    strategy: Strategy
    key: str
    attribute: str
    follow: Follow | None = None

    def is_met(self, policy: PartitionPolicy) -> bool:
        """Tell whether a policy has the parameters, or needs none."""
        return (
            policy.config_map_ref is not None
            or policy.strategy is not self.strategy
            or self.follow not in (None, policy.follow)
            or attrgetter(self.attribute)(policy) is not None
        )

    @property
    def message(self) -> str:
        """What is wrong when it is not met."""
        return f"strategy {self.strategy.value} needs spec.{self.key}"

    @property
    def rule(self) -> Rule:
        """The same for the API server."""
        parts = self.key.split(".")
        steps = [f"has(self.{'.'.join(parts[:count])})" for count in range(1, len(parts) + 1)]
        there = " && ".join(steps)
        others = ["has(self.configMapRef)", f"self.strategy != '{self.strategy.value}'"]
        others += [f"self.follow != '{self.follow.value}'"] if self.follow is not None else []
        return Rule(expression=" || ".join((*others, f"({there})")), message=self.message)


NEEDS = (
    Need(strategy=Strategy.MIG, follow=Follow.FIXED, key="mig.layout", attribute="mig.layout"),
    Need(strategy=Strategy.TIME_SLICING, key="timeSlicing", attribute="time_slicing"),
    Need(strategy=Strategy.MPS, key="mps", attribute="mps"),
)

_SHARED_RESOURCE = Record(
    of=SharedResource,
    fields={
        "name": Field(kind=Text(pattern=RESOURCE), required=True),
        "replicas": Field(kind=Whole(at_least=2), required=True),
    },
)
_SHARING = Record(
    of=SharingParameters,
    fields={
        "resources": Field(
            kind=ListOf(item=_SHARED_RESOURCE, keys=("name",), at_least=1), required=True
        ),
        "renameByDefault": Field(kind=Flag()),
        "failRequestsGreaterThanOne": Field(kind=Flag()),
    },
)
_SELECTOR = Record(
    of=GpuSelector,
    fields={
        "models": Field(kind=ListOf(item=Text(at_least=1))),
        "indices": Field(kind=ListOf(item=Whole(at_least=0))),
        "uuids": Field(kind=ListOf(item=Text(at_least=1))),
    },
)
_MIG = Record(
    of=MigParameters,
    fields={
        "layout": Field(kind=MapOf(value=Whole(at_least=1))),
        "profiles": Field(kind=ListOf(item=Text(pattern=PROFILE))),
        "allowReset": Field(kind=Flag()),
    },
)
_REFERENCE = Record(
    of=ConfigMapRef,
    fields={
        "namespace": Field(kind=Text(at_least=1), required=True),
        "name": Field(kind=Text(at_least=1), required=True),
        "key": Field(kind=Text()),
    },
)

SPEC = Record(
    of=PartitionPolicy,
    fields={
        "strategy": Field(kind=Choice(members=Strategy), required=True),
        "nodeSelector": Field(kind=MapOf(value=Text())),
        "gpuSelector": Field(kind=_SELECTOR),
        "follow": Field(kind=Choice(members=Follow), default=Follow.DEMAND),
        "mig": Field(kind=_MIG),
        "timeSlicing": Field(kind=_SHARING),
        "mps": Field(kind=_SHARING),
        "budgetEnforcement": Field(
            kind=Choice(members=BudgetEnforcement),
            default=BudgetEnforcement.WARN,
            attribute="budget",
        ),
        "configMapRef": Field(kind=_REFERENCE),
        "via": Field(kind=Choice(members=Via), default=Via.PARTITA),
    },
    rules=tuple(need.rule for need in NEEDS),
)
"""What an operator writes."""

STATUS = Record(
    of=PolicyStatus,
    fields={
        "observedGeneration": Field(kind=Whole(at_least=0)),
        "nodes": Field(kind=Whole(at_least=0)),
        "conditions": Field(kind=ListOf(item=condition_document.SCHEMA, keys=("type",))),
    },
)
"""What the controller writes."""
