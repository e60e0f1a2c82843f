"""Serving slices to the kubelet of this node: what is offered, and what was promised to it.

The device plugin API is the first implementation; Dynamic Resource Allocation can be another. The
agent says all that it offers, each time; it never says what to change.

Withdrawing is done in two steps. A slice that is offered with ``usable=False`` stays in the
kubelet's list, where no new pod gets it; only a slice that no longer exists is left out. A kubelet
(1.37) that is giving a device to a pod at the moment in which the device leaves the list crashes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from partita.model.slice import Slice

__all__ = [
    "REFUSED_GONE",
    "REFUSED_MANY",
    "REFUSED_RETIRED",
    "REFUSED_UNDELIVERABLE",
    "Offer",
    "OfferedSlice",
    "PreferenceRequest",
    "ServingState",
    "Session",
    "SliceServer",
]

REFUSED_GONE = "the device is not on this node or no longer given out"
"""How a refusal begins when a container asks for what is not offered; the device ID follows."""

REFUSED_RETIRED = "the device is being cut anew and no longer given out"
"""How a refusal begins when a container asks for what is retired; the device ID follows."""

REFUSED_MANY = "more than one shared slot gives no more of the GPU"
"""How a refusal begins when a container asks for more than one where it gets one each."""

REFUSED_UNDELIVERABLE = "the device cannot be given to a container"
"""How a refusal begins when a device is undeliverable; its UUID and the reason follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedSlice:
    """A slice in an offer.

    Attributes:
        slice: The slice.
        usable: Whether new pods may get it: the kubelet's *healthy*.
        leaving: Whether it is to go once its holder has ended, so that others are better given
            to a new pod.
    """

    slice: Slice
    usable: bool = True
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """All slices of one resource; may be empty.

    Attributes:
        resource: Resource name.
        slices: Its slices; device IDs are unique.
        one_each: Whether a container that asks for more than one is refused
            (``failRequestsGreaterThanOne``).
    """

    resource: str
    slices: tuple[OfferedSlice, ...] = ()
    one_each: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRequest:
    """A question of the kubelet: which of these to give to a container.

    Attributes:
        offer: The present offer of the resource.
        available: Device IDs to choose from, in the kubelet's order; must_include is among them.
        must_include: Device IDs that the answer has to contain.
        count: How many the answer has to have.
    """

    offer: Offer
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """How far the kubelet has heard of one resource.

    Attributes:
        resource: Resource name.
        connected: Whether the kubelet accepted it and listens.
        delivered: Whether the kubelet was sent the present offer, on a stream that is live.
        problem: Why it is not connected, None when it is or was never tried.
    """

    resource: str
    connected: bool = False
    delivered: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingState:
    """What stands between the agent and the kubelet.

    Attributes:
        sessions: By resource name.
        promised: Device ID → monotonic time in seconds at which it was last given to a container
            by this server. It stays until the server forgets it; whether the pod exists is for
            the kubelet to say.
        undeliverable: UUID of an offered device → why no container can be given it, for example
            because its device node is not there. The kubelet is told that it is not usable, and
            a container that is given it all the same is refused.
    """

    sessions: Mapping[str, Session] = field(default_factory=dict)
    promised: Mapping[str, float] = field(default_factory=dict)
    undeliverable: Mapping[str, str] = field(default_factory=dict)


class SliceServer(Protocol):
    """Offers slices; survives a kubelet that is absent, that restarts, or that refuses.

    No method raises because of the kubelet: how it goes is in ``state``. All methods are for the
    thread of the event loop.
    """

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Make this the whole of what is offered, and send it to the kubelet.

        A resource that is not in it is no longer served. What is offered as usable is no longer
        retired. Returns when everybody who listens was sent the list, not when they have read it.
        """

    async def announce(self) -> None:
        """Send the present lists again although nothing changed; returns as ``offer`` does.

        The kubelet writes its checkpoint for each list (see ``ports.kubelet``).
        """

    async def reconnect(self, resource: str) -> None:
        """Register a resource anew although its stream lives.

        For a kubelet that does not show what it was sent: another plugin of the same resource came
        and went, and the kubelet keeps what that one listed. Nothing happens to a resource that is
        not offered, or that is on its way to the kubelet anyway. How it goes is in ``state``.
        """

    def state(self) -> ServingState:
        """Return how far the kubelet has heard, and what was promised to it."""

    def retire(self, device_ids: Collection[str]) -> bool:
        """Refuse these from now on; False, and nothing is changed, if one was promised just now.

        *Just now* is: since ``forget`` was last called for it. Done in one go: no request can
        come between the look and the refusal.
        """

    def forget(self, promised: Mapping[str, float]) -> None:
        """Drop promises that are settled, unless they were made again after the time given."""

    async def close(self) -> None:
        """Stop serving everything."""
