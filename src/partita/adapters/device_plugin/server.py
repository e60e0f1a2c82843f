"""The slice server over the kubelet's device plugin API."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from partita.adapters.device_plugin import sockets
from partita.adapters.device_plugin.calls import Desk, Objection, Prefer
from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.ledger import Ledger
from partita.adapters.device_plugin.registration import Pace, Registration
from partita.model.slice import Slice
from partita.ports.clock import Clock
from partita.ports.slice_server import Offer, ServingState

__all__ = ["DevicePluginServer", "Hooks"]


def _nobody() -> None:
    """Wake nobody."""


async def _no_objection(_: Sequence[str]) -> None:
    """Have nothing against any promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Whom the server asks and tells.

    Attributes:
        objection: Asked before a promise whether anything speaks against it.
        on_change: Told of a change of a session.
        on_promise: Told of a promise.
    """

    objection: Objection = _no_objection
    on_change: Callable[[], None] = _nobody
    on_promise: Callable[[], None] = _nobody


class DevicePluginServer:
    """Serves slices as device plugins, one per resource; a ``ports.slice_server.SliceServer``.

    All methods are for the thread of the event loop, and offers come one after another.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        prefer: Prefer,
        delivery: Delivery,
        *,
        hooks: Hooks | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Prepare; nothing is served before ``start``.

        Args:
            folder: The kubelet's ``device-plugins`` folder; need not exist yet.
            clock: Tells the times of promises.
            prefer: Which devices a container is best given; pure.
            delivery: How devices get into containers.
            hooks: Whom to ask and to tell.
            pace: How fast things are done.
        """
        self._folder = folder
        self._delivery = delivery
        self._hooks = hooks = hooks or Hooks()
        self._pace = pace or Pace()
        self._ledger = Ledger(clock)
        self._desk = Desk(
            ledger=self._ledger,
            prefer=prefer,
            delivery=delivery,
            objection=hooks.objection,
            on_promise=hooks.on_promise,
        )
        self._registrations: dict[str, Registration] = {}
        self._is_started = False
        self._changing = asyncio.Lock()  # of what is offered, or how it is delivered

    async def start(self) -> None:
        """Begin to serve what is offered, also what was offered before."""
        self._is_started = True
        for one in self._registrations.values():
            one.start()

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Make this the whole of what is offered, and send it to the kubelet."""
        if not self._registrations:
            await asyncio.to_thread(sockets.remove_dead, self._folder)
        async with self._changing:
            await self._delivery.prepare(_slices(offers))
            leaving = self._switch(offers)
        await asyncio.gather(
            *map(_leave, leaving),
            *(one.until_taken() for one in self._registrations.values()),
        )

    async def deliver_by(self, delivery: Delivery, prefer: Prefer) -> None:
        """Give devices to containers in another way, and by another preference, from now on."""
        async with self._changing:
            await delivery.prepare(_slices([one.offer for one in self._registrations.values()]))
            self._delivery = self._desk.delivery = delivery
            self._desk.prefer = prefer
            for one in self._registrations.values():
                one.show(one.offer)
        await asyncio.gather(*(one.until_taken() for one in self._registrations.values()))

    async def reconnect(self, resource: str) -> None:
        """Register a resource anew although its stream lives."""
        registration = self._registrations.get(resource)
        if registration is not None:
            registration.reconnect()

    async def announce(self) -> None:
        """Send the present lists again although nothing changed."""
        for one in self._registrations.values():
            one.listing.repeat()
        await asyncio.gather(*(one.until_taken() for one in self._registrations.values()))

    def state(self) -> ServingState:
        """Return how far the kubelet has heard, and what was promised to it."""
        return ServingState(
            sessions={name: one.session for name, one in self._registrations.items()},
            promised=self._ledger.promised,
            undeliverable=self._delivery.undeliverable,
        )

    def retire(self, device_ids: Collection[str]) -> bool:
        """Refuse these from now on; False, and nothing is changed, if one is promised."""
        return self._ledger.retire(device_ids)

    def forget(self, promised: Mapping[str, float]) -> None:
        """Drop promises that are settled, unless they were made again after the time given."""
        self._ledger.forget(promised)

    async def close(self) -> None:
        """Stop serving everything; the kubelet keeps its devices for a plugin that comes back."""
        self._is_started = False
        registrations, self._registrations = self._registrations, {}
        await asyncio.gather(*(one.stop() for one in registrations.values()))

    def _switch(self, offers: Sequence[Offer]) -> Sequence[Registration]:
        """Offer these in one go; returns what is no longer served, with an empty list."""
        offered = [one for offer in offers for one in offer.slices]
        self._ledger.revive([one.slice.device_id for one in offered if one.usable])
        gone = self._registrations.keys() - {offer.resource for offer in offers}
        leaving = [self._registrations.pop(resource) for resource in gone]
        for one in leaving:  # without the empty list the kubelet would wait for us for minutes
            one.show(Offer(resource=one.offer.resource))
        for offer in offers:
            self._show(offer)
        self._ledger.keep([one.slice.device_id for one in offered])
        return leaving

    def _show(self, offer: Offer) -> None:
        present = self._registrations.get(offer.resource)
        if present is not None:
            present.show(offer)
            return
        registration = Registration(
            self._folder, offer.resource, self._desk, self._pace, self._hooks.on_change
        )
        registration.show(offer)
        self._registrations[offer.resource] = registration
        if self._is_started:
            registration.start()


def _slices(offers: Sequence[Offer]) -> list[Slice]:
    return [one.slice for offer in offers for one in offer.slices]


async def _leave(registration: Registration) -> None:
    await registration.until_taken()
    await registration.stop()
