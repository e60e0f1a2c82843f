"""The simulated API server as a whole: it listens, stops, and has bad days on demand."""

import asyncio
from pathlib import Path
from random import Random

from aiohttp import web

from partita.ports.clock import Clock
from partita.simulator.api_server import kubeconfig
from partita.simulator.api_server.core import ApiCore
from partita.simulator.api_server.faults import Faults
from partita.simulator.api_server.http_service import HttpService

__all__ = ["SimulatedApiServer"]

_HOST = "127.0.0.1"
_BOOKMARK_SECONDS = 60.0


class SimulatedApiServer:
    """An API server on this machine, over plain HTTP and open to everybody on it.

    What it knows outlives ``stop``, as etcd outlives an API server.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        random: Random | None = None,
        port: int = 0,
        history_length: int = 10_000,
        bookmark_seconds: float = _BOOKMARK_SECONDS,
    ) -> None:
        random = Random() if random is None else random  # noqa: S311 - UIDs are no secrets
        self.core = ApiCore(clock=clock, random=random, history_length=history_length)
        self.faults = Faults()
        self._service = HttpService(self.core, self.faults, bookmark_seconds=bookmark_seconds)
        self._port = port
        self._runner: web.ServerRunner | None = None

    @property
    def address(self) -> str:
        """Where it listens: ``http://127.0.0.1:PORT``; the port stays when it is started again."""
        return f"http://{_HOST}:{self._port}"

    @property
    def watch_count(self) -> int:
        """How many watches it serves now."""
        return len(self._service.watches)

    async def start(self) -> None:
        """Listen, and return when clients can connect."""
        if self._runner is not None:
            return
        server = web.Server(self._service.handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, self._port, reuse_address=True)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening and cut every connection, as by a crash."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        for site in list(runner.sites):
            await site.stop()
        if runner.server is not None:
            for connection in list(runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()
        await runner.cleanup()
        await self._service.idle()
        for _ in range(3):  # the tasks of the connections end after their requests
            await asyncio.sleep(0)

    def write_kubeconfig(self, path: Path) -> None:
        """Write a file by which kubectl finds it."""
        kubeconfig.write(path, self.address)

    def close_watches(self) -> None:
        """End every watch in good order, as a real server does now and then."""
        for stream in self._service.watches:
            stream.close()

    def send_bookmarks(self) -> None:
        """Send a bookmark on every watch that wants some; twice is no fault of a server."""
        for stream in self._service.watches:
            stream.bookmark()

    def compact(self) -> None:
        """Forget what happened: watches and pages that continue from before have expired."""
        self.core.state.store.compact()
