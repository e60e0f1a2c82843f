"""Pods as far as a device manager looks at them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Container", "Pod"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container of a pod's specification.

    Attributes:
        name: Its name.
        requests: Resource name → number of devices, from the limits.
        initial: Whether it is an init container, which leaves its devices to the others.
        restartable: Whether an init container runs on beside the others (a sidecar).
    """

    name: str
    requests: Mapping[str, int] = field(default_factory=dict)
    initial: bool = False
    restartable: bool = False

    @property
    def listed(self) -> bool:
        """Whether the PodResources API tells of it."""
        return self.restartable or not self.initial


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod bound to the node.

    Attributes:
        uid: UID.
        name: Name.
        namespace: Namespace.
        containers: Init containers first, each kind in the order of the specification.
        requests: Resource name → number of devices that the scheduler counts for it.
    """

    uid: str
    name: str
    namespace: str = "default"
    containers: tuple[Container, ...] = ()
    requests: Mapping[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Add up once what is looked at for every pod that comes later."""
        object.__setattr__(self, "requests", _requests(self.containers))


def _requests(containers: Iterable[Container]) -> Mapping[str, int]:
    """Return what the scheduler counts; an init container needs it only for a while."""
    lasting: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        for resource, count in container.requests.items():
            now = lasting.get(resource, 0) + count
            peak[resource] = max(peak.get(resource, 0), now)
            if container.listed:
                lasting[resource] = now
    return peak
