"""From a look and a decision to what the agent says of itself. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from partita.agent.announcement import UNLISTED_SECONDS
from partita.agent.decision import Decision, Phase
from partita.agent.holders import Holders
from partita.agent.observation import Observation
from partita.agent.target import profile_of
from partita.config.agent_document import AgentDocument
from partita.config.partition_policy import BudgetEnforcement
from partita.model.agent_status import (
    AgentStatus,
    Condition,
    GpuStatus,
    ResourceStatus,
    SliceStatus,
)
from partita.ports.gpu_driver import DriverGpu
from partita.ports.slice_server import Offer, OfferedSlice

__all__ = ["Identity", "Wish", "status"]

_MEBIBYTE = 1 << 20
_AT_REST = (Phase.READY, Phase.KEPT, Phase.SICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the agent is.

    Attributes:
        node: Name of the node.
        version: Version of partita.
        process_id: Its PID.
    """

    node: str
    version: str
    process_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of the agent.

    Attributes:
        document: What it follows.
        problem: Why it does not follow the newest edit, None when it does.
    """

    document: AgentDocument
    problem: str | None = None


def status(
    who: Identity,
    seen: Observation,
    decision: Decision,
    wish: Wish,
    *,
    before: AgentStatus | None,
    now: str,
) -> AgentStatus:
    """Return what the agent says of itself.

    Args:
        who: Who it is.
        seen: The last look.
        decision: What was decided on it.
        wish: What is wanted.
        before: What was said before; times of what has not changed are taken from it.
        now: The time of day, RFC 3339.
    """
    fresh = AgentStatus(
        node=who.node,
        version=who.version,
        process_id=who.process_id,
        at=now,
        source=wish.document.path,
        conditions=tuple(_conditions(seen, decision, wish)),
        gpus=(
            tuple(_gpu(gpu, decision) for gpu in seen.gpus)
            if seen.gpus is not None
            else tuple(_out_of_sight(before, decision))
        ),
        resources=tuple(
            _resource(offer, seen, decision.holders) for offer in decision.offers or ()
        ),
    )
    return _dated(fresh, before, now)


def _conditions(seen: Observation, decision: Decision, wish: Wish) -> Iterator[Condition]:
    ready = _ready(seen, decision)
    yield ready
    rival = decision.rival
    if rival is not None:
        yield Condition(
            type="SoleOwner", holds=False, reason="OtherOwner", message=rival[0], hint=rival[1]
        )
    else:
        yield Condition(type="SoleOwner", holds=True, reason="NobodyElse")
    yield _answers("DriverAnswers", seen.driver_problem, seen.driver_hint)
    yield _answers("KubeletAnswers", seen.kubelet_problem, seen.kubelet_hint)
    followed = wish.problem is None
    yield Condition(
        type="LayoutsFollowed",
        holds=followed,
        reason="Followed" if followed else "NotUnderstood",
        message=wish.problem or "",
        hint=None if followed else "what stood in the file before is followed",
    )
    yield from _of_delivery(seen)
    yield from _of_budgets(wish.document, decision)
    yield from _of_gpus(decision)


def _of_delivery(seen: Observation) -> Iterator[Condition]:
    """Yield that devices cannot be given to containers, where it is so."""
    problems = seen.serving.undeliverable
    if problems:
        device, why = min(problems.items())
        yield Condition(
            type="Deliverable",
            holds=False,
            reason="NotFound",
            message=f"devices that no container can be given: {len(problems)}; {device}: {why}",
            hint="check the driver's files, the folder of CDI files, and deviceListStrategy",
        )


def _of_budgets(document: AgentDocument, decision: Decision) -> Iterator[Condition]:
    """Yield that budgets are not kept, where slots have budgets that a policy wants kept."""
    wanted = [one.name for one in document.policies if one.budget is not BudgetEnforcement.OFF]
    shared = any(
        one.slice.slot is not None for offer in decision.offers or () for one in offer.slices
    )
    if wanted and shared:
        yield Condition(
            type="BudgetsWatched",
            holds=False,
            reason="NotSupported",
            message="nobody watches how much memory the pods on a shared GPU use",
            hint=f"budgetEnforcement: Off in policy {wanted[0]} says that this is meant so",
        )


def _ready(seen: Observation, decision: Decision) -> Condition:
    if decision.rival is not None:
        return _not_ready("OtherOwner", decision.rival[0], decision.rival[1])
    if seen.gpus is None:
        return _not_ready("DriverSilent", seen.driver_problem or "", seen.driver_hint)
    if decision.problem is not None:
        return _not_ready("HoldersUnknown", decision.problem, seen.kubelet_hint)
    return (
        _unheard(seen, decision)
        or _unlisted(seen, decision)
        or Condition(type="Ready", holds=True, reason="Serving")
    )


def _unheard(seen: Observation, decision: Decision) -> Condition | None:
    """Return that the kubelet does not listen, None when it does."""
    cutting = any(state.phase not in _AT_REST for state in decision.states.values())
    if not decision.offers and cutting:
        return _not_ready("Cutting", "the GPUs are not cut yet")
    found = (seen.serving.sessions.get(offer.resource) for offer in decision.offers or ())
    sessions = [session for session in found if session is not None]
    for session in sessions:
        if session.problem is not None and not session.connected:
            said = f"the kubelet does not listen to {session.resource}: {session.problem}"
            return _not_ready("NotConnected", said)
    if decision.offers and not any(session.connected for session in sessions):
        return _not_ready("Connecting", "the kubelet does not listen yet")
    return None


def _unlisted(seen: Observation, decision: Decision) -> Condition | None:
    """Return that the kubelet does not show what it was sent, None when it does."""
    unseen = decision.memory.unseen.values()
    late = sum(seen.at - since >= UNLISTED_SECONDS for since in unseen)
    if not late:
        return None
    said = f"slices that the kubelet was sent and does not show: {late}"
    return _not_ready("NotListed", said, "another plugin may have registered the same resource")


def _not_ready(reason: str, message: str, hint: str | None = None) -> Condition:
    return Condition(type="Ready", holds=False, reason=reason, message=message, hint=hint)


def _answers(kind: str, problem: str | None, hint: str | None) -> Condition:
    if problem is None:
        return Condition(type=kind, holds=True, reason="Answers")
    return Condition(type=kind, holds=False, reason="NoAnswer", message=problem, hint=hint)


def _of_gpus(decision: Decision) -> Iterator[Condition]:
    states = decision.states.values()
    known = bool(decision.states)
    sick = [state for state in states if state.phase is Phase.SICK]
    yield Condition(
        type="GpusHealthy",
        holds=not sick if known else None,
        reason="Sick" if sick else "Healthy" if known else "Unknown",
        message=f"{len(sick)} of {len(decision.states)} GPUs" if sick else "",
    )
    open_ends = [
        s for s in states if s.phase not in _AT_REST or (s.reason and s.phase is not Phase.SICK)
    ]
    yield Condition(
        type="GpusAsWanted",
        holds=not open_ends if known else None,
        reason="NotYet" if open_ends else "AsWanted" if known else "Unknown",
        message=f"{len(open_ends)} of {len(decision.states)} GPUs are not" if open_ends else "",
    )


def _gpu(gpu: DriverGpu, decision: Decision) -> GpuStatus:
    state, holders = decision.states.get(gpu.uuid), decision.holders
    offers = decision.offers or ()
    offered = [one for offer in offers for one in offer.slices if one.slice.gpu_uuid == gpu.uuid]
    processes = (
        name for key, names in holders.processes.items() if key[0] == gpu.uuid for name in names
    )
    return GpuStatus(
        index=gpu.index,
        uuid=gpu.uuid,
        product=gpu.product,
        memory_mib=gpu.memory_bytes // _MEBIBYTE if gpu.memory_bytes is not None else None,
        mig_mode=gpu.mig_mode.value if gpu.failure is None else None,
        phase=state.phase.value if state is not None else Phase.UNKNOWN.value,
        reason=state.reason if state is not None else decision.problem,
        processes=tuple(processes),
        slices=tuple(_slice(gpu, one, holders) for one in sorted(offered, key=_order)),
    )


def _out_of_sight(before: AgentStatus | None, decision: Decision) -> Iterator[GpuStatus]:
    """Yield the GPUs that were last seen, while the driver gives no answer."""
    for gpu in before.gpus if before is not None else ():
        slices = tuple(replace(one, usable=False) for one in gpu.slices)
        yield replace(
            gpu, phase=Phase.UNKNOWN.value, reason=decision.problem, processes=(), slices=slices
        )


def _order(one: OfferedSlice) -> tuple[int, int, str]:
    instance = one.slice.instance_id
    return (instance if instance is not None else -1, one.slice.slot or 0, one.slice.device_id)


def _slice(gpu: DriverGpu, one: OfferedSlice, holders: Holders) -> SliceStatus:
    instance = next((i for i in gpu.instances if i.instance_id == one.slice.instance_id), None)
    return SliceStatus(
        device_id=one.slice.device_id,
        resource=one.slice.resource,
        profile=profile_of(gpu, instance) if instance is not None else None,
        placement=str(instance.placement) if instance is not None else None,
        usable=one.usable,
        leaving=one.leaving,
        holders=holders.of_id(one.slice.device_id),
        budget_mib=one.slice.budget_mib,
    )


def _resource(offer: Offer, seen: Observation, holders: Holders) -> ResourceStatus:
    session = seen.serving.sessions.get(offer.resource)
    return ResourceStatus(
        name=offer.resource,
        slices=len(offer.slices),
        usable=sum(one.usable for one in offer.slices),
        held=sum(bool(holders.of_id(one.slice.device_id)) for one in offer.slices),
        connected=session is not None and session.connected,
        problem=session.problem if session is not None else None,
    )


def _dated(fresh: AgentStatus, before: AgentStatus | None, now: str) -> AgentStatus:
    """Return it with the times at which each thing became what it is."""
    conditions = {one.type: one for one in before.conditions} if before is not None else {}
    gpus = {one.uuid: one for one in before.gpus} if before is not None else {}
    return replace(
        fresh,
        conditions=tuple(
            replace(one, since=_since(one, conditions.get(one.type), now))
            for one in fresh.conditions
        ),
        gpus=tuple(
            replace(one, since=_in_phase(one, gpus.get(one.uuid), now)) for one in fresh.gpus
        ),
    )


def _since(one: Condition, before: Condition | None, now: str) -> str:
    same = before is not None and (before.holds, before.reason) == (one.holds, one.reason)
    return before.since if before is not None and same else now


def _in_phase(one: GpuStatus, before: GpuStatus | None, now: str) -> str:
    same = before is not None and (before.phase, before.reason) == (one.phase, one.reason)
    return before.since if before is not None and same else now
