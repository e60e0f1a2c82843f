"""Why a pod gets nothing, and the nearest change that would help it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.catalog import library
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance
from partita.model.pod import Pod
from partita.model.resource import WHOLE_GPU, mig_profile, mig_resource
from partita.planner import blocking, eligibility
from partita.planner.counterpart import counterparts
from partita.planner.demand import Wish
from partita.planner.outcome import budget_mib
from partita.planner.plan import Blocker, Change, ChangeKind, GpuPlan, Reason, Unfit
from partita.planner.solver import Site, World

__all__ = ["refusals"]


@dataclass(frozen=True, slots=True)
class _Case:
    """One refused pod with what its refusal depends on."""

    fleet: Fleet
    pod: Pod
    sites: tuple[Site, ...]
    plans: Mapping[tuple[str, int], GpuPlan]
    nodes: frozenset[str]

    @property
    def resource(self) -> str:
        """The resource that decides: the one asked for most."""
        return max(sorted(self.pod.requests), key=lambda name: self.pod.requests[name])


def refusals(
    fleet: Fleet,
    place: World,
    gpus: Sequence[GpuPlan],
    wishes: Sequence[Wish],
    served: frozenset[str],
) -> tuple[Unfit, ...]:
    """Return the pods that are left out, most important first, with reasons and changes.

    Args:
        fleet: What stands.
        place: What could have been chosen.
        gpus: What was chosen.
        wishes: Every pending pod, most important first.
        served: Names of those that get what they ask for.
    """
    plans = {gpu.gpu.key: gpu for gpu in gpus}
    found = []
    seen: dict[object, tuple[Reason, str, tuple[Change, ...]]] = {}
    for wish in wishes:
        if wish.pod.full_name in served:
            continue
        key = (tuple(sorted(wish.pod.requests.items())), wish.nodes, wish.pod.memory_mib)
        if key not in seen:
            case = _Case(fleet, wish.pod, place.sites, plans, frozenset(wish.nodes))
            seen[key] = _explain(case)
        reason, detail, changes = seen[key]
        found.append(Unfit(pod=wish.pod, reason=reason, detail=detail, changes=changes))
    return tuple(found)


_Verdict = tuple[Reason, str, tuple[Change, ...]]


def _explain(case: _Case) -> _Verdict:
    capable = [site for site in case.sites if blocking.can_ever(site.gpu, case.resource)]
    if not capable:
        return _no_such_resource(case)
    eligible = [site for site in capable if site.gpu.node in case.nodes]
    if not eligible:
        return _no_eligible_node(case, capable)
    return (
        _other_name(case, eligible)
        or _too_small_a_budget(case, eligible)
        or _more_than_a_node(case)
        or _not_allowed(case, eligible)
        or _blocked(case, eligible)
    )


def _no_such_resource(case: _Case) -> _Verdict:
    resource = case.resource
    profile = mig_profile(resource)
    boards = sorted({site.gpu.product for site in case.sites})
    detail = f"{resource} exists on none of the boards here: {', '.join(boards) or 'no GPUs'}"
    changes: list[Change] = []
    if profile is not None:
        allowed = [site for site in case.sites if site.gpu.node in case.nodes]
        changes += counterparts(resource, allowed, case.plans)
        makers = [m.id for m in library.models() if m.mig is not None and profile in m.mig.by_name]
        if makers:
            text = f"add a GPU that has {profile}: {', '.join(makers[:4])}"
            changes.append(Change(kind=ChangeKind.ADD_GPU, text=text))
    elif resource != WHOLE_GPU:
        text = f"ask for {WHOLE_GPU}, or serve shared GPUs under the name {resource}"
        changes.append(Change(kind=ChangeKind.CHANGE_POLICY, text=text))
    return Reason.NO_SUCH_RESOURCE, detail, tuple(changes)


def _no_eligible_node(case: _Case, capable: Sequence[Site]) -> _Verdict:
    nodes = {node.name: node for node in case.fleet.nodes}
    reasons: dict[str, list[str]] = {}
    for name in sorted({site.gpu.node for site in capable}):
        if name in nodes:
            reasons.setdefault(eligibility.objection(case.pod, nodes[name]) or "", []).append(name)
    parts = [f"{blocking.some(names)}: {reason}" for reason, names in reasons.items() if reason]
    detail = f"{case.resource} could be served, but not where this pod may run: {'; '.join(parts)}"
    first = next((name for reason, names in reasons.items() if reason for name in names), "")
    text = f"let the pod run on {first}: {parts[0].split(': ', 1)[1]}" if parts else "add a node"
    return Reason.NO_ELIGIBLE_NODE, detail, (Change(kind=ChangeKind.FIX_NODE, text=text),)


def _other_name(case: _Case, eligible: Sequence[Site]) -> _Verdict | None:
    """Whole GPUs are there, but served under the other of their two names."""
    if mig_profile(case.resource) is not None:
        return None
    names = {site.permission.resource for site in eligible}
    if case.resource in names or not names:
        return None
    name = min(names)
    detail = f"the GPUs here are served as {name}, so {case.resource} stays at 0"
    text = f"ask for {name}"
    return Reason.NO_SUCH_RESOURCE, detail, (Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text),)


def _too_small_a_budget(case: _Case, eligible: Sequence[Site]) -> _Verdict | None:
    """Every slice of this name has less memory than the pod says it needs."""
    need = case.pod.memory_mib
    if need is None:
        return None
    budgets = [_budget(site, case.resource) for site in eligible]
    if any(budget is None or budget >= need for budget in budgets):
        return None
    largest = max(budget for budget in budgets if budget is not None)
    detail = f"needs {need} MiB, one {case.resource} has {largest} MiB at most"
    changes = []
    for site in eligible:
        alone = budget_mib(site.gpu, 1) or 0
        if site.permission.replicas > 1 and alone >= need:
            text = f"serve at most {alone // need} replicas of {site.gpu.product}"
            changes.append(Change(kind=ChangeKind.FEWER_REPLICAS, text=text))
            break
    changes.append(_large_enough(case.resource, eligible, need))
    return Reason.BUDGET, detail, tuple(changes)


def _large_enough(resource: str, eligible: Sequence[Site], need: int) -> Change:
    """What has the memory: a larger profile of the same boards, or another board."""
    profile = mig_profile(resource)
    larger = {
        (other.memory_mib, other.name)
        for site in eligible
        for other in blocking.profiles(site.gpu)
        if profile is not None and other.memory_mib is not None and other.memory_mib >= need
    }
    if larger:
        memory, name = min(larger)
        text = f"ask for {mig_resource(name)}, which has {memory} MiB"
        return Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text)
    boards = [m.id for m in library.models() if m.memory_mib is not None and m.memory_mib >= need]
    text = f"add a GPU with at least {need} MiB: {blocking.some(boards) or 'none is known'}"
    return Change(kind=ChangeKind.ADD_GPU, text=text)


def _budget(site: Site, resource: str) -> int | None:
    profile = mig_profile(resource)
    if profile is None:
        return budget_mib(site.gpu, site.permission.replicas)
    return blocking.profile_of(site.gpu, profile).memory_mib


def _more_than_a_node(case: _Case) -> _Verdict | None:
    """The pod asks for more slices than any one node could ever hold."""
    for resource, count in sorted(case.pod.requests.items()):
        most: dict[str, int] = {}
        for site in case.sites:
            if site.gpu.node in case.nodes and blocking.can_ever(site.gpu, resource):
                most[site.gpu.node] = most.get(site.gpu.node, 0) + _most(site, resource)
        best = max(most.values(), default=0)
        if count > best:
            node = max(most, key=lambda name: most[name], default="")
            detail = f"asks for {count} x {resource} on one node; the most there can be is {best}"
            text = f"ask for at most {best} per pod ({node})" if best else "add such a GPU"
            kind = ChangeKind.ASK_OTHER_PROFILE if best else ChangeKind.ADD_GPU
            return Reason.EXCEEDS_GPU, detail, (Change(kind=kind, text=text),)
    return None


def _most(site: Site, resource: str) -> int:
    profile = mig_profile(resource)
    if profile is None:
        return site.permission.replicas
    found = blocking.profile_of(site.gpu, profile)
    disjoint = 0
    end = 0
    for placement in found.placements:
        if placement.start >= end:
            disjoint, end = disjoint + 1, placement.end
    return min(disjoint, found.max_instances)


def _not_allowed(case: _Case, eligible: Sequence[Site]) -> _Verdict | None:
    """Policies or what is unknown keep every GPU that could serve it from being cut."""
    if any(blocking.may_serve(site, case.resource) for site in eligible):
        return None
    resets = [site for site in eligible if site.permission.reset_refused]
    if resets:
        gpu = resets[0].gpu
        detail = f"{_name(gpu)} would need a reset to change its MIG mode, which policy forbids"
        text = f"set mig.allowReset: true in the policy of {gpu.node}"
        return Reason.BLOCKED, detail, (Change(kind=ChangeKind.ALLOW_RESET, text=text),)
    reasons = sorted(
        {site.permission.frozen or "its policy does not allow it" for site in eligible}
    )
    detail = f"no GPU that could serve {case.resource} may be cut for it: {'; '.join(reasons)}"
    text = f"let a policy allow {case.resource} on {_name(eligible[0].gpu)}"
    return Reason.BLOCKED, detail, (Change(kind=ChangeKind.CHANGE_POLICY, text=text),)


def _blocked(case: _Case, eligible: Sequence[Site]) -> _Verdict:
    """Holders or other pending pods have the room."""
    blockers = sorted(
        (blocker for site in eligible for blocker in blocking.blockers(site, case.resource)),
        key=lambda b: (len(b.instances) + (not b.instances), len(b.holders), b.node, b.index),
    )
    open_places = [b for b in blockers if not b.instances and not b.holders]
    changes: list[Change] = []
    unknown = [site for site in eligible if any(len(i.candidates) > 1 for i in site.gpu.instances)]
    if unknown:
        gpu = unknown[0].gpu
        text = (
            f"add the output of `nvidia-smi mig -lgi` on {gpu.node}: it tells where instances are"
        )
        changes.append(Change(kind=ChangeKind.GIVE_PLACEMENTS, text=text))
    changes += counterparts(case.resource, eligible, case.plans)
    held = [b for b in blockers if b.instances or b.holders]
    if held:
        text = _end(held[0], case.resource)
        changes.append(Change(kind=ChangeKind.END_HOLDERS, text=text, blocker=held[0]))
    product = eligible[0].gpu.product
    changes.append(Change(kind=ChangeKind.ADD_GPU, text=f"add one more {product}"))
    if open_places:
        detail = f"the room for {case.resource} goes to other pending pods{_takers(case, eligible)}"
        return Reason.OUTRANKED, detail, tuple(changes)
    detail = f"every place for {case.resource} is held: {_places(held)}"
    return Reason.BLOCKED, detail, tuple(changes)


def _end(blocker: Blocker, resource: str) -> str:
    where = f"{blocker.node}/{blocker.index}"
    who = blocking.some(blocker.holders)
    if blocker.placement is None:
        return f"end {who}: frees the whole GPU {where}"
    what = ", ".join(f"{i.profile} at {_at(i)}" for i in blocker.instances)
    return f"end {who} ({what}): frees {blocker.placement} of {where} for {resource}"


def _at(instance: GpuInstance) -> str:
    return " or ".join(str(placement) for placement in instance.candidates)


def _places(held: Sequence[Blocker]) -> str:
    parts = []
    for blocker in held[:2]:
        place = f" {blocker.placement}" if blocker.placement is not None else ""
        parts.append(f"{blocker.node}/{blocker.index}{place} by {blocking.some(blocker.holders)}")
    more = len(held) - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _takers(case: _Case, eligible: Sequence[Site]) -> str:
    names = dict.fromkeys(
        name
        for site in eligible
        for name in (
            *case.plans[site.gpu.key].pods,
            *[pod for i in case.plans[site.gpu.key].instances for pod in i.pods],
        )
    )
    return f": {blocking.some(tuple(names))}" if names else ""


def _name(gpu: Gpu) -> str:
    return f"{gpu.node}/{gpu.index}"
