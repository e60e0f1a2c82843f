"""The agent's decision: from what is seen of the node to what is done next. Pure.

Each look is judged as a whole and for itself; what is remembered from one to the next only saves
time, so that an agent that begins anew in any state comes to the same end. Each GPU is in one
phase:

============  =====================================  ===========================================
phase         it is seen that                        what is done
============  =====================================  ===========================================
Sick          it is lost, needs a reset, had an XID  all its slices unusable; it is not cut
Unknown       nobody says who holds what             what is offered stays as it is
Kept          no policy says what to do with it      it is served as it stands
Failed        the last step failed                   the step again, later and later
Changing      what is next can be done safely        one step
Withdrawing   what is to go is free                  unusable for pods, until the kubelet agrees
Waiting       what is to go is held                  as it is, until the holder ends
Offering      the kubelet does not list all of it    it is served, and looked at again
Ready         it stands as wanted                    it is served
============  =====================================  ===========================================

A slice goes through these states before it is destroyed: *offered*; *leaving* while it is held
(still usable: its pod must live through a restart of the kubelet); *withdrawn* once nobody has it
(in the kubelet's list, but unusable); *released* when the kubelet agrees, its checkpoint agrees,
no promise is open, no process is on it, and that for a moment; *retired* in the instant before
the driver is called. One GPU never keeps another from its next step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from partita.agent import health, ownership
from partita.agent import holders as holdings
from partita.agent.announcement import announcement, reconnections
from partita.agent.decision import Decision
from partita.agent.failures import failures
from partita.agent.health import HealthRules
from partita.agent.holders import Holders
from partita.agent.instruction import ResetGpu
from partita.agent.look import Look, quiet_since, unseen, views
from partita.agent.memory import Memory
from partita.agent.observation import Observation
from partita.agent.offers import by_resource, offers
from partita.agent.verdict import IDLE_SECONDS, WAITING_SECONDS, verdict
from partita.config.agent_document import AgentDocument
from partita.model import resource
from partita.ports.gpu_driver import DriverGpu
from partita.ports.slice_server import Offer, OfferedSlice

__all__ = ["decide"]

_ASKING = (Offer(resource=resource.WHOLE_GPU),)
"""A list without slices: it gives nothing away, but makes the kubelet write its checkpoint."""


_PATIENCE_SECONDS = 60.0  # how long the driver may be silent until nothing more is given away


def decide(
    seen: Observation, document: AgentDocument, memory: Memory, rules: HealthRules | None = None
) -> Decision:
    """Return what to do next.

    Args:
        seen: What is seen now.
        document: What is wanted.
        memory: What the decision before left to keep.
        rules: What counts as sick.
    """
    memory = _with_events(seen, memory, rules if rules is not None else HealthRules())
    holders = holdings.of(seen, _names(memory.offered), memory.confirmed)
    memory = replace(memory, confirmed=holders.confirmed)
    rival = ownership.rival(seen, begun=memory.begun)
    if rival is not None:
        return _beside(rival, seen, memory, holders)
    if seen.gpus is None:
        return _without_driver(seen, memory, holders)
    if holders.blind is not None and not memory.begun:
        return Decision(
            offers=_ASKING if holders.outdated else None,
            holders=holders,
            problem=holders.blind,
            memory=memory,
            wake_seconds=WAITING_SECONDS,
        )
    verdicts = health.judge(memory.sick, seen.gpus)
    look = Look(seen=seen, document=document, memory=memory, holders=holders, verdicts=verdicts)
    return _decide(look, seen.gpus)


def _decide(look: Look, gpus: Sequence[DriverGpu]) -> Decision:
    known = {view.gpu.uuid: view for view in views(look, gpus)}
    judged = {gpu.uuid: verdict(look, gpu, known.get(gpu.uuid)) for gpu in gpus}
    offered = {uuid: one.slices for uuid, one in judged.items()}
    for uuid, slices in look.memory.offered.items():  # a GPU that the driver no longer counts
        if uuid not in offered:
            offered[uuid] = tuple(one for one in slices if look.holders.of_id(one.slice.device_id))
    vanished = frozenset(one.uuid for view in known.values() for one in view.devices.vanished)
    resources = offers(look, known, offered, vanished)
    announced, announcements = announcement(look, known)
    anew = reconnections(look)
    return Decision(
        offers=resources,
        retire=frozenset(held for uuid in vanished for held in look.holders.ids.get(uuid, ())),
        settled=look.holders.settled,
        holders=look.holders,
        instructions=(
            *announced,
            *anew,
            *(one.step for one in judged.values() if one.step is not None),
        ),
        states={uuid: one.state for uuid, one in judged.items()},
        problem=look.holders.blind,
        memory=replace(
            look.memory,
            begun=True,
            offered=offered,
            unseen=unseen(look, resources),
            one_each=frozenset(offer.resource for offer in resources if offer.one_each),
            reconnected={
                **look.memory.reconnected,
                **dict.fromkeys((one.resource for one in anew), look.seen.at),
            },
            quiet_since=quiet_since(look, known),
            announced_at=look.seen.at if announced else look.memory.announced_at,
            announcements=announcements,
        ),
        wake_seconds=min((one.wake_seconds for one in judged.values()), default=IDLE_SECONDS),
    )


def _with_events(seen: Observation, memory: Memory, rules: HealthRules) -> Memory:
    """Return what is kept together with what has happened: it is told only once."""
    uuids = [gpu.uuid for gpu in seen.gpus] if seen.gpus is not None else list(memory.offered)
    events = [
        replace(event, uuid=uuid)
        for event in seen.events
        for uuid in ([event.uuid] if event.uuid is not None else uuids)
    ]
    sick = health.remember(memory.sick, events, seen.gpus or (), rules, seen.at)
    for outcome in seen.outcomes:
        if isinstance(outcome.instruction, ResetGpu) and outcome.error is None:
            sick = health.after_reset(sick, outcome.instruction.uuid)
    return replace(
        memory,
        sick=sick,
        failures=failures(seen, memory),
        seen_at=seen.at if seen.gpus is not None else memory.seen_at,
    )


def _beside(
    rival: tuple[str, str], seen: Observation, memory: Memory, holders: Holders
) -> Decision:
    """Return the decision beside another owner: nothing new goes to anybody, nothing is cut.

    Beside another agent of ours, which has the claim that we have lost, nothing is served at all.
    """
    offers = _held_only(memory, holders)
    if seen.signs.rival_agent is not None:
        offers = ()
    return Decision(
        offers=offers if memory.begun else None,
        settled=holders.settled,
        holders=holders,
        rival=rival,
        memory=memory,
        wake_seconds=WAITING_SECONDS,
    )


def _without_driver(seen: Observation, memory: Memory, holders: Holders) -> Decision:
    """Return the decision while the driver gives no answer.

    A reset of one GPU, or one slow call, is no reason to take the whole node away at once.
    """
    seen_at = memory.seen_at if memory.seen_at is not None else seen.at
    silent = seen.at - seen_at >= _PATIENCE_SECONDS
    return Decision(
        offers=_held_only(memory, holders) if memory.begun and silent else None,
        settled=holders.settled,
        holders=holders,
        problem=seen.driver_problem or "the GPU driver gives no answer",
        memory=memory,
        wake_seconds=WAITING_SECONDS,
    )


def _held_only(memory: Memory, holders: Holders) -> tuple[Offer, ...]:
    """Return what was offered, with nothing usable but what is or may be held."""
    blind = holders.blind is not None
    offered = [one for slices in memory.offered.values() for one in slices]
    return by_resource(
        [
            one if blind or holders.of_id(one.slice.device_id) else replace(one, usable=False)
            for one in offered
        ],
        memory.one_each,
    )


def _names(offered: Mapping[str, Sequence[OfferedSlice]]) -> Mapping[str, str]:
    return {
        one.slice.device_id: one.slice.resource for slices in offered.values() for one in slices
    }
