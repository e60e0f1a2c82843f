"""What would make a refused pod fit, each change tried before it is named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance
from partita.model.pod import Pod
from partita.model.resource import mig_resource
from partita.planner import blocking
from partita.planner.counterpart import fitting
from partita.planner.plan import Blocker, Change, ChangeKind, GpuPlan
from partita.planner.solver import Site
from partita.planner.trial import Trial

__all__ = ["Case", "other_profile", "remedies"]

_NODES = 4  # nodes on which a change is tried
_TRIES = 6  # changes of one kind that are tried


@dataclass(frozen=True, slots=True)
class Case:
    """One refused pod with what its refusal depends on.

    Attributes:
        fleet: What stands.
        pod: The pod.
        sites: All GPUs with their outcomes.
        plans: What was chosen for each GPU.
        nodes: Nodes that the pod may run on.
        trial: To try changes on.
    """

    fleet: Fleet
    pod: Pod
    sites: tuple[Site, ...]
    plans: Mapping[tuple[str, int], GpuPlan]
    nodes: frozenset[str]
    trial: Trial

    @property
    def resource(self) -> str:
        """The resource that decides: the one asked for most."""
        return max(sorted(self.pod.requests), key=lambda name: self.pod.requests[name])

    @property
    def slices(self) -> int:
        """How many slices the pod asks for."""
        return sum(self.pod.requests.values())


def remedies(
    case: Case, eligible: Sequence[Site], blockers: Sequence[Blocker]
) -> tuple[Change, ...]:
    """Return changes that make the pod fit, the smallest first.

    Args:
        case: The refused pod.
        eligible: GPUs that could serve it, on nodes where it may run.
        blockers: What is in the way on them, least first.
    """
    return (
        *_placements(eligible),
        *other_profile(case, eligible),
        *_reset(case, eligible),
        *_end(case, blockers),
        *_add(case, eligible),
    )


def _placements(eligible: Sequence[Site]) -> Iterator[Change]:
    """Placements that the input does not tell may be what is in the way."""
    for site in eligible:
        if any(len(instance.candidates) > 1 for instance in site.gpu.instances):
            text = f"add the output of `nvidia-smi mig -lgi` on {site.gpu.node}: "
            text += "it tells where instances are"
            yield Change(kind=ChangeKind.GIVE_PLACEMENTS, text=text)
            return


def other_profile(case: Case, eligible: Sequence[Site]) -> Iterator[Change]:
    """Yield the nearest other profile that fits beside the plan, if there is one."""
    for found in fitting(case.resource, eligible, case.plans)[:_TRIES]:
        other = mig_resource(found.profile)
        if case.trial.asks(case.pod, found.gpu.node, case.resource, other):
            where = f"{found.gpu.node}/{found.gpu.index}"
            if case.slices > 1:
                where = found.gpu.node
            elif found.placement is not None:
                where += f" at {found.placement}"
            text = f"ask for {other}: fits now on {where}"
            yield Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text)
            return


def _reset(case: Case, eligible: Sequence[Site]) -> Iterator[Change]:
    nodes = dict.fromkeys(s.gpu.node for s in eligible if _only_reset_refused(s, case.resource))
    for node in list(nodes)[:_NODES]:
        if case.trial.resets(case.pod, node):
            text = f"set mig.allowReset: true in the policy of {node}"
            yield Change(kind=ChangeKind.ALLOW_RESET, text=text)
            return


def _only_reset_refused(site: Site, resource: str) -> bool:
    """Whether nothing but the forbidden reset keeps the GPU from serving the resource."""
    permission = site.permission
    if not permission.reset_refused:
        return False
    allowed = replace(permission, change_mode=True, reset_refused=False)
    return blocking.may_serve(replace(site, permission=allowed), resource)


def _end(case: Case, blockers: Sequence[Blocker]) -> Iterator[Change]:
    by_node: dict[str, list[Blocker]] = {}
    for blocker in blockers:
        if blocker.instances or blocker.holders:
            by_node.setdefault(blocker.node, []).append(blocker)
    for node, in_the_way in list(by_node.items())[:_NODES]:
        alone = case.slices == 1
        chosen: list[Blocker] = []
        for blocker in in_the_way[:_TRIES] if alone else _one_per_gpu(in_the_way):
            chosen = [blocker] if alone else [*chosen, blocker]
            holders = frozenset(name for b in chosen for name in b.holders)
            if case.trial.ends(case.pod, node, holders):
                text = _end_text(chosen, case.resource)
                yield Change(kind=ChangeKind.END_HOLDERS, text=text, blocker=chosen[0])
                return


def _one_per_gpu(blockers: Sequence[Blocker]) -> list[Blocker]:
    first: dict[int, Blocker] = {}
    for blocker in blockers:
        first.setdefault(blocker.index, blocker)
    return list(first.values())


def _end_text(chosen: Sequence[Blocker], resource: str) -> str:
    who = blocking.some(tuple(dict.fromkeys(name for b in chosen for name in b.holders)))
    if len(chosen) > 1:
        gpus = ", ".join(str(blocker.index) for blocker in chosen)
        return f"end {who}: frees GPUs {gpus} of {chosen[0].node} for {resource}"
    blocker = chosen[0]
    where = f"{blocker.node}/{blocker.index}"
    if blocker.placement is None:
        return f"end {who}: frees the whole GPU {where}"
    what = ", ".join(f"{i.profile} at {_at(i)}" for i in blocker.instances)
    return f"end {who} ({what}): frees {blocker.placement} of {where} for {resource}"


def _at(instance: GpuInstance) -> str:
    return " or ".join(str(placement) for placement in instance.candidates)


def _add(case: Case, eligible: Sequence[Site]) -> Iterator[Change]:
    boards: dict[str, Gpu] = {}
    for site in eligible:
        boards.setdefault(site.gpu.product, site.gpu)
    for product, gpu in list(boards.items())[:_NODES]:
        for count in dict.fromkeys((1, case.slices)):
            if case.trial.adds(case.pod, gpu, count):
                one = f"add one more {product}"
                text = one if count == 1 else f"add a node with {count} x {product}"
                yield Change(kind=ChangeKind.ADD_GPU, text=text)
                return
