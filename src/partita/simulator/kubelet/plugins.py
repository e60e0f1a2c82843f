"""The plugins that a kubelet knows, and what they listed.

Kubernetes 1.37: several plugins may serve one resource. The one that registered last is asked, and
whoever sent a list last has said what there is. Which of several remaining ones takes over when
one leaves is chance in the real kubelet; here it is the one that registered last.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["GRACE_SECONDS", "Device", "Plugin", "Plugins", "RegistrationRefusedError", "Total"]

GRACE_SECONDS = 5 * 60
"""How long a resource without a plugin stays in the node's capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device in a plugin's list.

    Attributes:
        device_id: Device ID.
        healthy: Whether it may be given out.
        numa_nodes: NUMA nodes it is close to; empty when unknown.
    """

    device_id: str
    healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What a node object says of one resource: all devices, and the healthy ones."""

    capacity: int
    allocatable: int


@dataclass(slots=True, kw_only=True)
class Plugin:
    """A plugin of one resource.

    Attributes:
        socket: Its socket.
        prefers: Whether it is asked which devices it would rather give out.
        stopped_at: Monotonic time in seconds at which it left, None while it is there.
        lost_from_sight: Whether the kubelet no longer notices that it leaves.
    """

    socket: str
    prefers: bool = False
    stopped_at: float | None = None
    lost_from_sight: bool = False


class RegistrationRefusedError(Exception):
    """When a kubelet does not take a plugin, in its own words."""


@dataclass(slots=True)
class Plugins:
    """Plugins and devices of every resource.

    Attributes:
        asked: Resource name → plugin that is asked; it may have left.
        present: Resource name → socket → plugin whose stream is open, in order of registration.
        devices: Resource name → device ID → device, as in the last list.
        healthy: Resource name → devices that may be given out.
        unhealthy: Resource name → devices that may not.
    """

    asked: dict[str, Plugin] = field(default_factory=dict)
    present: dict[str, dict[str, Plugin]] = field(default_factory=dict)
    devices: dict[str, dict[str, Device]] = field(default_factory=dict)
    healthy: dict[str, frozenset[str]] = field(default_factory=dict)
    unhealthy: dict[str, frozenset[str]] = field(default_factory=dict)

    def remember(self, resource: str, now: float) -> None:
        """Know a resource from before a restart: no devices, and a plugin that has left."""
        self.healthy[resource] = self.unhealthy[resource] = frozenset()
        self.asked[resource] = Plugin(socket="", stopped_at=now)

    def connect(self, resource: str, socket: str, *, prefers: bool) -> None:
        """Take a plugin; from now on it is asked.

        Raises:
            RegistrationRefusedError: When its stream is open already. The refusal has a cost: the
                kubelet no longer notices when the stream ends, and the socket stays taken until
                the kubelet restarts (1.37, ``connectClient`` in ``plugin/v1beta1/handler.go``).
        """
        present = self.present.setdefault(resource, {})
        if (known := present.get(socket)) is not None:
            known.lost_from_sight = True
            raise RegistrationRefusedError(f"device plugin already connected: {socket}")
        present[socket] = self.asked[resource] = Plugin(socket=socket, prefers=prefers)

    def disconnect(self, resource: str, socket: str, now: float) -> None:
        """Let a plugin's stream end; with the last one every device becomes unhealthy."""
        present = self.present.get(resource, {})
        plugin = present.get(socket)
        if plugin is None or plugin.lost_from_sight:
            return
        plugin.stopped_at = now
        del present[socket]
        if present:
            self.asked[resource] = list(present.values())[-1]
            return
        del self.present[resource]
        healthy = self.healthy.get(resource, frozenset())
        self.unhealthy[resource] = self.unhealthy.get(resource, frozenset()) | healthy
        if resource in self.healthy:
            self.healthy[resource] = frozenset()

    def take_list(self, resource: str, devices: Iterable[Device]) -> None:
        """Replace what there is of a resource."""
        listed = {device.device_id: device for device in devices}
        healthy = frozenset(device.device_id for device in listed.values() if device.healthy)
        self.devices[resource] = listed
        self.healthy[resource] = healthy
        self.unhealthy[resource] = frozenset(listed.keys() - healthy)

    def totals(self, now: float) -> tuple[Mapping[str, Total], bool]:
        """Return the total of every resource, and whether one was dropped for good just now."""
        totals, dropped = {}, []
        for resource in self.healthy.keys() | self.unhealthy.keys():
            plugin = self.asked.get(resource)
            if plugin is None or _is_over(plugin, now):
                dropped.append(resource)
                continue
            healthy = len(self.healthy.get(resource, ()))
            unhealthy = len(self.unhealthy.get(resource, ()))
            totals[resource] = Total(capacity=healthy + unhealthy, allocatable=healthy)
        for resource in dropped:
            for kept in (self.asked, self.healthy, self.unhealthy):
                kept.pop(resource, None)
        return totals, bool(dropped)


def _is_over(plugin: Plugin, now: float) -> bool:
    return plugin.stopped_at is not None and now - plugin.stopped_at > GRACE_SECONDS
