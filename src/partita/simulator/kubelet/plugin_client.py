"""The kubelet's side of a connection to one device plugin."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc

from partita.simulator.kubelet.admission import (
    Allocate,
    Answer,
    PluginRefusedError,
    Prefer,
    Question,
)
from partita.simulator.kubelet.plugins import Device, RegistrationRefusedError
from partita.wire import device_plugin as v1beta1
from partita.wire.device_plugin import DevicePlugin

__all__ = ["PluginClient", "words_of"]

_PRE_START_SECONDS = 30
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.use_local_subchannel_pool", 1),  # nothing is known of who was at this socket before
)


class PluginClient:
    """A connected plugin."""

    def __init__(self, resource: str, socket: Path, channel: grpc.aio.Channel) -> None:
        self.resource = resource
        self.socket = socket
        self.options = v1beta1.DevicePluginOptions()
        self._channel = channel

    @classmethod
    async def dial(cls, resource: str, socket: Path, *, seconds: float) -> "PluginClient":
        """Connect to a plugin and ask it for its options.

        Raises:
            RegistrationRefusedError: When nobody answers in this time.
        """
        channel = grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)
        client = cls(resource, socket, channel)
        try:
            await asyncio.wait_for(channel.channel_ready(), seconds)
            client.options = await DevicePlugin.GetDevicePluginOptions.on(channel)(v1beta1.Empty())
        except TimeoutError as error:
            await channel.close()
            text = "failed to dial device plugin: context deadline exceeded"
            raise RegistrationRefusedError(text) from error
        except grpc.aio.AioRpcError as error:
            await channel.close()
            text = f"failed to get device plugin options: {words_of(error)}"
            raise RegistrationRefusedError(text) from error
        except asyncio.CancelledError:
            await channel.close()
            raise
        return client

    async def lists(self) -> AsyncIterator[tuple[Device, ...]]:
        """Yield every list that the plugin sends, until its stream ends for whatever reason."""
        try:
            async for message in DevicePlugin.ListAndWatch.on(self._channel)(v1beta1.Empty()):
                yield tuple(_device(device) for device in message.devices)
        except grpc.aio.AioRpcError:
            return

    async def answer(self, question: Question) -> Answer:
        """Ask the plugin.

        Raises:
            PluginRefusedError: When it answers with an error, or not at all.
        """
        try:
            if isinstance(question, Prefer):
                return await self._prefer(question)
            return await self._allocate(question)
        except grpc.aio.AioRpcError as error:
            raise PluginRefusedError(words_of(error)) from error

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Tell the plugin that a container with these devices is about to start.

        Raises:
            PluginRefusedError: When it answers with an error, or not at all.
        """
        request = v1beta1.PreStartContainerRequest(devices_ids=devices)
        try:
            await DevicePlugin.PreStartContainer.on(self._channel)(
                request, timeout=_PRE_START_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            failed = "device plugin PreStartContainer rpc failed with err: "
            raise PluginRefusedError(failed + words_of(error)) from error

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close()

    async def _prefer(self, question: Prefer) -> Answer:
        wanted = v1beta1.ContainerPreferredAllocationRequest(
            available_deviceIDs=question.available,
            must_include_deviceIDs=question.must_include,
            allocation_size=question.count,
        )
        response = await DevicePlugin.GetPreferredAllocation.on(self._channel)(
            v1beta1.PreferredAllocationRequest(container_requests=[wanted])
        )
        first = response.container_responses[:1]
        return tuple(device for one in first for device in one.deviceIDs)

    async def _allocate(self, question: Allocate) -> Answer:
        wanted = v1beta1.ContainerAllocateRequest(devices_ids=question.devices)
        response = await DevicePlugin.Allocate.on(self._channel)(
            v1beta1.AllocateRequest(container_requests=[wanted])
        )
        first = response.container_responses[:1]
        return first[0].SerializeToString() if first else None


def words_of(error: grpc.aio.AioRpcError) -> str:
    """Return what a program in Go makes of a failed call, which is what the kubelet repeats."""
    code = error.code().name.title().replace("_", "").replace("Cancelled", "Canceled")
    return f"rpc error: code = {code} desc = {error.details()}"


def _device(device: v1beta1.Device) -> Device:
    return Device(
        device_id=device.ID,
        healthy=device.health == "Healthy",
        numa_nodes=tuple(node.ID for node in device.topology.nodes),
    )
