"""What the agent sees in one look, as one value. Unknown is None."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.agent.instruction import Outcome
from partita.ports.gpu_driver import DriverGpu, DriverProcess, HealthEvent
from partita.ports.kubelet import Holding, Remembered
from partita.ports.neighbours import Signs
from partita.ports.process_table import Process
from partita.ports.slice_server import ServingState

__all__ = ["KubeletEvidence", "Observation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletEvidence:
    """What the kubelet said, asked in this order.

    Attributes:
        holdings: What active pods hold.
        allocatable: By resource, what the kubelet may give to pods.
        remembered: What is in its checkpoint.
    """

    holdings: tuple[Holding, ...] = ()
    allocatable: Mapping[str, frozenset[str]] = field(default_factory=dict)
    remembered: tuple[Remembered, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the node.

    Attributes:
        at: Monotonic time in seconds.
        serving: What was promised to the kubelet, read before the kubelet was asked.
        kubelet: What the kubelet said, None when it gave no answer.
        kubelet_problem: Why not.
        kubelet_hint: What to do about it.
        gpus: The GPUs, by index; None when the driver gave no answer.
        driver_problem: Why not.
        driver_hint: What to do about it.
        processes: GPU UUID → processes on it; a GPU whose processes are not known is not in it.
        owners: The processes above in the process table, by PID.
        events: What happened to GPUs since the last look.
        signs: What is seen of others that deal with the GPUs.
        outcomes: What became of the instructions of the decision before.
    """

    at: float
    serving: ServingState = field(default_factory=ServingState)
    kubelet: KubeletEvidence | None = None
    kubelet_problem: str | None = None
    kubelet_hint: str | None = None
    gpus: tuple[DriverGpu, ...] | None = None
    driver_problem: str | None = None
    driver_hint: str | None = None
    processes: Mapping[str, tuple[DriverProcess, ...]] = field(default_factory=dict)
    owners: Mapping[int, Process] = field(default_factory=dict)
    events: tuple[HealthEvent, ...] = ()
    signs: Signs = field(default_factory=Signs)
    outcomes: tuple[Outcome, ...] = ()
