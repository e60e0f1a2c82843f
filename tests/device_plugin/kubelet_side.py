"""The kubelet's side of the device plugin API, as small as it can be."""

import asyncio
import contextlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import grpc

from partita.adapters.device_plugin.wakeup import Wakeup
from partita.wire import device_plugin, methods

__all__ = ["KubeletSide"]

_PLUGIN = device_plugin.DevicePlugin


class KubeletSide:
    """Takes registrations, calls back inside Register, and listens.

    Attributes:
        registered: Requests that were accepted, in order.
        refused: How many were not.
        lists: Resource → the lists it was sent, each as device ID → health.
        raw: Resource → the last message.
        ended: Resources whose streams ended, in order, with how they ended.
        refuse_with: Why Register fails; None accepts.
        hangs: Whether Register never returns.
        listens: Whether it calls ListAndWatch.
        moved: Sent after every event.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registered: list[device_plugin.RegisterRequest] = []
        self.refused = 0
        self.lists: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.raw: dict[str, device_plugin.ListAndWatchResponse] = {}
        self.ended: list[tuple[str, grpc.StatusCode]] = []
        self.refuse_with: str | None = None
        self.hangs = False
        self.listens = True
        self.moved = Wakeup()
        self._server: grpc.aio.Server | None = None
        self._listening: dict[str, asyncio.Task[None]] = {}
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def start(self, *, wipe: bool = True) -> None:
        """Empty the folder as a kubelet does when it starts, and take registrations."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir() if wipe else [self.folder / "kubelet.sock"]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        self._server = grpc.aio.server()
        handlers = methods.service(device_plugin.Registration.Register.by(self._register))
        self._server.add_generic_rpc_handlers((handlers,))
        self._server.add_insecure_port(f"unix:{self.folder}/kubelet.sock")
        await self._server.start()

    async def stop(self) -> None:
        """Let go of every plugin; what lies in the folder stays."""
        for resource in list(self._listening):
            await self.hang_up(resource)
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def hang_up(self, resource: str) -> None:
        """End the stream of one resource."""
        task = self._listening.pop(resource)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await self._channels.pop(resource).close()

    async def until(self, holds: Any) -> None:
        """Wait for what a test expects."""
        async with asyncio.timeout(20):
            await self.moved.until(holds)

    async def allocate(self, resource: str, *device_ids: str) -> Any:
        """Ask for one container; returns its answer."""
        one = device_plugin.ContainerAllocateRequest(devices_ids=device_ids)
        request = device_plugin.AllocateRequest(container_requests=[one])
        answer = await _PLUGIN.Allocate.on(self._channels[resource])(request, timeout=10)
        (response,) = answer.container_responses
        return response

    async def prefer(
        self, resource: str, available: list[str], must_include: list[str], count: int
    ) -> list[str]:
        """Ask which devices to take for one container."""
        one = device_plugin.ContainerPreferredAllocationRequest(
            available_deviceIDs=available,
            must_include_deviceIDs=must_include,
            allocation_size=count,
        )
        request = device_plugin.PreferredAllocationRequest(container_requests=[one])
        call = _PLUGIN.GetPreferredAllocation.on(self._channels[resource])
        answer = await call(request, timeout=10)
        (response,) = answer.container_responses
        return list(response.deviceIDs)

    async def _register(
        self, request: device_plugin.RegisterRequest, context: Any
    ) -> device_plugin.Empty:
        if self.refuse_with is not None:
            self.refused += 1
            self.moved.send()
            await context.abort(grpc.StatusCode.UNKNOWN, f"{request.endpoint}: {self.refuse_with}")
        if self.hangs:
            await asyncio.Event().wait()
        channel = grpc.aio.insecure_channel(f"unix:{self.folder / request.endpoint}")
        options = _PLUGIN.GetDevicePluginOptions.on(channel)
        answer = await options(device_plugin.Empty(), timeout=10)
        assert answer.get_preferred_allocation_available
        self.registered.append(request)
        self._channels[request.resource_name] = channel
        if self.listens:
            listening = self._listen(request.resource_name, channel)
            self._listening[request.resource_name] = asyncio.create_task(listening)
        self.moved.send()
        return device_plugin.Empty()

    async def _listen(self, resource: str, channel: grpc.aio.Channel) -> None:
        call = _PLUGIN.ListAndWatch.on(channel)(device_plugin.Empty())
        try:
            async for message in call:
                self.raw[resource] = message
                self.lists[resource].append({one.ID: one.health for one in message.devices})
                self.moved.send()
            self.ended.append((resource, await call.code()))
        except grpc.aio.AioRpcError as error:
            self.ended.append((resource, error.code()))
        self.moved.send()
