"""Tries a change before it is recommended: makes it, plans its node again, and looks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from partita.config.partition_policy import PartitionPolicy
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, Hold, MigMode
from partita.model.pod import Pod
from partita.model.resource import mig_resource
from partita.planner.choice import choose
from partita.planner.plan import Assignment

__all__ = ["Trial"]

_NEW_NODE = "one-more"


@dataclass(frozen=True, slots=True)
class Trial:
    """A fleet with its plan, to try changes on.

    Attributes:
        fleet: What stands.
        policies: What may be done.
        assignments: What the plan gives to other pods; a change must leave them served.
    """

    fleet: Fleet
    policies: Sequence[PartitionPolicy]
    assignments: Sequence[Assignment]

    def alone(self, pod: Pod, node: str) -> bool:
        """Tell whether the pod would fit on a node if no other pod waited."""
        return self._fits([pod], node, self._gpus(node), self._held(node))

    def ever(self, pod: Pod, node: str) -> bool:
        """Tell whether the pod would fit on a node if nobody held anything there."""
        gpus = [_freed(gpu, None) for gpu in self._gpus(node)]
        return self._fits([pod], node, gpus, {})

    def ends(self, pod: Pod, node: str, holders: frozenset[str]) -> bool:
        """Tell whether the pod fits once these holders of a node have ended."""
        gpus = [_freed(gpu, holders) for gpu in self._gpus(node)]
        held = self._held(node)
        for before, after in zip(self._gpus(node), gpus, strict=True):
            for resource in _released(before, after):
                held[node, resource] = max(0, held.get((node, resource), 0) - 1)
        return self._fits([pod, *self._others(node)], node, gpus, held)

    def asks(self, pod: Pod, node: str, resource: str, other: str) -> bool:
        """Tell whether the pod fits on a node when it asks for another resource instead."""
        requests = {name: n for name, n in pod.requests.items() if name != resource}
        requests[other] = requests.get(other, 0) + pod.requests[resource]
        changed = replace(pod, requests=requests)
        return self._fits([changed, *self._others(node)], node, self._gpus(node), self._held(node))

    def adds(self, pod: Pod, like: Gpu, count: int) -> bool:
        """Tell whether the pod fits on one more node with ``count`` GPUs like this one."""
        gpus = [
            replace(
                like,
                node=_NEW_NODE,
                index=index,
                uuid=None,
                mig_mode=like.mig_mode if like.mig_mode is MigMode.UNSUPPORTED else MigMode.OFF,
                instances=(),
                hold=Hold.FREE,
                holders=(),
                slots_held=0,
                problem=None,
                single_strategy=False,
            )
            for index in range(count)
        ]
        return self._fits([pod], like.node, gpus, {}, name=_NEW_NODE)

    def resets(self, pod: Pod, node: str) -> bool:
        """Tell whether the pod fits on a node when policies allow a reset there."""
        allowed = [replace(p, mig=replace(p.mig, allow_reset=True)) for p in self.policies]
        pods = [pod, *self._others(node)]
        return self._fits(pods, node, self._gpus(node), self._held(node), policies=allowed)

    def _fits(
        self,
        pods: Iterable[Pod],
        node: str,
        gpus: Sequence[Gpu],
        held: Mapping[tuple[str, str], int],
        *,
        name: str | None = None,
        policies: Sequence[PartitionPolicy] | None = None,
    ) -> bool:
        """Plan one node for some pods; ``name`` renames it, ``policies`` replaces the policies."""
        found = next((n for n in self.fleet.nodes if n.name == node), None)
        if found is None:
            return False
        waiting = tuple(pods)
        small = Fleet(
            nodes=(replace(found, name=name or node),),
            gpus=tuple(gpus),
            pods=waiting,
            held=held,
        )
        chosen = choose(small, self.policies if policies is None else policies)
        return all(pod.full_name in chosen.served for pod in waiting)

    def _gpus(self, node: str) -> list[Gpu]:
        return [gpu for gpu in self.fleet.gpus if gpu.node == node]

    def _held(self, node: str) -> dict[tuple[str, str], int]:
        return {key: count for key, count in self.fleet.held.items() if key[0] == node}

    def _others(self, node: str) -> list[Pod]:
        names = {one.pod for one in self.assignments if one.node == node}
        return [pod for pod in self.fleet.pods if pod.full_name in names and pod.node is None]


def _freed(gpu: Gpu, holders: frozenset[str] | None) -> Gpu:
    """Return the GPU without these holders; None = without any."""

    def ends(hold: Hold, names: Sequence[str]) -> bool:
        return hold.pinned and (holders is None or (bool(names) and holders.issuperset(names)))

    instances = tuple(
        replace(i, hold=Hold.FREE, holders=()) if ends(i.hold, i.holders) else i
        for i in gpu.instances
    )
    if ends(gpu.hold, gpu.holders):
        return replace(gpu, hold=Hold.FREE, holders=(), slots_held=0, instances=instances)
    return replace(gpu, instances=instances)


def _released(before: Gpu, after: Gpu) -> list[str]:
    """Return the resource of each slice that is free now and was not."""
    found = [
        mig_resource(old.profile)
        for old, new in zip(before.instances, after.instances, strict=True)
        if old.hold is not new.hold
    ]
    if before.hold is not after.hold:
        found += [before.resource] * before.replicas
    return found
