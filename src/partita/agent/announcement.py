"""When to speak to the kubelet although nothing has changed. Pure.

The checkpoint names pods that have ended until it is written again. When nothing but that keeps
something from its target, the present lists are sent once more; in vain, later and later.

When the kubelet does not show what it was sent, somebody else has registered the resource and left
again: such a kubelet (1.37) keeps the other's list, and listens to us no longer.
"""

from collections.abc import Mapping

from partita.agent.instruction import Announce, Reconnect
from partita.agent.look import Look, View

__all__ = ["UNLISTED_SECONDS", "announcement", "reconnections"]

UNLISTED_SECONDS = 5.0
"""How long a kubelet may take to show what it was sent."""

_RECONNECT_SECONDS = 10.0  # between two tries

_LONGEST_ANNOUNCE_SECONDS = 30.0


def announcement(look: Look, views: Mapping[str, View]) -> tuple[tuple[Announce, ...], int]:
    """Return an announcement when only an old checkpoint says that something to go is held.

    With it comes how often in a row it was made, for the memory.
    """
    if not _is_stale(look, views):
        return (), 0
    made, last = look.memory.announcements, look.memory.announced_at
    delay = min(0.2 * 2 ** min(made, 10), _LONGEST_ANNOUNCE_SECONDS)
    if last is None or made == 0 or look.seen.at - last >= delay:
        return (Announce(),), made + 1
    return (), made


def _is_stale(look: Look, views: Mapping[str, View]) -> bool:
    """Tell whether something waits for a slice that only an old checkpoint says is held."""
    return any(
        any(one.slice.device_id in look.holders.stale for one in presence.slices)
        for view in views.values()
        for presence in view.presences.values()
        if view.target.unmet is not None or any(one.leaving for one in presence.slices)
    )


def reconnections(look: Look) -> tuple[Reconnect, ...]:
    """Return the resources to register anew."""
    offered = (one.slice for of_gpu in look.memory.offered.values() for one in of_gpu)
    late = {one.resource for one in offered if _is_late(look, one.device_id)}
    return tuple(
        Reconnect(resource=name)
        for name in sorted(late)
        if (session := look.seen.serving.sessions.get(name)) is not None
        and session.delivered
        and look.seen.at - look.memory.reconnected.get(name, -_RECONNECT_SECONDS)
        >= _RECONNECT_SECONDS
    )


def _is_late(look: Look, device_id: str) -> bool:
    since = look.memory.unseen.get(device_id)
    late = since is not None and look.seen.at - since >= UNLISTED_SECONDS
    return late and not look.holders.is_listed(device_id)
