"""How plugins come to a kubelet: they register, or wait in the plugin registry to be asked."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import grpc

from partita.simulator.kubelet.connections import Connections
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.plugins import RegistrationRefusedError
from partita.wire import device_plugin as v1beta1
from partita.wire import methods
from partita.wire import plugin_registration as registration

__all__ = ["PluginRegistry", "registration_service"]

_LOOK_SECONDS = 0.05
_ANSWER_SECONDS = 1.0


def registration_service(folders: Folders, connections: Connections) -> grpc.GenericRpcHandler:
    """Return the service that device plugins register with."""

    async def register(
        request: v1beta1.RegisterRequest,
        context: "methods.Context[v1beta1.RegisterRequest, v1beta1.Empty]",
    ) -> v1beta1.Empty:
        socket = folders.device_plugins / request.endpoint
        try:
            await connections.connect(request.resource_name, socket, (request.version,))
        except RegistrationRefusedError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return v1beta1.Empty()

    return methods.service(v1beta1.Registration.Register.by(register))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Announced:
    """A plugin that was found in the registry and accepted."""

    file: tuple[int, int]
    resource: str
    endpoint: Path


class PluginRegistry:
    """Looks through the plugin registry, takes device plugins, and notices when they go.

    The real one is woken by the file system; this one looks 20 times a second. What is not a
    device plugin is left alone.
    """

    def __init__(self, folder: Path, connections: Connections) -> None:
        self._folder = folder
        self._connections = connections
        self._known: dict[Path, _Announced] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self) -> None:
        found = {}
        for path in sorted(self._folder.iterdir()):
            try:
                if path.is_socket() and not path.name.startswith("."):
                    status = path.stat()
                    found[path] = (status.st_ino, status.st_mtime_ns)
            except FileNotFoundError:
                continue
        for path, known in list(self._known.items()):
            if found.get(path) != known.file:
                del self._known[path]
                await self._connections.disconnect(known.resource, known.endpoint)
        for path in found.keys() - self._known.keys():
            await self._ask(path, found[path])

    async def _ask(self, path: Path, file: tuple[int, int]) -> None:
        """Ask who waits there; whoever does not answer now is asked again later."""
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            try:
                info = await registration.Registration.GetInfo.on(channel)(
                    registration.InfoRequest(), timeout=_ANSWER_SECONDS
                )
                if info.type == "DevicePlugin":
                    await self._take(path, file, info, channel)
            except grpc.aio.AioRpcError:
                return

    async def _take(
        self,
        path: Path,
        file: tuple[int, int],
        info: registration.PluginInfo,
        channel: grpc.aio.Channel,
    ) -> None:
        endpoint = Path(info.endpoint or path)
        status = registration.RegistrationStatus(plugin_registered=True)
        try:
            await self._connections.connect(info.name, endpoint, tuple(info.supported_versions))
        except RegistrationRefusedError as error:
            status = registration.RegistrationStatus(error=str(error))
        else:
            self._known[path] = _Announced(file=file, resource=info.name, endpoint=endpoint)
        await registration.Registration.NotifyRegistrationStatus.on(channel)(
            status, timeout=_ANSWER_SECONDS
        )
