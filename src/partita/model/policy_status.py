"""What the controller says of a policy."""

from dataclasses import dataclass

from partita.model.agent_status import Condition

__all__ = ["PolicyStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatus:
    """How a policy fares.

    Attributes:
        observed_generation: Number of the version of the policy that this is about, None when
            unknown.
        nodes: How many nodes with GPUs it selects, None when unknown.
        conditions: Conditions, ``Ready`` first.
    """

    observed_generation: int | None = None
    nodes: int | None = None
    conditions: tuple[Condition, ...] = ()
