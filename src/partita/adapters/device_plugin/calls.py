"""What the kubelet asks of a plugin, answered."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.ledger import Ledger, Refusal
from partita.adapters.device_plugin.listing import Streams
from partita.model.slice import Slice
from partita.ports.slice_server import REFUSED_UNDELIVERABLE, Offer, PreferenceRequest
from partita.wire import device_plugin, methods

__all__ = ["OPTIONS", "Desk", "Objection", "Prefer", "handlers"]

_LOG = logging.getLogger(__name__)

OPTIONS = device_plugin.DevicePluginOptions(get_preferred_allocation_available=True)
"""What the kubelet may call besides Allocate."""

Prefer = Callable[[PreferenceRequest], Sequence[str]]
Objection = Callable[[Sequence[str]], Awaitable[str | None]]
"""Returns why these device IDs must not be given away, None when they may be."""


@dataclass(kw_only=True)
class Desk:
    """What answers need and all resources share.

    Attributes:
        ledger: Promises.
        prefer: Which devices to take of those that are free.
        delivery: How devices get into containers.
        objection: Asked before each promise.
        on_promise: Called after a promise.
    """

    ledger: Ledger
    prefer: Prefer
    delivery: Delivery
    objection: Objection
    on_promise: Callable[[], None]

    async def allocate(
        self, current: Callable[[], Offer], request: device_plugin.AllocateRequest
    ) -> device_plugin.AllocateResponse:
        """Promise, then say how each container gets its devices.

        Raises:
            Refusal: When it cannot have them; nothing is promised then.
        """
        containers = [list(one.devices_ids) for one in request.container_requests]
        against = await self.objection([name for names in containers for name in names])
        if against is not None:
            raise Refusal(against)
        offer = current()
        slices = {one.slice.device_id: one.slice for one in offer.slices}
        self._check([slices[name] for names in containers for name in names if name in slices])
        self.ledger.grant(offer, containers)
        self.on_promise()
        return device_plugin.AllocateResponse(
            container_responses=[
                self.delivery.response([slices[name] for name in names], str(uuid.uuid4()))
                for names in containers
            ]
        )

    def _check(self, slices: Sequence[Slice]) -> None:
        """Refuse what could not be used by the container that gets it."""
        for one in slices:
            why = self.delivery.obstacle(one.device)
            if why is not None:
                raise Refusal(f"{REFUSED_UNDELIVERABLE}: {one.device}: {why}")

    def choose(
        self, offer: Offer, asked: device_plugin.ContainerPreferredAllocationRequest
    ) -> list[str]:
        """Return which devices to take for one container; the first ones if nobody can tell."""
        request = PreferenceRequest(
            offer=offer,
            available=tuple(asked.available_deviceIDs),
            must_include=tuple(asked.must_include_deviceIDs),
            count=asked.allocation_size,
        )
        try:
            return _checked(self.prefer(request), request)
        except Exception:  # noqa: BLE001 - a pod must not fail because of a mere preference
            _LOG.exception("no preference for a container of %s", offer.resource)
            first = dict.fromkeys((*request.must_include, *request.available))
            return list(first)[: max(request.count, len(request.must_include))]


def handlers(desk: Desk, offer: Callable[[], Offer], streams: Streams) -> grpc.GenericRpcHandler:
    """Return the answers for one resource; ``offer`` tells what is offered at that moment."""

    async def options(_: device_plugin.Empty, __: object) -> device_plugin.DevicePluginOptions:
        return OPTIONS

    async def watch(_: device_plugin.Empty, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await streams.follow(context.write)

    async def prefer(
        request: device_plugin.PreferredAllocationRequest, _: object
    ) -> device_plugin.PreferredAllocationResponse:
        chosen = [desk.choose(offer(), one) for one in request.container_requests]
        return device_plugin.PreferredAllocationResponse(
            container_responses=[
                device_plugin.ContainerPreferredAllocationResponse(deviceIDs=names)
                for names in chosen
            ]
        )

    async def allocate(
        request: device_plugin.AllocateRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> device_plugin.AllocateResponse:
        try:
            return await desk.allocate(offer, request)
        except Refusal as refusal:
            _LOG.warning("refused: %s", refusal)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))

    async def start(
        _: device_plugin.PreStartContainerRequest, __: object
    ) -> device_plugin.PreStartContainerResponse:
        return device_plugin.PreStartContainerResponse()

    served = device_plugin.DevicePlugin
    return methods.service(
        served.GetDevicePluginOptions.by(options),
        served.ListAndWatch.by(watch),
        served.GetPreferredAllocation.by(prefer),
        served.Allocate.by(allocate),
        served.PreStartContainer.by(start),
    )


def _checked(names: Sequence[str], request: PreferenceRequest) -> list[str]:
    chosen = list(dict.fromkeys(names))
    allowed = {*request.available, *request.must_include}
    if len(chosen) != request.count or not set(request.must_include) <= set(chosen) <= allowed:
        raise ValueError(f"not an answer to {request}: {chosen}")
    return chosen
