"""The processes of this node: to whom they belong, and which programs run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Process", "ProcessTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of the host.

    Attributes:
        process_id: Host PID.
        started: When it started, in clock ticks since boot: with the PID it is unique.
        name: Name of its program, at most 15 characters as the kernel keeps it.
        pod_uid: UID of the pod it runs in, None outside of pods.
        container_id: Id of the container it runs in, None outside of containers.
    """

    process_id: int
    started: int
    name: str
    pod_uid: str | None = None
    container_id: str | None = None


class ProcessTable(Protocol):
    """Reads the host's processes; a process that ends meanwhile is left out."""

    def find(self, process_ids: Collection[int]) -> Mapping[int, Process]:
        """Return the processes with these PIDs, as far as they exist and can be read."""

    def programs(self, names: Collection[str]) -> Sequence[Process]:
        """Return the processes whose program has one of these file names, by PID.

        A name is compared whole with the file name of the program that was started, which may be
        longer than the 15 characters of ``Process.name``.
        """
