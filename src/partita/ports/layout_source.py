"""Where the wanted layouts of a node come from: a file now, the cluster as well later."""

from typing import Protocol

from partita.config.agent_document import AgentDocument

__all__ = ["LayoutSource"]


class LayoutSource(Protocol):
    """What is wanted, as it stands now."""

    def current(self) -> AgentDocument:
        """Return what is wanted; after an edit that cannot be followed, what was before it."""

    def problem(self) -> str | None:
        """Return why the newest edit cannot be followed, None when it is followed."""
