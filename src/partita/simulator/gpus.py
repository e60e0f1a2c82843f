"""The GPUs of a simulated node, and what happens to them from outside the driver.

The hand on the world: processes come and go, boards fall off the bus, the node reboots, the driver
fails. ``simulator.gpu_driver`` is the driver that programs see; several may look at one world, as
after the restart of a program.
"""

import queue
import uuid as uuids
from collections import deque
from collections.abc import Sequence
from typing import Literal

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel
from partita.errors import ImpossibleWorldError
from partita.inventory import numbering
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, DriverProcess, HealthEvent, Recovery
from partita.simulator.board import Board, refusal

__all__ = ["Operation", "SimulatedGpus", "parse"]

Operation = Literal[
    "gpus",
    "processes",
    "set_mig_mode",
    "reset",
    "create_instance",
    "destroy_instance",
    "wait_for_events",
]
"""A method of the driver."""

_MOST_GPUS = 32  # NV_MAX_DEVICES of NVIDIA's driver (open-gpu-kernel-modules, nvlimits.h)


def parse(text: str) -> tuple[tuple[str, int], ...]:
    """Return the GPUs of a text such as ``A100-SXM4-40GB:8`` or ``T4,L4:2`` as (name, count).

    A name is any that the catalogue knows; without a count it is one GPU.

    Raises:
        UnknownModelError: When the catalogue has no such GPU.
    """
    return tuple(_parse_one(part.strip()) for part in text.split(","))


def _parse_one(text: str) -> tuple[str, int]:
    name, colon, count = text.rpartition(":")
    if colon and count.isascii() and count.isdigit() and library.find(text) is None:
        return library.get(name).id, int(count)
    return library.get(text).id, 1  # a PCI id has a colon of its own


class SimulatedGpus:
    """The boards of one node.

    UUIDs, and which numbering of instance ids a board has, follow from the seed. Not safe for use
    from several threads, but for ``emit``, which wakes a driver that waits in another.

    Raises:
        UnknownModelError: When the catalogue has no such GPU.
        ImpossibleWorldError: When no node can have these GPUs.
    """

    def __init__(self, gpus: Sequence[tuple[str, int]], *, seed: str = "partita") -> None:
        for name, count in gpus:
            if count < 1:
                raise _impossible(f"{count} boards of {name}", "give at least one")
        models = [library.get(name) for name, count in gpus for _ in range(min(count, _MOST_GPUS))]
        total = sum(count for _, count in gpus)
        if total > _MOST_GPUS:
            raise _impossible(
                f"NVIDIA's driver serves at most {_MOST_GPUS} GPUs on one node, asked for: {total}",
                "spread them over several nodes",
            )
        boards = [_board(model, index, len(models), seed) for index, model in enumerate(models)]
        self.boards = {board.uuid: board for board in boards}
        self.events = queue.SimpleQueue[HealthEvent]()
        self._failures: dict[tuple[str | None, Operation], deque[DriverFailure]] = {}

    def fail_next(self, uuid: str | None, operation: Operation, failure: DriverFailure) -> None:
        """Let the next such call fail and change nothing; several failures queue up.

        A failure of ``gpus`` about one GPU is not raised, it is the GPU's failure in the answer.

        Args:
            uuid: GPU it concerns, None for the driver as a whole (``gpus`` and
                ``wait_for_events`` alone are calls without a GPU).
            operation: The driver's method.
            failure: What the driver says.
        """
        if uuid is not None:
            self._existing(uuid)
        without_gpu = operation in {"gpus", "wait_for_events"}
        if (uuid is None and not without_gpu) or (uuid and operation == "wait_for_events"):
            raise _impossible(
                f"{operation} is not asked of {'one GPU' if uuid else 'the driver as a whole'}",
                "name a GPU for what is asked of one, and none for the rest",
            )
        self._failures.setdefault((uuid, operation), deque()).append(failure)

    def failure(self, uuid: str | None, operation: Operation) -> DriverFailure | None:
        """Take the failure that this call meets, None when it meets none."""
        if uuid is not None and self.boards[uuid].lost:
            return DriverFailure.GPU_IS_LOST
        waiting = self._failures.get((uuid, operation))
        return waiting.popleft() if waiting else None

    def use(self, uuid: str, operation: Operation) -> Board:
        """Return the board for a call of the driver.

        Raises:
            DriverError: When there is no such GPU, or the call is to fail.
        """
        board = self.boards.get(uuid)
        if board is None:
            raise refusal(DriverFailure.NOT_FOUND, uuid=uuid, why="no such GPU")
        self.check(uuid, operation)
        return board

    def check(self, uuid: str | None, operation: Operation) -> None:
        """Raise ``DriverError`` when this call is to fail."""
        failure = self.failure(uuid, operation)
        if failure is not None:
            raise refusal(failure, uuid=uuid, why=f"it was told to fail: {operation}")

    def add_process(
        self,
        uuid: str,
        process_id: int,
        *,
        instance_id: int | None = None,
        used_memory_bytes: int | None = None,
    ) -> None:
        """Let a process use a GPU, or one of its instances.

        A process without an instance can use a GPU in MIG mode as well, as profilers do; while it
        does, no first instance can be created.
        """
        board = self._existing(uuid)
        if board.lost:
            raise _impossible(f"nothing can start on a lost GPU: {uuid}", "recover it first")
        if instance_id is not None and instance_id not in board.instances:
            raise _impossible(f"no instance of {uuid} has id: {instance_id}", "create it first")
        if process_id in board.processes:
            raise _impossible(f"on {uuid} there is already process: {process_id}", "end it first")
        board.processes[process_id] = DriverProcess(
            process_id=process_id, instance_id=instance_id, used_memory_bytes=used_memory_bytes
        )

    def end_process(self, process_id: int) -> None:
        """Let a process end, on every GPU that it uses."""
        if not any(process_id in board.processes for board in self.boards.values()):
            raise _impossible(f"no GPU is used by process: {process_id}", "add it first")
        for board in self.boards.values():
            board.processes.pop(process_id, None)

    def lose(self, uuid: str) -> None:
        """Let a GPU fall off the bus: every call about it fails from now on."""
        self._existing(uuid).lost = True

    def recover(self, uuid: str) -> None:
        """Let a lost GPU be there again, with all that stood on it."""
        self._existing(uuid).lost = False

    def need(self, uuid: str, recovery: Recovery) -> None:
        """Let a GPU need something before it is well again.

        A reset ends ``RESET`` and ``DRAIN``, a reboot every need. No event is emitted: a real
        driver tells of the change with XID 154.
        """
        self._existing(uuid).recovery = recovery

    def emit(self, event: HealthEvent) -> None:
        """Let the driver report an event."""
        if event.uuid is not None:
            board = self._existing(event.uuid)
            if event.instance_id is not None and event.instance_id not in board.instances:
                raise _impossible(
                    f"no instance of {event.uuid} has id: {event.instance_id}", "create it first"
                )
        self.events.put(event)

    def reboot(self) -> None:
        """Reboot the node. Only the MIG mode of Ampere boards is kept; a lost GPU stays lost."""
        for board in self.boards.values():
            board.reboot()
        while not self.events.empty():
            self.events.get()

    def _existing(self, uuid: str) -> Board:
        board = self.boards.get(uuid)
        if board is None:
            raise _impossible(f"there is no GPU: {uuid}", "the driver lists the GPUs")
        return board


def _board(model: GpuModel, index: int, count: int, seed: str) -> Board:
    identity = uuids.uuid5(uuids.NAMESPACE_OID, f"{seed}/{index}/{model.id}")
    known = numbering.numberings(model.mig) if model.mig is not None else ()
    mode = MigMode.OFF if model.mig is not None else MigMode.UNSUPPORTED
    return Board(
        model=model,
        uuid=f"GPU-{identity}",
        index=index,
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        numa_node=2 * index // count,  # two sockets, as most servers have
        mirrored=bool(known and known[identity.int % len(known)]),
        mode=mode,
        pending=mode,
    )


def _impossible(message: str, hint: str) -> ImpossibleWorldError:
    return ImpossibleWorldError(message=message, hint=hint)
