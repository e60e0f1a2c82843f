"""One process of a simulated kubelet: its device manager, its servers and its plugins."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import grpc

from partita.ports.clock import Clock
from partita.simulator.kubelet.admission import Answer, PluginRefusedError, Question
from partita.simulator.kubelet.connections import Connections
from partita.simulator.kubelet.containers import StartFailedError
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.pod_resources import FindPod, PodResources
from partita.simulator.kubelet.pods import Container, Pod
from partita.simulator.kubelet.registration import PluginRegistry, registration_service

__all__ = ["KubeletProcess", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the processes of one kubelet have in common.

    Attributes:
        folders: Where the outside meets it.
        clock: Tells how long a plugin has been away.
        random: Which devices it picks, None for the first.
        dial_seconds: How long a plugin may take to answer when it registers.
    """

    folders: Folders
    clock: Clock
    random: Random | None = None
    dial_seconds: float = 10.0


class KubeletProcess:
    """A kubelet from its start to its end.

    ``find`` finds the pods that it knows; ``changed`` is called after each change that can be
    seen from outside.
    """

    def __init__(self, settings: Settings, *, find: FindPod, changed: Callable[[], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._find = find
        self.devices = DeviceManager(
            settings.folders.read_checkpoint(),
            now=settings.clock.monotonic(),
            random=settings.random,
        )
        self._written = self.devices.checkpoint
        self._connections = Connections(
            self.devices,
            changed=self.save,
            now=settings.clock.monotonic,
            dial_seconds=settings.dial_seconds,
        )
        self._servers: list[grpc.aio.Server] = []
        self._registry: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve, and return when plugins can register."""
        folders = self._settings.folders
        folders.prepare()
        resources = PodResources(self.devices, find=self._find, changed=self.save)
        await self._serve(folders.pod_resources, resources.service())
        await self._serve(folders.registration, registration_service(folders, self._connections))
        registry = PluginRegistry(folders.plugin_registry, self._connections)
        self._registry = asyncio.create_task(registry.run())

    async def stop(self) -> None:
        """End as by a crash: nothing is said to anybody, the sockets stay."""
        if self._registry is not None:
            self._registry.cancel()
            await asyncio.wait([self._registry])
        for server in self._servers:
            await server.stop(None)
        await self._connections.close()

    def save(self) -> None:
        """Write the checkpoint if the device manager did, and tell that something changed."""
        self.write()
        self._changed()

    def write(self) -> None:
        """Write the checkpoint if the device manager did."""
        if self._written is not self.devices.checkpoint:
            self._written = self.devices.checkpoint
            self._settings.folders.write_checkpoint(self._written)

    async def admit(self, pod: Pod, running: frozenset[str]) -> None:
        """Give a pod its devices.

        Raises:
            AdmissionRefusedError: When it is refused for good.
            KubeletCrashedError: When this process has to end.
        """
        self.devices.add_pod(pod)
        admission = self.devices.admit(pod, running=running)
        while admission.question is not None:
            try:
                answer = await self._ask(admission.question)
            except PluginRefusedError as error:
                admission.refuse(str(error))
            else:
                admission.answer(answer)
            self.save()

    async def announce(self, pod: Pod, container: Container) -> None:
        """Tell the plugins that want to know it that a container is about to start.

        Raises:
            StartFailedError: When one of them objects.
        """
        for resource in container.requests:
            socket = self.devices.asked(resource)
            client = self._connections.client(resource, socket) if socket is not None else None
            if client is not None and client.options.pre_start_required:
                entry = self.devices.held(pod.uid, container.name).get(resource)
                try:
                    await client.pre_start(sorted(entry.devices) if entry is not None else ())
                except PluginRefusedError as error:
                    raise StartFailedError("CreateContainerConfigError", str(error)) from error

    async def _ask(self, question: Question) -> Answer:
        client = self._connections.client(question.resource, question.socket)
        if client is None:
            raise PluginRefusedError(f"endpoint {question.socket} has been stopped")
        return await client.answer(question)

    async def _serve(self, socket: Path, service: grpc.GenericRpcHandler) -> None:
        folders = self._settings.folders
        bound = folders.bind_path(socket)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(f"unix:{bound}")
        await server.start()
        folders.publish(bound, socket)
        self._servers.append(server)
