"""The simulator's driver, with its controls as the facts of this folder need them."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from tests.drivers.driver_under_test import DriverUnderTest

from partita.ports.gpu_driver import DriverFailure, GpuDriver, HealthEvent
from partita.simulator import gpus
from partita.simulator.gpu_driver import SimulatedGpuDriver


class SimulatedNode:
    """A simulated node's driver and controls."""

    def __init__(self, boards: str) -> None:
        self.gpus = gpus.SimulatedGpus(gpus.parse(boards))
        self.driver: GpuDriver = SimulatedGpuDriver(self.gpus)
        self.end_process = self.gpus.end_process
        self.lose = self.gpus.lose
        self.recover = self.gpus.recover
        self.need = self.gpus.need
        self._process_ids = itertools.count(4001)

    def add_process(self, uuid: str, instance_id: int | None = None) -> int:
        """Let a process use a GPU or an instance of it, and return its PID."""
        process_id = next(self._process_ids)
        self.gpus.add_process(uuid, process_id, instance_id=instance_id)
        return process_id

    def emit(self, uuid: str, xid: int) -> None:
        """Let a GPU report an XID."""
        self.gpus.emit(HealthEvent(uuid=uuid, xid=xid))

    def inject(self, uuid: str, operation: gpus.Operation, failure: DriverFailure) -> None:
        """Let the next such call about a GPU fail."""
        self.gpus.fail_next(uuid, operation, failure)


@contextmanager
def start(boards: str) -> Iterator[DriverUnderTest]:
    """Yield a simulated node with these GPUs."""
    yield SimulatedNode(boards)
