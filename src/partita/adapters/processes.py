"""The host's processes as the kernel tells them in ``/proc``.

A container that mounts the host's ``/proc`` elsewhere names that place; it sees the host's PIDs
only then, or in the host's PID namespace. Formats: ``proc(5)``, ``cgroups(7)``. How kubelets and
runtimes name cgroups: Kubernetes ``pkg/kubelet/cm``, containerd, CRI-O and cri-dockerd; paths are
read from their tail, because what is before it differs (kind, a cgroup root of one's own, a cgroup
namespace).
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from partita.ports.process_table import Process

__all__ = ["ProcProcessTable"]

_KEPT_NAME = 15  # TASK_COMM_LEN of the kernel, without the zero
_FULL_SEARCH = 6  # which search reads all names anew
_START_FIELD = 22 - 3  # of stat, counted from the first field after the name
_GONE = {"Z", "X"}  # states of a process that has ended
_DELETED = " (deleted)"

# pod<uid>, kubepods-burstable-pod<uid>.slice; a static pod has a hash without dashes for a UID.
_UUID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
_POD = re.compile(rf"(?:[a-z0-9.-]*-)?pod({_UUID}|[0-9a-f]{{32}})(?:\.slice)?")
# <id>, cri-containerd-<id>.scope, crio-<id>.scope, docker-<id>.scope
_CONTAINER = re.compile(r"(?:[a-z][a-z-]*-)?([0-9a-f]{64})(?:\.scope)?")
_MONITOR = "crio-conmon-"  # stands beside the container that it watches


class ProcProcessTable:
    """The processes under ``/proc``.

    What is kept from one search to the next only saves time: the names of a process are read again
    when the kernel calls it otherwise, as it does after ``exec``, and all of them now and then.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._names: dict[int, tuple[bytes, frozenset[str]]] = {}  # PID → comm, file names
        self._searches = 0

    def find(self, process_ids: Collection[int]) -> Mapping[int, Process]:
        """Return the processes with these PIDs, as far as they exist and can be read."""
        found = {process_id: self._process(process_id) for process_id in process_ids}
        return {key: process for key, process in found.items() if process is not None}

    def programs(self, names: Collection[str]) -> Sequence[Process]:
        """Return the processes whose program has one of these file names, by PID.

        The program is the file that runs, what it was called, or the script that it was started
        for. A process that has ended and waits for its parent runs no program.
        """
        wanted = frozenset(names)
        self._learn_names()
        running = (
            self._process(process_id)
            for process_id, (_, known) in sorted(self._names.items())
            if not wanted.isdisjoint(known)
            and not wanted.isdisjoint(self._file_names(process_id))  # it may have ended
        )
        return tuple(process for process in running if process is not None)

    def _learn_names(self) -> None:
        """Learn the names of all processes; of a known one ask only what the kernel calls it."""
        before = self._names if self._searches % _FULL_SEARCH else {}
        self._searches += 1
        self._names = {}
        for process_id in self._process_ids():
            comm, known = self._comm(process_id), before.get(process_id)
            if comm is None or known is None or known[0] != comm:
                known = (comm or b"", frozenset(self._file_names(process_id)))
            self._names[process_id] = known

    def _process_ids(self) -> Iterator[int]:
        try:
            names = os.listdir(self._root)  # noqa: PTH208 - all of them every few seconds
        except OSError:
            return
        for name in names:
            if name.isascii() and name.isdigit():
                yield int(name)

    def _comm(self, process_id: int) -> bytes | None:
        """Return what the kernel calls a process, at the least cost; None when it does not say."""
        try:
            file = os.open(f"{self._root}/{process_id}/comm", os.O_RDONLY)
        except OSError:
            return None
        try:
            return os.read(file, _KEPT_NAME + 2)
        except OSError:  # it has ended since
            return None
        finally:
            os.close(file)

    def _process(self, process_id: int) -> Process | None:
        folder = self._root / str(process_id)
        try:
            name, _, started = _stat(folder)
            pod_uid, container_id = _membership(_text(folder / "cgroup"))
            if _stat(folder)[2] != started:  # another process has the PID now
                return None
        except (OSError, ValueError):
            return None
        return Process(
            process_id=process_id,
            started=started,
            name=name[:_KEPT_NAME],
            pod_uid=pod_uid,
            container_id=container_id,
        )

    def _file_names(self, process_id: int) -> Iterator[str]:
        folder = self._root / str(process_id)
        try:
            kept, state, _ = _stat(folder)
            arguments = _text(folder / "cmdline").split("\0")
        except (OSError, ValueError):
            return
        if state in _GONE:
            return
        if len(kept) < _KEPT_NAME:  # else it may be cut off
            yield kept
        yield arguments[0].rpartition("/")[2]
        script = arguments[1].rpartition("/")[2] if len(arguments) > 1 else ""
        if script and script[:_KEPT_NAME] == kept:  # the kernel names a script after its file
            yield script
        try:
            file = (folder / "exe").readlink().name
        except OSError:  # of another user, and we are not root
            return
        yield file.removesuffix(_DELETED)  # replaced while it runs, as by an upgrade


def _stat(folder: Path) -> tuple[str, str, int]:
    """Return name, state and start; the name may hold blanks and parentheses."""
    head, parenthesis, tail = _text(folder / "stat").rpartition(")")
    fields = tail.split()
    if not parenthesis or len(fields) <= _START_FIELD:
        raise ValueError(tail)
    return head.partition("(")[2], fields[0], int(fields[_START_FIELD])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _membership(cgroups: str) -> tuple[str | None, str | None]:
    """Return pod UID and container id. Cgroup v1 has a line per controller, one of which says it.

    From inside a cgroup namespace the cgroups above are ``..``: a process of the reader's own pod
    may then show its container alone, one of the reader's own container nothing.
    """
    told = [_members(line.split(":", 2)[-1]) for line in cgroups.splitlines()]
    return max(told, key=_fullness, default=(None, None))


def _fullness(told: tuple[str | None, str | None]) -> tuple[bool, bool]:
    pod_uid, container_id = told
    return pod_uid is not None, container_id is not None


def _members(path: str) -> tuple[str | None, str | None]:
    """Return what one path says; a pod holds the first container below it, else the last counts.

    The first pod is the host's, when a cluster runs inside of a pod.
    """
    parts = (
        path.removesuffix(_DELETED).replace(":", "/").split("/")
    )  # "….slice:cri-containerd:<id>"
    pods = [(at, match[1]) for at, part in enumerate(parts) if (match := _POD.fullmatch(part))]
    if not pods:
        return None, next(_containers(reversed(parts)), None)
    at, uid = pods[0]
    return uid.replace("_", "-"), next(_containers(parts[at + 1 :]), None)


def _containers(parts: Iterator[str] | Sequence[str]) -> Iterator[str]:
    for part in parts:
        match = _CONTAINER.fullmatch(part)
        if match is not None and not part.startswith(_MONITOR):
            yield match[1]
