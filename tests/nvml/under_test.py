"""The NVML driver over the stub library, with the controls of the driver's contract suite."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.nvml import library
from tests.nvml.world import STATE_VARIABLE, World

from partita.adapters.nvml import NvmlDriver
from partita.ports.gpu_driver import DriverFailure, Recovery

__all__ = ["NvmlNode", "start"]

_CALLS = {
    "gpus": "nvmlDeviceGetMigMode",
    "processes": "nvmlDeviceGetComputeRunningProcesses_v3",
    "set_mig_mode": "nvmlDeviceSetMigMode",
    "create_instance": "nvmlDeviceCreateGpuInstanceWithPlacement",
    "destroy_instance": "nvmlComputeInstanceDestroy",
}
_CODES = {
    DriverFailure.NO_PERMISSION: 4,
    DriverFailure.IN_USE: 19,
    DriverFailure.INSUFFICIENT_RESOURCES: 23,
    DriverFailure.UNKNOWN: 999,
}
_ACTIONS = {Recovery.NONE: 0, Recovery.RESET: 1, Recovery.REBOOT: 2, Recovery.DRAIN: 4}


class NvmlNode:
    """A node whose NVML is the stub, and a hand on it."""

    def __init__(self, world: World, driver: NvmlDriver) -> None:
        self.world = world
        self.driver = driver
        self._process_ids = itertools.count(4001)

    def add_process(self, uuid: str, instance_id: int | None = None) -> int:
        """Let a process use a GPU or an instance of it, and return its PID."""
        process_id = next(self._process_ids)
        if instance_id is None:
            self.world.run(self.world.index_of(uuid), process_id)
        else:
            self.world.run(self.world.index_of(uuid), process_id, instance=instance_id)
        return process_id

    def end_process(self, process_id: int) -> None:
        """Let a process end."""
        self.world.stop(process_id)

    def lose(self, uuid: str) -> None:
        """Let a GPU fall off the bus."""
        self.world.lose(self.world.index_of(uuid))

    def recover(self, uuid: str) -> None:
        """Let a lost GPU be there again, as it was."""
        self.world.lose(self.world.index_of(uuid), lost=False)

    def need(self, uuid: str, recovery: Recovery) -> None:
        """Let a GPU need something before it is well again."""
        self.world.tell(self.world.index_of(uuid), recovery=_ACTIONS[recovery])

    def emit(self, uuid: str, xid: int) -> None:
        """Let a GPU report an XID."""
        self.world.raise_xid(self.world.index_of(uuid), xid)

    def inject(self, uuid: str, operation: str, failure: DriverFailure) -> None:
        """Let the next such call fail; the stub does not ask of which GPU."""
        self.world.index_of(uuid)  # it must be there
        self.world.fail(_CALLS[operation], _CODES[failure])


@contextmanager
def start(boards: str) -> Iterator[NvmlNode]:
    """Yield a node with these GPUs, ``A100-SXM4-40GB:8``, which resets by command only."""
    library.load()
    name, _, count = boards.partition(":")
    models = [name] * int(count or 1)
    before = os.environ.get(STATE_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="nvml-world-") as folder:
        path = Path(folder, "state.txt")
        os.environ[STATE_VARIABLE] = str(path)
        world = World(path, *models, by_user=True)
        driver = NvmlDriver(reset_command=world.reset, sysfs=Path(folder, "sys"))
        try:
            yield NvmlNode(world, driver)
        finally:
            driver.close()
            os.environ.pop(STATE_VARIABLE)
            if before is not None:
                os.environ[STATE_VARIABLE] = before
