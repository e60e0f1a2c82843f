"""The list of devices of one resource, and the streams on which the kubelet gets it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from partita.adapters.device_plugin.wakeup import Wakeup
from partita.ports.slice_server import OfferedSlice
from partita.wire import device_plugin

__all__ = ["Listing", "Streams", "message_of"]

_HEALTH = {True: "Healthy", False: "Unhealthy"}


def message_of(slices: Sequence[OfferedSlice]) -> device_plugin.ListAndWatchResponse:
    """Return the list of devices as the kubelet reads it."""
    return device_plugin.ListAndWatchResponse(devices=[_device(one) for one in slices])


def _device(offered: OfferedSlice) -> device_plugin.Device:
    node = offered.slice.numa_node
    topology = None
    if node is not None:
        topology = device_plugin.TopologyInfo(nodes=[device_plugin.NUMANode(ID=node)])
    return device_plugin.Device(
        ID=offered.slice.device_id, health=_HEALTH[offered.usable], topology=topology
    )


class Listing:
    """The present list. Every list that is to be sent has a number, greater than the last.

    Attributes:
        message: The list.
        number: Its number.
        changed_at: Number of the first list with this content.
        wakeup: Sent when there is another list, or a stream moved on.
    """

    def __init__(self) -> None:
        self.message = message_of(())
        self.number = 1
        self.changed_at = 1
        self.wakeup = Wakeup()

    def show(self, slices: Sequence[OfferedSlice]) -> None:
        """Make this the list; nothing is sent when it is the present one."""
        message = message_of(slices)
        if message != self.message:
            self.message = message
            self.repeat()
            self.changed_at = self.number

    def repeat(self) -> None:
        """Have the list sent again."""
        self.number += 1
        self.wakeup.send()


@dataclass(eq=False)
class _Stream:
    """A call of ListAndWatch that has not ended, and the last list that was written to it."""

    sent: int = 0


class Streams:
    """The calls of ListAndWatch on one socket.

    Attributes:
        end: Why nothing more will come of them, None while all is well: one ended, and the
            kubelet never comes back by itself.
    """

    def __init__(self, listing: Listing, on_change: Callable[[], None]) -> None:
        self.end: str | None = None
        self._listing = listing
        self._on_change = on_change
        self._live: list[_Stream] = []
        self._is_closing = False

    @property
    def is_live(self) -> bool:
        """Whether somebody listens, and will be told what comes."""
        return bool(self._live) and self.end is None

    def have(self, number: int) -> bool:
        """Tell whether the list of this number, or a later one, was written to every stream."""
        return all(stream.sent >= number for stream in self._live)

    async def follow(
        self, write: Callable[[device_plugin.ListAndWatchResponse], Awaitable[None]]
    ) -> None:
        """Write the list at once and after each change, until ``close``."""
        stream = _Stream()
        self._live.append(stream)
        self._moved()
        try:
            while not self._is_closing:
                number = self._listing.number
                if stream.sent < number:
                    await write(self._listing.message)
                    stream.sent = number
                    self._moved()
                await self._listing.wakeup.until(lambda: self._has_news(stream))
        finally:
            self._live.remove(stream)
            self.abandon("the kubelet stopped listening")

    async def catch_up(self, seconds: float) -> bool:
        """Wait until every stream was written the present list; False when one does not take it."""
        number = self._listing.number
        try:
            async with asyncio.timeout(seconds):
                await self._listing.wakeup.until(lambda: self.have(number))
        except TimeoutError:
            return False
        return True

    def abandon(self, reason: str) -> None:
        """Give them up; the first reason counts."""
        self.end = self.end or reason
        self._moved()

    def close(self) -> None:
        """End every stream after the list that it is writing."""
        self._is_closing = True
        self._listing.wakeup.send()

    def _has_news(self, stream: _Stream) -> bool:
        return self._is_closing or stream.sent < self._listing.number

    def _moved(self) -> None:
        self._listing.wakeup.send()
        self._on_change()
