"""Watches that are being served: events go out as they happen, until somebody ends it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from partita.simulator.api_server.reading import Watch
from partita.simulator.api_server.rendering import Rendering
from partita.simulator.api_server.store import Change, ChangeType, Stored

__all__ = ["WatchOptions", "WatchStream"]

Send = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What a client wants of a watch.

    Attributes:
        seconds: After which time it ends.
        bookmark_seconds: How often it tells how far it has come, None = never.
        marks_initial_events: Whether it tells when everything that there was has been told.
    """

    seconds: float
    bookmark_seconds: float | None
    marks_initial_events: bool


@dataclass(slots=True, eq=False)
class WatchStream:
    """One watch that is being served.

    Attributes:
        watch: What was asked for.
        rendering: How objects are shown.
        options: What else was asked for.
        version: How far it has come.
    """

    watch: Watch
    rendering: Rendering
    options: WatchOptions
    version: int = 0
    _waiting: deque[bytes] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _is_closed: bool = False
    _has_columns: bool = False

    async def run(self, send: Send) -> None:
        """Send what happens until the time is over or ``close`` is called."""
        if self.watch.failure is not None:
            await send(self.rendering.error(self.watch.failure))
            return
        self.version = self.watch.version
        self.watch.collection.listeners.append(self._on_change)
        try:
            await send(self._beginning())
            await self._follow(send)
        finally:
            self.watch.collection.listeners.remove(self._on_change)

    def close(self) -> None:
        """End it, as a real server may at any time."""
        self._is_closed = True
        self._wake.set()

    def bookmark(self) -> None:
        """Tell how far it has come, even if that was told already."""
        if self.options.bookmark_seconds is not None:
            self._waiting.append(self.rendering.bookmark(self.version))
            self._wake.set()

    def _beginning(self) -> bytes:
        added = [self._event(ChangeType.ADDED, one) for one in self.watch.initial]
        missed = [self._event(kind, one) for kind, one in self.watch.missed]
        mark = (
            [self.rendering.bookmark(self.version, ends_initial_events=True)]
            if self.options.marks_initial_events
            else []
        )
        return b"".join([*added, *mark, *missed])

    async def _follow(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.options.seconds
        interval = self.options.bookmark_seconds
        while not self._is_closed and (left := end - loop.time()) > 0:
            try:
                patience = left if interval is None else min(interval, left)
                await asyncio.wait_for(self._wake.wait(), patience)
            except TimeoutError:
                self.bookmark()
            self._wake.clear()
            await self._send_waiting(send)
        await self._send_waiting(send)

    async def _send_waiting(self, send: Send) -> None:
        if self._waiting:
            told = b"".join(self._waiting)
            self._waiting.clear()
            await send(told)

    def _event(self, kind: ChangeType, found: Stored) -> bytes:
        told = self.rendering.event(kind, found, names_columns=not self._has_columns)
        self._has_columns = True
        return told

    def _on_change(self, change: Change) -> None:
        self.version = change.version
        seen = self.watch.seen(change)
        if seen is not None:
            self._waiting.append(self._event(*seen))
            self._wake.set()
