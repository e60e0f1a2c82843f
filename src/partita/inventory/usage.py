"""Signs that a GPU or an instance is in use although no process of it is listed.

A driver lists processes of its own PID namespace only, and a context may outlive its process; the
memory in use tells of both. The driver itself uses some: observed captures of idle boards show 12
to 25 MiB on an instance (up to about 100 MiB on one that is the whole board), and up to about
1000 MiB on a board without MIG, where older drivers count what they reserve.
"""

from collections.abc import Iterator

from partita.model.report import GpuReport, InstanceReport

__all__ = ["signs"]

_IDLE_INSTANCE = (64, 1)  # MiB, and percent of its memory; whichever is more
_IDLE_GPU = (1024, 3)


def signs(report: GpuReport | InstanceReport) -> tuple[str, ...]:
    """Return what speaks for use beside the processes listed, in words; nothing when idle.

    A source that has no reading of memory in use speaks for nothing.
    """
    return tuple(_signs(report))


def _signs(report: GpuReport | InstanceReport) -> Iterator[str]:
    if report.processes_unreadable:
        yield "a process whose id cannot be read"
    if report.process_ids:
        return
    used = report.used_memory_mib
    if used is None and report.used_unreadable:
        yield "its memory in use cannot be read"
    elif used is not None and used > _idle(report):
        yield f"{used} MiB in use, no process listed"


def _idle(report: GpuReport | InstanceReport) -> int:
    """Return how much memory, in MiB, may be in use on it while nobody uses it."""
    least, percent = _IDLE_GPU if isinstance(report, GpuReport) else _IDLE_INSTANCE
    return max(least, (report.memory_mib or 0) * percent // 100)
