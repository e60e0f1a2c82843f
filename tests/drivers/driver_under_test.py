"""A GPU driver as the facts of this folder need it: the real adapter, and every imitation.

Besides the driver there are controls, for what happens to GPUs from outside of it. A board is
named as in ``simulator.gpus.parse``.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from partita.errors import DriverError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import (
    DriverFailure,
    DriverGpu,
    DriverInstance,
    GpuDriver,
    ModeChange,
    Recovery,
)
from partita.simulator.gpus import Operation


class DriverUnderTest(Protocol):
    """One node's driver, and a hand on the node."""

    @property
    def driver(self) -> GpuDriver:
        """The driver."""
        ...

    def add_process(self, uuid: str, instance_id: int | None = None) -> int:
        """Let a process use a GPU or an instance of it, and return its PID."""
        ...

    def end_process(self, process_id: int) -> None:
        """Let a process end."""
        ...

    def lose(self, uuid: str) -> None:
        """Let a GPU fall off the bus."""
        ...

    def recover(self, uuid: str) -> None:
        """Let a lost GPU be there again, as it was."""
        ...

    def need(self, uuid: str, recovery: Recovery) -> None:
        """Let a GPU need something before it is well again."""
        ...

    def emit(self, uuid: str, xid: int) -> None:
        """Let a GPU report an XID."""
        ...

    def inject(self, uuid: str, operation: Operation, failure: DriverFailure) -> None:
        """Let the next such call about a GPU fail."""
        ...


Implementation = Callable[[str], AbstractContextManager[DriverUnderTest]]
"""From the GPUs of a node, ``A100-SXM4-40GB:8``, to that node until the context ends."""


def only(driver: GpuDriver) -> DriverGpu:
    """Return the one GPU of a node."""
    (gpu,) = driver.gpus()
    return gpu


def partitioned(driver: GpuDriver) -> str:
    """Switch MIG on on the one GPU of a node, and return its UUID."""
    uuid = only(driver).uuid
    if driver.set_mig_mode(uuid, MigMode.ON) is ModeChange.RESET_REQUIRED:
        driver.reset(uuid)
    assert only(driver).mig_mode is MigMode.ON
    return uuid


def create(driver: GpuDriver, uuid: str, profile_id: int, placement: str) -> DriverInstance:
    """Create an instance at ``start:size``."""
    start, size = placement.split(":")
    return driver.create_instance(uuid, profile_id, Placement(start=int(start), size=int(size)))


def refused(call: Callable[[], object]) -> DriverFailure | None:
    """Return with which failure a call was refused, None when it was not."""
    try:
        call()
    except DriverError as error:
        return DriverFailure(error.failure)
    return None
