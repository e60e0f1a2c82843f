"""A node in memory with the real agent on it, and the truth about who holds what.

The world keeps its own books of which pod was given which device. Nothing that the agent concludes
goes into them, so they can be held against what it does.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from partita.agent.decision import Decision
from partita.agent.health import HealthRules
from partita.agent.loop import Agent, Node, look_closely
from partita.config.agent_document import AgentDocument
from partita.config.partition_policy import (
    Follow,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)
from partita.model.slice import device_of
from partita.ports.gpu_driver import DriverGpu, DriverInstance
from partita.simulator.gpu_driver import SimulatedGpuDriver
from partita.simulator.gpus import SimulatedGpus
from partita.simulator.kubelet.admission import Allocate, Answer, PluginRefusedError
from partita.simulator.kubelet.in_memory import InMemoryKubelet
from partita.simulator.kubelet.in_memory_server import InMemorySliceServer
from partita.simulator.kubelet.pods import Container, Pod
from partita.simulator.surroundings import SimulatedNeighbours, SimulatedProcesses, VirtualClock

Returned = TypeVar("Returned")

NOTHING = AgentDocument()


def mig(layout: dict[str, int], *, may_reset: bool = True, name: str = "cut") -> PartitionPolicy:
    """Return a policy that fixes a layout."""
    return PartitionPolicy(
        name=name,
        strategy=Strategy.MIG,
        follow=Follow.FIXED,
        mig=MigParameters(layout=layout, allow_reset=may_reset),
    )


def shared(
    replicas: int, *, renamed: bool = False, resource: str = "nvidia.com/gpu"
) -> PartitionPolicy:
    """Return a policy that shares whole GPUs."""
    return PartitionPolicy(
        name="share",
        strategy=Strategy.TIME_SLICING,
        mig=MigParameters(allow_reset=True),
        time_slicing=SharingParameters(
            resources=(SharedResource(name=resource, replicas=replicas),),
            rename_by_default=renamed,
        ),
    )


def whole() -> PartitionPolicy:
    """Return a policy that leaves GPUs whole."""
    return PartitionPolicy(
        name="whole", strategy=Strategy.WHOLE, mig=MigParameters(allow_reset=True)
    )


def wants(*policies: PartitionPolicy) -> AgentDocument:
    """Return a document of policies."""
    return AgentDocument(policies=policies)


class CrashedError(BaseException):
    """The agent's process is gone."""


class HarmError(AssertionError):
    """A slice that a pod holds, or is being given, was touched."""


def drive(coroutine: Coroutine[Any, Any, Returned]) -> Returned:
    """Run a coroutine that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        answer: Returned = stop.value
        return answer
    raise AssertionError("it waited for something")


@dataclass
class Layouts:
    """The layouts wanted, edited by hand."""

    document: AgentDocument

    def current(self) -> AgentDocument:
        """Return what is wanted."""
        return self.document

    def problem(self) -> str | None:
        """Return nothing: every edit can be followed."""
        return None


@dataclass
class World:
    """The node; ``boards`` as in ``SimulatedGpus``.

    Attributes:
        crash_in: After how many further acts of the agent its process is gone, None = never.
        hidden: UUID of a MIG device that the driver does not enumerate at the next look.
        was_disturbed: Whether another owner came, or a device was not enumerated.
        given: Pod UID → device IDs that its containers hold, by the world's own books.
    """

    boards: Sequence[tuple[str, int]] = (("A100-SXM4-40GB", 1),)
    document: AgentDocument = NOTHING
    rules: HealthRules = field(default_factory=HealthRules)
    crash_in: int | None = None
    given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: str | None = None
    was_disturbed: bool = False

    def __post_init__(self) -> None:
        """Build the node and start the agent on it."""
        self.clock = VirtualClock()
        self.gpus = SimulatedGpus(self.boards)
        self.kubelet = InMemoryKubelet(self.clock)
        self.processes = SimulatedProcesses()
        self.neighbours = SimulatedNeighbours()
        self.layouts = Layouts(self.document)
        self.steps: list[str] = []
        self._names = 0
        self._taught = self.kubelet.generation
        self._servers = 0
        self._arriving: str | None = None
        self._on_its_way: Answer | PluginRefusedError | None = None
        self.start_agent()

    # ---- the agent -------------------------------------------------------------------------

    def start_agent(self) -> None:
        """Start the agent's process anew, without any memory."""
        self._servers += 1
        self.server = _Server(self, name=f"agent-{self._servers}")
        self.agent = Agent(
            node=Node(
                driver=_Driver(self),
                kubelet=self.kubelet,
                server=self.server,
                processes=self.processes,
                neighbours=self.neighbours,
                clock=self.clock,
                layouts=self.layouts,
            ),
            call=look_closely,
            rules=self.rules,
        )

    def look(self) -> Decision:
        """Let the agent look and act once; if it crashes on the way it is started again."""
        while not self.gpus.events.empty():
            self.agent.report([self.gpus.events.get()])
        self.server.catch_up()
        try:
            return drive(self.agent.step())
        except CrashedError:
            self.restart_agent()
            return Decision()

    def restart_agent(self) -> None:
        """End the agent as by SIGKILL: its streams end; then start it again."""
        self.crash_in = None
        self.server.vanish()
        self.start_agent()

    def settle(self, *, looks: int = 400) -> Decision:
        """Let time pass until the agent has nothing to do."""
        decision = Decision()
        calm = 0
        for _ in range(looks):
            decision = self.look()
            self.clock.advance(max(decision.wake_seconds, 0.01))
            calm = calm + 1 if decision.wake_seconds >= 1.0 and not decision.instructions else 0
            if calm > 3 and self._is_over(decision):
                return decision
        return decision

    def _is_over(self, decision: Decision) -> bool:
        if decision.rival is not None or decision.problem is not None:
            return False
        unfinished = ("FAILED", "CHANGING", "SICK", "UNKNOWN")
        return not any(
            state.phase.name in unfinished
            or "being admitted" in (state.reason or "")  # or was not admitted after all
            or "pod with UID" in (state.reason or "")  # may have ended; the checkpoint will tell
            for state in decision.states.values()
        )

    def act(self) -> None:
        """Count an act of the agent; between any two of them its process can be gone."""
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in < 0:
                raise CrashedError

    # ---- pods --------------------------------------------------------------------------------

    def free(self) -> dict[str, int]:
        """Return by resource how many pods a scheduler would still bind here."""
        if self.kubelet.process is None:
            return {}
        used: dict[str, int] = {}
        for pod in self.kubelet.pods.values():
            for container in pod.containers:
                for name, count in container.requests.items():
                    used[name] = used.get(name, 0) + count
        totals = self.kubelet.totals()
        return {
            name: total.allocatable - used.get(name, 0)
            for name, total in totals.items()
            if total.allocatable > used.get(name, 0)
        }

    def bind(self, resource: str, count: int = 1) -> str:
        """Bind a pod; it is on its way in as long as the kubelet asks for it."""
        self._names += 1
        uid = f"uid-{self._names}"
        container = Container(name="main", requests={resource: count})
        self._arriving = uid
        self.kubelet.bind(Pod(uid=uid, name=f"pod-{self._names}", containers=(container,)))
        self._note()
        return uid

    def admit_next(self) -> None:
        """Let the kubelet begin with a pod that had to wait for it."""
        (self._arriving, *_) = self.kubelet.waiting
        self.kubelet.admit(self._arriving)
        self._note()

    def ask(self) -> None:
        """Let the agent's server answer the kubelet's question; the answer is on its way."""
        question = self.kubelet.question
        assert question is not None
        self._on_its_way = self.server.answer(question)

    def take(self) -> None:
        """Let the kubelet take the answer that is on its way."""
        answer, self._on_its_way = self._on_its_way, None
        assert answer is not None
        self.kubelet.answer(answer)
        self._note()

    def answer_all(self) -> None:
        """Answer all that the kubelet asks."""
        while self.kubelet.question is not None:
            if self._on_its_way is None:
                self.ask()
            self.take()

    def run(self, resource: str, count: int = 1) -> str:
        """Run a pod: bind it, and answer all that the kubelet asks."""
        uid = self.bind(resource, count)
        self.answer_all()
        return uid

    @property
    def is_answered(self) -> bool:
        """Whether an answer is on its way to the kubelet."""
        return self._on_its_way is not None

    @property
    def arriving(self) -> str | None:
        """UID of the pod that is on its way in."""
        return self._arriving

    @property
    def knows_pods(self) -> bool:
        """Whether the kubelet runs and has heard which pods there are."""
        return self.kubelet.process is not None and self._taught == self.kubelet.generation

    def teach_kubelet(self) -> None:
        """Let the kubelet hear which pods there are."""
        self._taught = self.kubelet.generation
        self.kubelet.learn_of_pods()

    def read_one(self) -> None:
        """Let the kubelet read one of the lists that were sent to it."""
        if self.kubelet.process is not None:
            self.kubelet.read(at_most=1)

    def stop_kubelet(self) -> None:
        """Crash the kubelet; an answer on its way is lost."""
        self._on_its_way = self._arriving = None
        self.kubelet.stop()

    def end(self, uid: str) -> None:
        """End a pod, with its processes."""
        self.given.pop(uid, None)
        self.kubelet.end(uid)

    def refused(self, uid: str) -> str | None:
        """Return why a pod was refused, None when it was not."""
        return self.kubelet.refused.get(uid)

    def _note(self) -> None:
        """Write down what the pods that are in were given, as the kubelet tells the runtime."""
        if self.kubelet.question is None:
            self._arriving = None
        process = self.kubelet.process
        for uid, pod in self.kubelet.pods.items() if process is not None else ():
            if uid in self.given or uid in self.kubelet.waiting or uid == self._arriving:
                continue
            assert process is not None
            self.given[uid] = tuple(
                device
                for container in pod.containers
                for entry in process.held(uid, container.name).values()
                for device in entry.devices
            )

    # ---- the truth -----------------------------------------------------------------------------

    def held_devices(self) -> frozenset[str]:
        """Return the UUIDs of devices that pods hold, or were promised to one on its way in."""
        held = {device_of(one) for devices in self.given.values() for one in devices}
        if isinstance(self.kubelet.question, Allocate) and isinstance(self._on_its_way, bytes):
            held.update(device_of(one) for one in self.kubelet.question.devices)
        return frozenset(held)

    def forbid_harm(self, gpu: str, instance: DriverInstance | None) -> None:
        """Raise when a change would take a device from a pod.

        Args:
            gpu: The GPU.
            instance: The instance that is to go, None when it is the whole GPU that changes.
        """
        board = self.gpus.boards[gpu]
        gone = [instance] if instance is not None else list(board.instances.values())
        touched = {mig.uuid for one in gone for mig in one.mig_devices}
        if instance is None:
            touched.add(gpu)
        harmed = touched & self.held_devices()
        if harmed:
            raise HarmError(f"held: {', '.join(sorted(harmed))}")


class _Driver(SimulatedGpuDriver):
    """The driver, with the truth looked up before anything is changed."""

    def __init__(self, world: World) -> None:
        super().__init__(world.gpus)
        self._world = world

    def gpus(self) -> Sequence[DriverGpu]:
        hidden, self._world.hidden = self._world.hidden, None
        return tuple(
            replace(gpu, instances=tuple(_without(one, hidden) for one in gpu.instances))
            for gpu in super().gpus()
        )

    def set_mig_mode(self, uuid: str, mode: Any) -> Any:
        board = self._world.gpus.boards[uuid]
        return self._act(
            "mode",
            lambda: super(_Driver, self).set_mig_mode(uuid, mode),
            lambda: mode is board.mode or self._world.forbid_harm(uuid, None),
        )

    def reset(self, uuid: str) -> None:
        self._act(
            "reset",
            lambda: super(_Driver, self).reset(uuid),
            lambda: self._world.forbid_harm(uuid, None),
        )

    def create_instance(self, uuid: str, profile_id: int, placement: Any) -> Any:
        return self._act(
            "create",
            lambda: super(_Driver, self).create_instance(uuid, profile_id, placement),
            None,
        )

    def destroy_instance(self, uuid: str, instance_id: int) -> None:
        instance = self._world.gpus.boards[uuid].instances.get(instance_id)
        self._act(
            "destroy",
            lambda: super(_Driver, self).destroy_instance(uuid, instance_id),
            lambda: instance and self._world.forbid_harm(uuid, instance),
        )

    def _act(self, name: str, change: Callable[[], Any], check: Callable[[], Any] | None) -> Any:
        self._world.act()  # the process may be gone before the change
        if check is not None:
            check()
        done = change()
        self._world.steps.append(name)
        self._world.act()  # or after it
        return done


def _without(instance: DriverInstance, hidden: str | None) -> DriverInstance:
    """Return an instance as it looks when one of its MIG devices is not enumerated."""
    left = tuple(one for one in instance.mig_devices if one.uuid != hidden)
    return replace(instance, mig_devices=left)


class _Server(InMemorySliceServer):
    """The slice server, which can be gone in the middle of what it does."""

    def __init__(self, world: World, *, name: str) -> None:
        super().__init__(world.kubelet, world.clock, name=name)
        self._world = world

    async def offer(self, offers: Any) -> None:
        self._world.act()
        await super().offer(offers)
        self._world.act()

    def drop(self, device_id: str) -> None:
        """Leave one device out of the list, at the worst of times."""
        for serving in self._serving.values():
            serving.offer = replace(
                serving.offer,
                slices=tuple(s for s in serving.offer.slices if s.slice.device_id != device_id),
            )
        self.catch_up()

    def vanish(self) -> None:
        """End all streams, which is noticed at once."""
        super().vanish()
        if self._world.kubelet.process is not None:
            self._world.kubelet.read()


__all__ = ["CrashedError", "HarmError", "World", "mig", "shared", "wants", "whole"]
