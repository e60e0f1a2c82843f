"""The loop around the machine: observe, decide, act, and look again. Decides nothing itself."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from partita.agent import machine
from partita.agent.decision import Decision
from partita.agent.health import HealthRules
from partita.agent.instruction import (
    Announce,
    CreateInstance,
    DestroyInstance,
    Instruction,
    Outcome,
    Reconnect,
    ResetGpu,
    SetMode,
)
from partita.agent.observation import KubeletEvidence, Observation
from partita.errors import DriverError, KubeletError
from partita.ports.clock import Clock
from partita.ports.gpu_driver import DriverGpu, DriverProcess, GpuDriver, HealthEvent
from partita.ports.kubelet import Kubelet
from partita.ports.layout_source import LayoutSource
from partita.ports.neighbours import Neighbours, Signs
from partita.ports.process_table import ProcessTable
from partita.ports.slice_server import SliceServer

__all__ = ["Agent", "DriverCall", "Node", "look_closely"]

_log = logging.getLogger(__name__)

_SIGNS_SECONDS = (
    10.0  # how old the look around the node may be; reading all processes takes a while
)
_CALM_SECONDS = 0.1  # how long after an allocation the kubelet is not asked who holds what
_SOURCE_SECONDS = 0.5  # how often it is looked whether the wanted layouts were edited


class DriverCall(Protocol):
    """Makes a call of the driver, somewhere where it may take its time."""

    def __call__(self, call: Callable[..., Any], /, *arguments: Any) -> Awaitable[Any]:
        """Return what the call returns, or raise what it raises."""


async def look_closely(call: Callable[..., Any], *arguments: Any) -> Any:
    """Make a call of the driver here and now: for drivers that never take their time."""
    return call(*arguments)


async def _nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The outside of an agent.

    Attributes:
        driver: The GPUs.
        kubelet: Who holds what.
        server: What is offered.
        processes: The processes of the node.
        neighbours: Who else is there.
        clock: The time.
        layouts: What is wanted.
    """

    driver: GpuDriver
    kubelet: Kubelet
    server: SliceServer
    processes: ProcessTable
    neighbours: Neighbours
    clock: Clock
    layouts: LayoutSource


@dataclass(slots=True, kw_only=True)
class Agent:
    """The agent of one node.

    Attributes:
        node: Its outside.
        call: How the driver is called.
        aside: How the node is looked around on, which reads many files.
        rules: What counts as sick.
        prepare: Awaited before each look.
        publish: Told of every look and what was decided on it.
        seen: The last look.
        decision: The last decision.
    """

    node: Node
    call: DriverCall
    aside: DriverCall = look_closely
    rules: HealthRules = field(default_factory=HealthRules)
    prepare: Callable[[], Awaitable[None]] = _nothing
    publish: Callable[[Observation, Decision], None] = lambda _seen, _decision: None
    seen: Observation | None = None
    decision: Decision = field(default_factory=Decision)
    _outcomes: tuple[Outcome, ...] = ()
    _events: list[HealthEvent] = field(default_factory=list)
    _signs: Signs = field(default_factory=Signs)
    _signs_at: float | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Look again now. For the thread of the event loop."""
        self._woken.set()

    def report(self, events: Sequence[HealthEvent]) -> None:
        """Take health events in, and look again. For the thread of the event loop."""
        self._events.extend(events)
        self.wake()

    async def run(self) -> None:
        """Look, decide and act until cancelled."""
        while True:
            self._woken.clear()
            await asyncio.sleep(self._calm())
            before = self._wish()
            await self.prepare()
            decision = await self.step()
            await self._rest(decision.wake_seconds, before)

    def _wish(self) -> tuple[object, str | None]:
        """Return what is wanted, and why the newest edit of it is not followed."""
        return self.node.layouts.current(), self.node.layouts.problem()

    async def objection(self, device_ids: Sequence[str]) -> str | None:
        """Return why these must not be given to a container, None when they may be.

        The kubelet (1.37) can give a device away twice: when somebody asks it who holds what
        while a plugin answers Allocate, it counts anew without the device that is on its way. So
        whoever was last seen to hold one is asked for once more. A pod that is refused is started
        anew by its controller; two pods on one slice would disturb each other until they end.
        """
        evidence = self.seen.kubelet if self.seen is not None else None
        for holding in evidence.holdings if evidence is not None else ():
            if holding.device_id in device_ids and not holding.claimed:
                with contextlib.suppress(KubeletError):  # then nothing speaks against it
                    now = await self.node.kubelet.held_by(holding.namespace, holding.pod)
                    if holding.device_id in now:
                        return (
                            f"the kubelet gives it away a second time, {holding.holder} holds it:"
                            f" {holding.device_id}"
                        )
        return None

    async def step(self) -> Decision:
        """Take one look, decide on it and carry it out."""
        self.seen = seen = await self.observe()
        self.decision = decision = machine.decide(
            seen, self.node.layouts.current(), self.decision.memory, self.rules
        )
        self.publish(seen, decision)
        await self._act(decision)
        return decision

    def _calm(self) -> float:
        """Return how long to leave the kubelet alone: it is giving a device to a pod just now."""
        promised = self.node.server.state().promised.values()
        ago = self.node.clock.monotonic() - max(promised, default=-_CALM_SECONDS)
        return max(0.0, _CALM_SECONDS - ago)

    async def observe(self) -> Observation:
        """Look at the node. What does not answer is unknown, and why is told."""
        serving = self.node.server.state()  # before the kubelet, which is to know no less
        kubelet, silence = await self._ask_kubelet()
        gpus, refusal = await self._ask_driver()
        processes = await self._processes(gpus or ())
        ids = {one.process_id for of_gpu in processes.values() for one in of_gpu}
        outcomes, self._outcomes = self._outcomes, ()
        events, self._events[:] = tuple(self._events), []
        return Observation(
            at=self.node.clock.monotonic(),
            serving=serving,
            kubelet=kubelet,
            kubelet_problem=silence.message if silence is not None else None,
            kubelet_hint=silence.hint if silence is not None else None,
            gpus=gpus,
            driver_problem=refusal.message if refusal is not None else None,
            driver_hint=refusal.hint if refusal is not None else None,
            processes=processes,
            owners=self.node.processes.find(ids) if ids else {},
            events=events,
            signs=await self._look_around(),
            outcomes=outcomes,
        )

    async def _ask_kubelet(self) -> tuple[KubeletEvidence | None, KubeletError | None]:
        kubelet = self.node.kubelet
        try:
            return KubeletEvidence(
                holdings=tuple(await kubelet.holdings()),
                allocatable=await kubelet.allocatable(),
                remembered=tuple(await kubelet.remembered()),
            ), None
        except KubeletError as error:
            return None, error

    async def _ask_driver(self) -> tuple[tuple[DriverGpu, ...] | None, DriverError | None]:
        try:
            return tuple(await self.call(self.node.driver.gpus)), None
        except DriverError as error:
            return None, error

    async def _processes(self, gpus: Sequence[DriverGpu]) -> dict[str, tuple[DriverProcess, ...]]:
        found = {}
        for gpu in gpus:
            if gpu.failure is None:
                with contextlib.suppress(DriverError):  # then they are unknown, and nothing is cut
                    found[gpu.uuid] = tuple(await self.call(self.node.driver.processes, gpu.uuid))
        return found

    async def _look_around(self) -> Signs:
        """Return who else is there; until the node is taken on it is looked anew each time."""
        now = self.node.clock.monotonic()
        old = self._signs_at is None or now - self._signs_at >= _SIGNS_SECONDS
        if old or not self.decision.memory.begun:
            self._signs_at = now
            self._signs = await self.aside(self._claim)
        return self._signs

    def _claim(self) -> Signs:
        problem = None
        try:
            self.node.neighbours.take()
        except KubeletError as error:
            problem = error.message
        signs = self.node.neighbours.look()
        return replace(signs, claim_problem=problem or signs.claim_problem)

    async def _act(self, decision: Decision) -> None:
        server = self.node.server
        server.forget(decision.settled)
        if decision.retire:
            server.retire(decision.retire)
        if decision.offers is not None:
            await server.offer(decision.offers)
        outcomes = []
        for instruction in decision.instructions:
            outcome = await self._carry_out(instruction)
            outcomes.append(outcome)
            self._outcomes = tuple(outcomes)

    async def _carry_out(self, instruction: Instruction) -> Outcome:
        """Do one thing. A refusal of the driver is an outcome, like success."""
        ids: frozenset[str] = getattr(instruction, "device_ids", frozenset())
        if ids and not self.node.server.retire(ids):
            return Outcome(instruction=instruction, withheld=True)
        try:
            outcome = await self._do(instruction)
        except DriverError as error:
            _log.warning("failed: %s: %s", instruction, error.message, extra=_facts(instruction))
            return Outcome(instruction=instruction, error=error.message)
        _log.info("done: %s", instruction, extra=_facts(instruction))
        return outcome

    async def _do(self, instruction: Instruction) -> Outcome:
        driver, change = self.node.driver, None
        match instruction:
            case Announce():
                await self.node.server.announce()
            case Reconnect(resource=resource):
                await self.node.server.reconnect(resource)
            case DestroyInstance(uuid=uuid, instance_id=instance_id):
                await self.call(driver.destroy_instance, uuid, instance_id)
            case SetMode(uuid=uuid, mode=mode):
                change = await self.call(driver.set_mig_mode, uuid, mode)
            case ResetGpu(uuid=uuid):
                await self.call(driver.reset, uuid)
            case CreateInstance(uuid=uuid, profile_id=profile_id, placement=placement):
                await self.call(driver.create_instance, uuid, profile_id, placement)
        return Outcome(instruction=instruction, change=change)

    async def _rest(self, seconds: float, wish: tuple[object, str | None]) -> None:
        """Wait until it is time, something happened, or the wanted layouts were edited."""
        end = self.node.clock.monotonic() + seconds
        loop = asyncio.get_running_loop()
        timer: asyncio.Handle | None = None

        def look() -> None:
            """Wake the loop, or look again later: a timer costs less than a task that wakes up."""
            nonlocal timer
            is_over = True
            try:
                left = end - self.node.clock.monotonic()
                is_over = left <= 0 or self._wish() != wish
            finally:  # what fails here fails again in the loop, which is the place for it
                if is_over:
                    self.wake()
                else:
                    timer = loop.call_later(min(left, _SOURCE_SECONDS), look)

        timer = loop.call_soon(look)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()  # whichever is the next


def _facts(instruction: Instruction) -> dict[str, str]:
    """Return what a structured log says beside the words."""
    return {"gpu": getattr(instruction, "uuid", ""), "instruction": type(instruction).__name__}
