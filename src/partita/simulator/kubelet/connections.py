"""The plugins that a kubelet is connected to."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.plugin_client import PluginClient
from partita.simulator.kubelet.plugins import RegistrationRefusedError

__all__ = ["VERSION", "Connections"]

VERSION = "v1beta1"
"""The version of the device plugin API that a kubelet speaks."""

_NAME = re.compile(
    r"(?=.{1,244}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


class Connections:
    """Every plugin of a device manager; ``changed`` is called after each change of the manager.

    ``now`` tells the monotonic time; a plugin has ``dial_seconds`` to answer when it registers.
    """

    def __init__(
        self,
        devices: DeviceManager,
        *,
        changed: Callable[[], None],
        now: Callable[[], float],
        dial_seconds: float,
    ) -> None:
        self._devices = devices
        self._changed = changed
        self._now = now
        self._dial_seconds = dial_seconds
        self._clients: dict[tuple[str, str], PluginClient] = {}
        self._readers: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def connect(self, resource: str, socket: Path, versions: tuple[str, ...]) -> None:
        """Connect to a plugin and read its lists from now on.

        Raises:
            RegistrationRefusedError: When the kubelet does not take it.
        """
        if VERSION not in versions:
            raise RegistrationRefusedError(
                f'requested API version "{" ".join(versions)}" is not supported by kubelet. '
                f'Supported version is ["{VERSION}"]'
            )
        if not _is_extended(resource):
            raise RegistrationRefusedError(f'the ResourceName "{resource}" is invalid')
        client = await PluginClient.dial(resource, socket, seconds=self._dial_seconds)
        try:
            self._devices.connect(
                resource, str(socket), prefers=client.options.get_preferred_allocation_available
            )
        except RegistrationRefusedError:
            await client.close()
            raise
        key = (resource, str(socket))
        self._clients[key] = client
        self._readers[key] = asyncio.create_task(self._read(client))

    async def disconnect(self, resource: str, socket: Path) -> None:
        """Hang up on a plugin."""
        reader = self._readers.pop((resource, str(socket)), None)
        if reader is not None:
            reader.cancel()
            await asyncio.wait([reader])
            await self._forget(resource, str(socket))

    def client(self, resource: str, socket: str) -> PluginClient | None:
        """Return a connected plugin."""
        return self._clients.get((resource, socket))

    async def close(self) -> None:
        """Hang up on everybody, without a word to the device manager."""
        readers, clients = tuple(self._readers.values()), tuple(self._clients.values())
        self._readers.clear()
        self._clients.clear()
        for reader in readers:
            reader.cancel()
        if readers:
            await asyncio.wait(readers)
        for client in clients:
            await client.close()

    async def _read(self, client: PluginClient) -> None:
        async for devices in client.lists():
            self._devices.take_list(client.resource, devices)
            self._changed()
        self._readers.pop((client.resource, str(client.socket)), None)
        await self._forget(client.resource, str(client.socket))

    async def _forget(self, resource: str, socket: str) -> None:
        self._devices.disconnect(resource, socket, now=self._now())
        if socket not in self._devices.sockets(resource):
            await self._clients.pop((resource, socket)).close()
        self._changed()


def _is_extended(resource: str) -> bool:
    native = "kubernetes.io/" in resource or resource.startswith("requests.")
    return not native and _NAME.fullmatch(resource) is not None
