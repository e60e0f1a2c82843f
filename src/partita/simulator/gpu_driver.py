"""The driver of simulated GPUs: the port, over boards in memory."""

import queue
from collections.abc import Sequence

from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import (
    DriverGpu,
    DriverInstance,
    DriverProcess,
    HealthEvent,
    ModeChange,
)
from partita.simulator.gpus import SimulatedGpus

__all__ = ["SimulatedGpuDriver"]


class SimulatedGpuDriver:
    """A ``ports.gpu_driver.GpuDriver`` with true MIG rules.

    It keeps nothing of its own: a second driver of the same GPUs sees what the first one did.
    """

    def __init__(self, gpus: SimulatedGpus) -> None:
        self._gpus = gpus

    def gpus(self) -> Sequence[DriverGpu]:
        """Return every GPU, lost ones included, by index."""
        self._gpus.check(None, "gpus")
        return tuple(
            board.view(self._gpus.failure(board.uuid, "gpus"))
            for board in self._gpus.boards.values()
        )

    def processes(self, uuid: str) -> Sequence[DriverProcess]:
        """Return the processes on a GPU and its instances, by PID."""
        processes = self._gpus.use(uuid, "processes").processes
        return tuple(processes[process_id] for process_id in sorted(processes))

    def set_mig_mode(self, uuid: str, mode: MigMode) -> ModeChange:
        """Ask for a MIG mode."""
        return self._gpus.use(uuid, "set_mig_mode").set_mode(mode)

    def reset(self, uuid: str) -> None:
        """Reset this GPU alone."""
        self._gpus.use(uuid, "reset").reset()

    def create_instance(self, uuid: str, profile_id: int, placement: Placement) -> DriverInstance:
        """Create a GPU instance at a placement with one compute instance over all of it."""
        return self._gpus.use(uuid, "create_instance").create(profile_id, placement)

    def destroy_instance(self, uuid: str, instance_id: int) -> None:
        """Destroy a GPU instance, its compute instance first."""
        self._gpus.use(uuid, "destroy_instance").destroy(instance_id)

    def wait_for_events(self, timeout_seconds: float) -> Sequence[HealthEvent]:
        """Wait until there are events and return them all; empty when the time is over."""
        self._gpus.check(None, "wait_for_events")
        try:
            events = [self._gpus.events.get(timeout=timeout_seconds)]
        except queue.Empty:
            return ()
        while not self._gpus.events.empty():
            events.append(self._gpus.events.get())
        return tuple(events)
