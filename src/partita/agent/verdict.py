"""What is decided for one GPU: its phase, what is offered of it, and its next step. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.agent.decision import GpuState, Phase
from partita.agent.instruction import Instruction
from partita.agent.look import Look, View
from partita.agent.steps import Next, next_step
from partita.agent.target import Target
from partita.ports.gpu_driver import DriverGpu
from partita.ports.slice_server import OfferedSlice

__all__ = ["IDLE_SECONDS", "WAITING_SECONDS", "Verdict", "verdict"]

WAITING_SECONDS = 1.0
"""After how long to look again when something waits for somebody."""

IDLE_SECONDS = 5.0
"""After how long to look again when all is well."""

_MOVING_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is decided for one GPU.

    Attributes:
        state: Its phase, and why.
        slices: What is offered of it while it is well.
        step: What to do now, None for nothing.
        wake_seconds: After how long to look at it again.
    """

    state: GpuState
    slices: tuple[OfferedSlice, ...]
    step: Instruction | None = None
    wake_seconds: float = IDLE_SECONDS


def verdict(look: Look, gpu: DriverGpu, view: View | None) -> Verdict:
    """Return what is decided for one GPU."""
    before = look.memory.offered.get(gpu.uuid, ())
    sick = look.verdicts.gpus.get(gpu.uuid)
    if view is None:
        if sick is not None:
            return Verdict(state=GpuState(phase=Phase.SICK, reason=sick), slices=before)
        state = GpuState(phase=Phase.UNKNOWN, reason=look.holders.blind)
        return Verdict(state=state, slices=before, wake_seconds=WAITING_SECONDS)
    slices = tuple(one for presence in view.presences.values() for one in presence.slices)
    if sick is not None:
        return Verdict(state=GpuState(phase=Phase.SICK, reason=sick), slices=slices)
    return _of_well(look, view, slices)


def _of_well(look: Look, view: View, slices: tuple[OfferedSlice, ...]) -> Verdict:
    gpu = view.gpu
    failure = look.memory.failures.get(gpu.uuid)
    if gpu.uuid not in look.seen.processes:
        state = GpuState(phase=Phase.UNKNOWN, reason="the driver does not tell its processes")
        return Verdict(state=state, slices=slices, wake_seconds=WAITING_SECONDS)
    if failure is not None and look.seen.at < failure.retry_at:
        state = GpuState(phase=Phase.FAILED, reason=f"{failure.step}: {failure.reason}")
        left = failure.retry_at - look.seen.at
        return Verdict(state=state, slices=slices, wake_seconds=min(left, IDLE_SECONDS))
    following = next_step(view, look.holders)
    if following.step is not None:
        state = GpuState(phase=Phase.CHANGING, reason=str(following.step))
        return Verdict(state=state, slices=slices, step=following.step, wake_seconds=0.0)
    confined = _confined(look, view)
    unlisted = _unlisted(look, slices, frozenset(confined))
    if unlisted and following.waits is None and not following.withdrawing:
        soon = _is_delivered(look, unlisted)
        said = f"the kubelet has yet to list {len(unlisted)} of its slices"
        return Verdict(
            state=GpuState(phase=Phase.OFFERING, reason=said),
            slices=slices,
            wake_seconds=_MOVING_SECONDS if soon else WAITING_SECONDS,
        )
    moving = following.withdrawing or any(not p.quiet for p in view.presences.values())
    return Verdict(
        state=_resting(view, following, confined),
        slices=slices,
        wake_seconds=_pace(view, following, moving=moving),
    )


def _confined(look: Look, view: View) -> Mapping[int, str]:
    """Return why instances of a GPU are sick that is well itself, by their id."""
    found = look.verdicts.instances.items()
    return {number: why for (uuid, number), why in found if uuid == view.gpu.uuid}


def _unlisted(
    look: Look, slices: Sequence[OfferedSlice], sick: frozenset[int]
) -> Sequence[OfferedSlice]:
    """Return what is offered as usable and not yet among what the kubelet may give away."""
    return [
        one
        for one in slices
        if one.usable
        and not look.holders.is_listed(one.slice.device_id)
        and one.slice.instance_id not in sick
        and one.slice.device not in look.seen.serving.undeliverable
    ]


def _is_delivered(look: Look, slices: Sequence[OfferedSlice]) -> bool:
    sessions = look.seen.serving.sessions
    return any(
        session.delivered
        for one in slices
        if (session := sessions.get(one.slice.resource)) is not None
    )


def _resting(view: View, following: Next, confined: Mapping[int, str]) -> GpuState:
    unmet = view.target.unmet or view.nameless
    if following.waits is not None:
        return GpuState(phase=Phase.WAITING, reason=_waiting_for(following.waits, view.target))
    if following.withdrawing:
        return GpuState(phase=Phase.WITHDRAWING, reason=unmet)
    if confined:
        why = "; ".join(f"instance {number}: {text}" for number, text in sorted(confined.items()))
        return GpuState(phase=Phase.SICK, reason=why)
    if unmet is not None:
        keeps = view.target.keeps or view.nameless is not None
        return GpuState(phase=Phase.KEPT if keeps else Phase.WAITING, reason=unmet)
    return GpuState(phase=Phase.READY)


def _waiting_for(waits: str, target: Target) -> str:
    """Return who is waited for; what cannot be had at all is another matter, and told as well."""
    if target.unmet is None:
        return waits
    return f"{waits}; {target.unmet}" if target.keeps else target.unmet


def _pace(view: View, following: Next, *, moving: bool) -> float:
    if following.withdrawing:
        return _MOVING_SECONDS
    if following.waits is not None or moving or view.target.unmet is not None:
        return WAITING_SECONDS
    return IDLE_SECONDS
