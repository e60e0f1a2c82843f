"""Why a pod gets nothing, and the nearest change that would help it."""

from collections.abc import Iterator, Sequence

from partita.catalog import library
from partita.config.partition_policy import PartitionPolicy
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, Hold
from partita.model.resource import WHOLE_GPU, mig_profile, mig_resource
from partita.planner import blocking, eligibility
from partita.planner.choice import Chosen
from partita.planner.counterpart import existing
from partita.planner.outcome import budget_mib
from partita.planner.plan import (
    Assignment,
    Blocker,
    Change,
    ChangeKind,
    GpuPlan,
    Reason,
    Unfit,
)
from partita.planner.remedy import Case, other_profile, remedies
from partita.planner.solver import Site
from partita.planner.trial import Trial

__all__ = ["refusals"]

_NODES = 16  # nodes on which it is tried whether a pod of several slices fits at all


def refusals(
    fleet: Fleet,
    policies: Sequence[PartitionPolicy],
    chosen: Chosen,
    gpus: Sequence[GpuPlan],
    assignments: Sequence[Assignment],
) -> tuple[Unfit, ...]:
    """Return the pods that are left out, most important first, with reasons and changes.

    Args:
        fleet: What stands.
        policies: What may be done.
        chosen: The choice behind the plan.
        gpus: The plan of each GPU.
        assignments: Who gets which slice.
    """
    trial = Trial(fleet, policies, assignments)
    plans = {gpu.gpu.key: gpu for gpu in gpus}
    found = []
    seen: dict[object, tuple[Reason, str, tuple[Change, ...]]] = {}
    for wish in chosen.wishes:
        if wish.pod.full_name in chosen.served:
            continue
        key = (tuple(sorted(wish.pod.requests.items())), wish.nodes, wish.pod.memory_mib)
        if key not in seen:
            case = Case(fleet, wish.pod, chosen.place.sites, plans, frozenset(wish.nodes), trial)
            seen[key] = _explain(case)
        reason, detail, changes = seen[key]
        found.append(Unfit(pod=wish.pod, reason=reason, detail=detail, changes=changes))
    return tuple(found)


_Verdict = tuple[Reason, str, tuple[Change, ...]]


def _explain(case: Case) -> _Verdict:
    capable = [site for site in case.sites if blocking.can_ever(site.gpu, case.resource)]
    if not capable:
        return _broken(case) or _no_such_resource(case)
    eligible = [site for site in capable if site.gpu.node in case.nodes]
    if not eligible:
        return _no_eligible_node(case, capable)
    return (
        _other_name(case, eligible)
        or _too_small_a_budget(case, eligible)
        or _more_than_a_node(case)
        or _never_together(case, eligible)
        or _not_allowed(case, eligible)
        or _blocked(case, eligible)
    )


def _broken(case: Case) -> _Verdict | None:
    """The boards that have it are there, but in error."""
    sites = [s for s in case.sites if s.gpu.problem and blocking.has(s.gpu, case.resource)]
    if not sites:
        return None
    parts = [f"{_name(site.gpu)}: {site.gpu.problem}" for site in sites]
    detail = f"every GPU that could serve {case.resource} is in error: {blocking.some(parts)}"
    text = f"repair {_name(sites[0].gpu)}, or give readings of it"
    return Reason.BROKEN, detail, (Change(kind=ChangeKind.FIX_NODE, text=text),)


def _no_such_resource(case: Case) -> _Verdict:
    resource = case.resource
    profile = mig_profile(resource)
    boards = sorted({site.gpu.product for site in case.sites})
    detail = f"{resource} exists on none of the boards here: {', '.join(boards) or 'no GPUs'}"
    changes: list[Change] = []
    if profile is not None:
        allowed = [site for site in case.sites if site.gpu.node in case.nodes]
        changes += _counterpart(case, allowed)
        makers = [m.id for m in library.models() if m.mig is not None and profile in m.mig.by_name]
        if makers:
            text = f"add a GPU that has {profile}: {', '.join(makers[:4])}"
            changes.append(Change(kind=ChangeKind.ADD_GPU, text=text))
    elif resource != WHOLE_GPU:
        text = f"ask for {WHOLE_GPU}, or serve shared GPUs under the name {resource}"
        changes.append(Change(kind=ChangeKind.CHANGE_POLICY, text=text))
    return Reason.NO_SUCH_RESOURCE, detail, tuple(changes)


def _counterpart(case: Case, allowed: Sequence[Site]) -> Iterator[Change]:
    """The nearest profile of the boards that are there, first one that fits now."""
    fitting = tuple(other_profile(case, allowed))
    if fitting:
        yield from fitting
        return
    near = existing(case.resource, allowed)
    if near:
        other, product = mig_resource(near[0].profile), near[0].gpu.product
        text = f"ask for {other}, the counterpart on {product}"
        yield Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text)


def _no_eligible_node(case: Case, capable: Sequence[Site]) -> _Verdict:
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


def _other_name(case: Case, eligible: Sequence[Site]) -> _Verdict | None:
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


def _too_small_a_budget(case: Case, eligible: Sequence[Site]) -> _Verdict | None:
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


def _more_than_a_node(case: Case) -> _Verdict | None:
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


def _never_together(case: Case, eligible: Sequence[Site]) -> _Verdict | None:
    """The slices of one pod can never stand together on one node."""
    nodes = list(dict.fromkeys(site.gpu.node for site in eligible))
    frozen = any(site.permission.frozen is not None for site in eligible)
    if case.slices == 1 or len(nodes) > _NODES or frozen:
        return None
    if any(case.trial.ever(case.pod, node) for node in nodes):
        return None
    asked = " + ".join(f"{n} x {name}" for name, n in sorted(case.pod.requests.items()))
    detail = f"{asked} cannot be on one node at once, even if nobody held anything"
    text = "split the pod, or ask for slices that can stand together"
    change = Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text)
    return Reason.EXCEEDS_GPU, detail, (change,)


def _not_allowed(case: Case, eligible: Sequence[Site]) -> _Verdict | None:
    """Policies or what is unknown keep every GPU that could serve it from being cut."""
    if any(blocking.may_serve(site, case.resource) for site in eligible):
        return None
    changes = remedies(case, eligible, ())
    gpu = eligible[0].gpu
    if any(change.kind is ChangeKind.ALLOW_RESET for change in changes):
        detail = f"{_name(gpu)} would need a reset to change its MIG mode, which policy forbids"
        return Reason.NOT_ALLOWED, detail, changes
    reasons = sorted({_why_not(site, case.resource) for site in eligible})
    detail = f"no GPU that could serve {case.resource} may be cut for it: {'; '.join(reasons)}"
    text = f"let a policy allow {case.resource} on {_name(gpu)}"
    if gpu.single_strategy:
        text = f"set migStrategy mixed on {gpu.node}: slices then have names of their own"
    return Reason.NOT_ALLOWED, detail, (Change(kind=ChangeKind.CHANGE_POLICY, text=text), *changes)


def _why_not(site: Site, resource: str) -> str:
    permission = site.permission
    profile = mig_profile(resource)
    if permission.frozen is not None:
        return permission.frozen
    if permission.layout is not None:
        return "its policy fixes another layout"
    if profile is not None and permission.profiles and profile not in permission.profiles:
        return f"its policy allows only {', '.join(sorted(permission.profiles))}"
    return "its policy does not allow it"


def _blocked(case: Case, eligible: Sequence[Site]) -> _Verdict:
    """Holders or other pending pods have the room."""
    blockers = sorted(
        (blocker for site in eligible for blocker in blocking.blockers(site, case.resource)),
        key=lambda b: (len(b.instances) + (not b.instances), len(b.holders), b.node, b.index),
    )
    changes = remedies(case, eligible, blockers)
    if _fits_alone(case, eligible):
        takers = _takers(case, eligible)
        detail = f"the room for {case.resource} goes to other pending pods{takers}"
        text = f"give it a higher priority than the pods that get the room{takers}"
        changes = (*changes, Change(kind=ChangeKind.RAISE_PRIORITY, text=text))
        return Reason.OUTRANKED, _limit(case, eligible) + detail, changes
    held = [blocker for blocker in blockers if blocker.instances or blocker.holders]
    if held and all(any(len(i.candidates) > 1 for i in b.instances) for b in held):
        detail = f"every place for {case.resource} may be taken: {_places(held)}"
        return Reason.UNKNOWN_LAYOUT, detail, changes
    if held:
        surely = any(i.hold is Hold.HELD for b in held for i in b.instances)
        is_held = "is held" if surely or not any(b.instances for b in held) else "may be held"
        detail = f"every place for {case.resource} {is_held}: {_places(held)}"
    else:
        detail = f"{case.resource} does not fit beside what stands"
    if not changes:
        text = f"let a policy allow {case.resource} on more GPUs"
        changes = (Change(kind=ChangeKind.CHANGE_POLICY, text=text),)
    return Reason.BLOCKED, detail, changes


def _fits_alone(case: Case, eligible: Sequence[Site]) -> bool:
    """Whether the pod would fit if no other pod waited."""
    if case.slices > 1:
        nodes = list(dict.fromkeys(site.gpu.node for site in eligible))
        return any(case.trial.alone(case.pod, node) for node in nodes[:_NODES])
    need = case.pod.memory_mib or 0
    return any(
        offer.resource == case.resource and (offer.memory_mib is None or offer.memory_mib >= need)
        for site in eligible
        for outcome in site.outcomes
        for offer in outcome.offers
    )


def _limit(case: Case, eligible: Sequence[Site]) -> str:
    """Say so when a GPU has more places for a profile than it may have instances of it."""
    profile = mig_profile(case.resource)
    if profile is None:
        return ""
    known = blocking.profile_of(eligible[0].gpu, profile)
    if known.max_instances == 1 < len(known.placements):
        return f"a GPU can have one {known.name} only, and "
    return ""


def _places(held: Sequence[Blocker]) -> str:
    parts = []
    for blocker in held[:2]:
        place = f" {blocker.placement}" if blocker.placement is not None else ""
        parts.append(f"{blocker.node}/{blocker.index}{place} by {blocking.some(blocker.holders)}")
    more = len(held) - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _takers(case: Case, eligible: Sequence[Site]) -> str:
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
