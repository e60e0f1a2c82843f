"""A slice server that hands its lists to a kubelet in memory, without gRPC."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from partita.errors import KubeletError
from partita.ports.clock import Clock
from partita.ports.slice_server import (
    REFUSED_GONE,
    REFUSED_MANY,
    REFUSED_RETIRED,
    Offer,
    OfferedSlice,
    PreferenceRequest,
    ServingState,
    Session,
)
from partita.simulator.kubelet.admission import Allocate, Answer, PluginRefusedError, Question
from partita.simulator.kubelet.in_memory import InMemoryKubelet
from partita.simulator.kubelet.plugins import Device, RegistrationRefusedError

__all__ = ["InMemorySliceServer"]

_Prefer = Callable[[PreferenceRequest], Sequence[str]]


def _leaving_last(request: PreferenceRequest) -> Sequence[str]:
    """Prefer what is not leaving, by device ID."""
    leaving = {one.slice.device_id for one in request.offer.slices if one.leaving}
    ranked = sorted(
        request.available, key=lambda one: (one not in request.must_include, one in leaving, one)
    )
    return ranked[: request.count]


@dataclass(slots=True)
class _Serving:
    """What is between us and the kubelet for one resource."""

    offer: Offer
    socket: str
    generation: int = 0  # of the kubelet that accepted us
    delivered: Offer | None = None  # by that kubelet
    problem: str | None = None


class InMemorySliceServer:
    """A ``ports.slice_server.SliceServer`` of one kubelet; one per resource would be one plugin.

    It does not notice by itself that the kubelet has restarted: ``catch_up`` says when.
    """

    def __init__(
        self,
        kubelet: InMemoryKubelet,
        clock: Clock,
        *,
        prefer: _Prefer = _leaving_last,
        name: str = "plugin",
    ) -> None:
        """Serve nothing yet.

        Args:
            kubelet: The kubelet.
            clock: Tells the times of promises.
            prefer: Which devices a container is best given.
            name: What the names of its sockets begin with.
        """
        self._kubelet = kubelet
        self._clock = clock
        self._prefer = prefer
        self._name = name
        self._sockets: set[str] = set()  # that were ever ours
        self._has_ended = False
        self._serving: dict[str, _Serving] = {}
        self._offered: dict[str, str] = {}  # device ID → resource
        self._retired: set[str] = set()
        self._promised: dict[str, float] = {}

    # ---- ports.slice_server.SliceServer --------------------------------------------------------

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Make this the whole of what is offered, and send it to the kubelet."""
        offered = [(offer.resource, one) for offer in offers for one in offer.slices]
        self._offered = {one.slice.device_id: resource for resource, one in offered}
        self._retired -= {one.slice.device_id for _, one in offered if one.usable}
        for resource in self._serving.keys() - {offer.resource for offer in offers}:
            left = self._serving.pop(resource)
            self._send(left, ())  # without it the kubelet would wait for us for minutes
            self._leave(left)
        for offer in offers:
            serving = self._serving.get(offer.resource)
            if serving is None:
                serving = self._serving[offer.resource] = _Serving(offer, self._new_socket())
            serving.offer = offer
        self._retired &= self._offered.keys() | self._promised.keys()
        self.catch_up()

    async def announce(self) -> None:
        """Send the present lists again although nothing changed."""
        for serving in self._serving.values():
            serving.delivered = None
        self.catch_up()

    async def reconnect(self, resource: str) -> None:
        """Register a resource anew although its stream lives."""
        await self._register_anew(resource)

    def state(self) -> ServingState:
        """Return how far the kubelet has heard, and what was promised to it."""
        sessions = {name: self._session(one) for name, one in self._serving.items()}
        return ServingState(sessions=sessions, promised=dict(self._promised))

    def retire(self, device_ids: Collection[str]) -> bool:
        """Refuse these from now on; False when one was promised since ``forget``."""
        if not self._promised.keys().isdisjoint(device_ids):
            return False
        self._retired.update(device_ids)
        return True

    def forget(self, promised: Mapping[str, float]) -> None:
        """Drop promises that are settled, unless they were made again after the time given."""
        for device, seconds in promised.items():
            if self._promised.get(device, seconds) <= seconds:
                self._promised.pop(device, None)

    async def close(self) -> None:
        """Stop serving everything; the kubelet keeps its devices for a plugin that comes back."""
        self.vanish()

    def vanish(self) -> None:
        """End all streams, as the end of the process does. Another server is its restart."""
        self._has_ended = True
        for serving in self._serving.values():
            self._leave(serving)
        self._serving.clear()
        self._offered.clear()

    # ---- the kubelet's side --------------------------------------------------------------------

    def catch_up(self) -> None:
        """Register what is not connected, and send every offer that was not sent."""
        for serving in self._serving.values():
            self._deliver(serving)

    async def _register_anew(self, resource: str) -> None:
        serving = self._serving.get(resource)
        if serving is not None:
            self._leave(serving)
            serving.generation = 0
            self._deliver(serving)

    def _deliver(self, serving: _Serving) -> None:
        self._connect(serving)
        if self._is_connected(serving) and serving.delivered != serving.offer:
            serving.delivered = serving.offer
            self._send(serving, serving.offer.slices)

    def answer(self, question: Question) -> Answer | PluginRefusedError:
        """Answer as the plugin does; Allocate is a promise from this moment on.

        To a question for another server, which has ended, nobody answers but the connection.
        """
        if self._has_ended or question.socket not in self._sockets:
            return PluginRefusedError("rpc error: code = Unavailable desc = connection refused")
        serving = self._serving.get(question.resource)
        if serving is None:
            return PluginRefusedError(f"nobody serves: {question.resource}")
        if not isinstance(question, Allocate):
            request = PreferenceRequest(
                offer=serving.offer,
                available=question.available,
                must_include=question.must_include,
                count=question.count,
            )
            return tuple(self._prefer(request))
        return self._allocate(serving.offer, question.devices)

    def _allocate(self, offer: Offer, devices: Sequence[str]) -> Answer | PluginRefusedError:
        for device in devices:
            if self._offered.get(device) != offer.resource:
                return PluginRefusedError(f"{REFUSED_GONE}: {device}")
            if device in self._retired:
                return PluginRefusedError(f"{REFUSED_RETIRED}: {device}")
        if offer.one_each and len(devices) > 1:
            return PluginRefusedError(f"{REFUSED_MANY}, asked for: {len(devices)}")
        self._promised |= dict.fromkeys(devices, self._clock.monotonic())
        return b""

    def _connect(self, serving: _Serving) -> None:
        if self._is_connected(serving):
            return
        serving.delivered, serving.socket = None, self._new_socket()
        try:
            self._kubelet.connect(serving.offer.resource, serving.socket, prefers=True)
        except (KubeletError, RegistrationRefusedError) as error:
            serving.problem = getattr(error, "message", str(error))
        else:
            serving.generation, serving.problem = self._kubelet.generation, None

    def _send(self, serving: _Serving, slices: Sequence[OfferedSlice] | None) -> None:
        """Send a list if there is somebody to send it to; None ends the stream."""
        if self._is_connected(serving):
            devices = tuple(map(_device, slices)) if slices is not None else None
            self._kubelet.send(serving.offer.resource, serving.socket, devices)

    def _leave(self, serving: _Serving) -> None:
        self._send(serving, None)

    def _is_connected(self, serving: _Serving) -> bool:
        running = self._kubelet.process is not None
        return running and serving.generation == self._kubelet.generation

    def _session(self, serving: _Serving) -> Session:
        connected = self._is_connected(serving)
        return Session(
            resource=serving.offer.resource,
            connected=connected,
            delivered=connected and serving.delivered == serving.offer,
            problem=serving.problem,
        )

    def _new_socket(self) -> str:
        socket = f"{self._name}-{len(self._sockets) + 1}.sock"
        self._sockets.add(socket)
        return socket


def _device(one: OfferedSlice) -> Device:
    nodes = () if one.slice.numa_node is None else (one.slice.numa_node,)
    return Device(device_id=one.slice.device_id, healthy=one.usable, numa_nodes=nodes)
