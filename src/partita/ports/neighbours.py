"""Who else on this node deals with its GPUs: evidence, without a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Neighbours", "Signs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What can be seen of others on this node.

    Attributes:
        plugin_sockets: Sockets beside the kubelet's at which somebody else answers.
        registry_sockets: Sockets in the kubelet's plugin registry at which somebody answers.
        programs: Name of a running program → its PID, of the programs that deal with GPUs.
        rival_agent: What the other agent wrote of itself that has the node, None when we have it.
        claimed: Whether this agent has the node, as of its last ``take``.
        claim_problem: Why nobody could claim the node then, in one line; None when one could.
        labels: Labels of the node, None when nobody told them.
    """

    plugin_sockets: tuple[str, ...] = ()
    registry_sockets: tuple[str, ...] = ()
    programs: Mapping[str, int] = field(default_factory=dict)
    rival_agent: str | None = None
    claimed: bool = False
    claim_problem: str | None = None
    labels: Mapping[str, str] | None = None


class Neighbours(Protocol):
    """Looks around on the node."""

    def look(self) -> Signs:
        """Return what is there now; what cannot be read is not there."""

    def take(self) -> bool:
        """Claim the node for this agent until it ends; False when another agent has it.

        To be asked again now and then, also by who has it: a claim can be taken away from under it.
        """
