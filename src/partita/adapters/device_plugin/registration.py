"""Keeps one resource known to the kubelet, through restarts of the kubelet and its refusals.

Each try has a socket and a server of its own: serve, register, and stay until the kubelet went,
came anew, or stopped listening. The kubelet calls back before it answers Register, so nothing here
may keep the event loop from answering.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from partita.adapters.device_plugin import calls, sockets
from partita.adapters.device_plugin.listing import Listing, Streams
from partita.adapters.device_plugin.sockets import Identity
from partita.ports.slice_server import Offer, Session
from partita.wire import device_plugin

__all__ = ["Pace", "Registration"]

_LOG = logging.getLogger(__name__)
_VERSION = "v1beta1"
_SHOWN = 300  # characters of what the kubelet says
_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # no memory of how earlier tries went
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast things are done; all in seconds.

    Attributes:
        poll: Between two looks at the sockets.
        first_pause: Before the second try; each further pause is twice as long.
        longest_pause: Where the pauses stop growing.
        register: How long Register may take; the kubelet itself waits up to 10 s for us in it.
        listen: How long the kubelet may take from accepting to listening.
        take: How long the kubelet may take to take a list that is written.
        last_words: How long calls that were begun may take when a server stops.
        settled: How long it must go well until the pauses start anew.
    """

    poll: float = 1.0
    first_pause: float = 0.2
    longest_pause: float = 5.0
    register: float = 15.0
    listen: float = 5.0
    take: float = 5.0
    last_words: float = 0.5
    settled: float = 10.0


class _LostError(Exception):
    """When a try is over; the text says why."""


class Registration:
    """One resource, from ``start`` to ``stop``.

    Attributes:
        offer: What is offered.
        listing: The list that the kubelet gets of it.
    """

    def __init__(
        self,
        folder: Path,
        resource: str,
        desk: calls.Desk,
        pace: Pace,
        on_change: Callable[[], None],
    ) -> None:
        self.offer = Offer(resource=resource)
        self.listing = Listing()
        self._folder = folder
        self._desk = desk
        self._pace = pace
        self._on_change = on_change
        self._streams: Streams | None = None
        self._accepted = False
        self._problem: str | None = None
        self._told: set[str] = set()
        self._session = self.session
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    @property
    def session(self) -> Session:
        """How far the kubelet has heard."""
        streams = self._streams
        connected = self._accepted and streams is not None and streams.is_live
        return Session(
            resource=self.offer.resource,
            connected=connected,
            delivered=bool(
                connected and streams is not None and streams.have(self.listing.changed_at)
            ),
            problem=None if connected else self._problem,
        )

    def show(self, offer: Offer) -> None:
        """Offer this; whoever listens will be sent the list, if it is another one."""
        self.offer = offer
        undeliverable = self._desk.delivery.undeliverable
        self.listing.show(
            [
                replace(one, usable=one.usable and one.slice.device not in undeliverable)
                for one in offer.slices
            ]
        )

    def start(self) -> None:
        """Begin to serve and register, again and again."""
        self._task = self._task or asyncio.create_task(
            self._run(), name=f"serve {self.offer.resource}"
        )

    async def stop(self) -> None:
        """End everything; the kubelet keeps the devices for a plugin that comes back."""
        self._is_over = True  # looked at too: gRPC on Python 3.11 may swallow a cancellation
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def until_taken(self) -> None:
        """Wait until whoever listens was written the present list; not for ever."""
        streams = self._streams
        if streams is not None and not await streams.catch_up(self._pace.take):
            streams.abandon("the kubelet does not take the list of devices")

    def reconnect(self) -> None:
        """Register anew although the kubelet listens; what is under way anyway goes on."""
        streams = self._streams
        if self._accepted and streams is not None and streams.is_live:
            self._problem = "the kubelet does not show the devices that it was sent"
            streams.abandon(self._problem)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        tries = -1
        while True:
            kubelet = await self._until_there()
            started = loop.time()
            try:
                await self._serve(kubelet)
            except _LostError as lost:
                self._tell(str(lost))
            except Exception:  # noqa: BLE001 - whatever it is, serving nothing would be worse
                _LOG.exception("%s: serving failed, trying again", self.offer.resource)
                self._tell("serving failed unexpectedly; see the log")
            if self._is_over:
                return
            tries = 0 if loop.time() - started > self._pace.settled else tries + 1
            doublings = min(tries, 10)  # more would only be a large number
            await self._pause(kubelet, self._pace.first_pause * 2.0**doublings)

    async def _until_there(self) -> Identity:
        while True:
            kubelet = sockets.identity(self._kubelet)
            if kubelet is not None:
                return kubelet
            self._tell(f"no kubelet is there: {self._kubelet}")
            await asyncio.sleep(self._pace.poll)

    async def _serve(self, kubelet: Identity) -> None:
        path = sockets.new_socket(self._folder, self.offer.resource)
        server = grpc.aio.server()
        streams = self._streams = Streams(self.listing, self._changed)
        server.add_generic_rpc_handlers((calls.handlers(self._desk, lambda: self.offer, streams),))
        try:
            _bind(server, path)
            await server.start()
            own = sockets.identity(path)
            await self._register(path)
            self._accepted = True
            self._changed()
            await self._until_listening(streams)
            await self._stay(streams, (path, own), (self._kubelet, kubelet))
        finally:
            self._accepted = False
            streams.close()
            await server.stop(self._pace.last_words)
            with contextlib.suppress(OSError):
                path.unlink()
            self._streams = None
            self._changed()

    async def _register(self, path: Path) -> None:
        request = device_plugin.RegisterRequest(
            version=_VERSION,
            endpoint=path.name,
            resource_name=self.offer.resource,
            options=calls.OPTIONS,
        )
        target = f"unix:{self._kubelet}"
        async with grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS) as channel:
            register = device_plugin.Registration.Register.on(channel)
            try:
                await register(request, timeout=self._pace.register)
            except grpc.aio.AioRpcError as error:
                raise _LostError(_why(error, path)) from error

    async def _until_listening(self, streams: Streams) -> None:
        try:
            async with asyncio.timeout(self._pace.listen):
                await self.listing.wakeup.until(lambda: streams.is_live or bool(streams.end))
        except TimeoutError:
            problem = "the kubelet accepted the resource, but asks for no devices"
            raise _LostError(problem) from None
        self._told.clear()
        self._problem = None
        _LOG.info("%s is served to the kubelet", self.offer.resource)

    async def _stay(self, streams: Streams, *files: tuple[Path, Identity | None]) -> None:
        """Return never; raise when the kubelet no longer listens, or is another one."""
        (own, own_was), (kubelet, kubelet_was) = files
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.poll):
                    await self.listing.wakeup.until(lambda: streams.end is not None)
            if self._is_over:
                raise _LostError("it is no longer offered")
            if streams.end is not None:
                raise _LostError(streams.end)
            if sockets.identity(own) != own_was:
                raise _LostError("the socket of the plugin was removed")
            if sockets.identity(kubelet) not in (kubelet_was, None):
                raise _LostError("the kubelet was started again")

    async def _pause(self, kubelet: Identity, seconds: float) -> None:
        """Wait, but not longer than until a kubelet is started."""
        loop = asyncio.get_running_loop()
        until = loop.time() + min(seconds, self._pace.longest_pause)
        while (left := until - loop.time()) > 0:
            await asyncio.sleep(min(left, self._pace.poll))
            if sockets.identity(self._kubelet) not in (kubelet, None):
                return

    @property
    def _kubelet(self) -> Path:
        return self._folder / "kubelet.sock"

    def _tell(self, problem: str) -> None:
        """Remember why the kubelet does not listen; log each reason once until it listens."""
        self._problem = problem
        if problem not in self._told:
            self._told.add(problem)
            _LOG.warning("%s is not served: %s", self.offer.resource, problem)
        self._changed()

    def _changed(self) -> None:
        present = self.session
        if present != self._session:
            self._session = present
            self._on_change()


def _bind(server: grpc.aio.Server, path: Path) -> None:
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as error:
        raise _LostError(f"cannot listen in {path.parent}") from error


def _why(error: grpc.aio.AioRpcError, path: Path) -> str:
    """Return one line that is the same for the same reason: without the name of our socket."""
    said = " ".join((error.details() or "").replace(path.name, "the plugin's socket").split())
    return f"Register failed with {error.code().name}: {said[:_SHOWN]}"
