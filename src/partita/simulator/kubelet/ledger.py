"""Which pods are active, and what pods were given: the two can differ for a while.

A kubelet lets go of an ended pod's devices only when it has reason to look: before it gives
devices, and when a monitor asks it to list them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.simulator.kubelet.checkpoint import Entry
from partita.simulator.kubelet.pods import Pod

__all__ = ["Ledger"]


@dataclass(slots=True)
class Ledger:
    """Active pods and given devices.

    Attributes:
        pods: Active pods by UID, in the order in which the kubelet heard of them.
        all_pods_known: Whether these are all; until then nothing is let go.
        held: Pod UID → container → resource → what it was given.
        taken: Resource name → devices that are not given to others. The real kubelet keeps it
            beside ``held``, too, and the two come apart: whoever lets go of an ended pod while
            Allocate is on its way counts anew, without the devices on their way.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    all_pods_known: bool = False
    held: dict[str, dict[str, dict[str, Entry]]] = field(default_factory=dict)
    taken: dict[str, set[str]] = field(default_factory=dict)

    def record(self, entry: Entry) -> None:
        """Note what a container was given. Does not touch ``taken``."""
        containers = self.held.setdefault(entry.pod_uid, {})
        containers.setdefault(entry.container, {})[entry.resource] = entry

    def of(self, uid: str, container: str) -> Mapping[str, Entry]:
        """Return by resource what a container was given."""
        return self.held.get(uid, {}).get(container, {})

    def requested(self, resource: str, *, besides: str) -> int:
        """Return how many devices the other active pods ask for."""
        others = (pod for uid, pod in self.pods.items() if uid != besides)
        return sum(pod.requests.get(resource, 0) for pod in others)

    def entries(self) -> tuple[Entry, ...]:
        """Return everything that was given."""
        return tuple(
            entry
            for containers in self.held.values()
            for resources in containers.values()
            for entry in resources.values()
        )

    def let_go(self) -> None:
        """Drop what pods hold that are not active."""
        if not self.all_pods_known:
            return
        ended = self.held.keys() - self.pods.keys()
        if not ended:
            return
        for uid in ended:
            del self.held[uid]
        self.count_anew()

    def count_anew(self) -> None:
        """Take as taken exactly what is recorded."""
        self.taken = {}
        for entry in self.entries():
            self.taken.setdefault(entry.resource, set()).update(entry.devices)
