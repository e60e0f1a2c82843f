"""Who else deals with the GPUs of this node, seen in the kubelet's folders and the process table.

Looking disturbs nobody: a socket is connected to and closed, and whether another agent has the node
is asked of the kernel, not tried. Therefore the claim is an *open file description lock*
(``fcntl(2)``), which can be asked about; like ``flock`` it is the kernel that ends it with us.

The claim lies beside the kubelet's socket. At its start the kubelet removes sockets from there and
nothing else (Kubernetes 1.37, ``CleanupPluginDirectory`` of ``pkg/kubelet/cm/devicemanager``).
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from partita.errors import KubeletError, PartitaError
from partita.ports.neighbours import Signs
from partita.ports.process_table import ProcessTable

__all__ = ["CLAIM", "PROGRAMS", "KubeletNeighbours"]

CLAIM = "partita-agent.lock"
"""Name of the file of the claim, in the folder of the device plugins."""

PROGRAMS = (
    "nvidia-device-plugin",  # NVIDIA/k8s-device-plugin; HAMi's has the same name
    "mps-control-daemon",  # of the same project; sets the compute mode of GPUs
    "nvidia-mig-manager",  # NVIDIA/mig-parted
    "nvidia-mig-parted",  # started by mig-manager, or by an administrator
    "reconfigure-mig.sh",  # started by mig-manager until it was written in Go
    "gpu-kubelet-plugin",  # NVIDIA's DRA driver
    "nvidia-gpu-device-plugin",  # Google's container-engine-accelerators
    "volcano-vgpu-device-plugin",
    "gpushare-device-plugin-v2",  # AliyunContainerService
    "nvshare-device-plugin",
    "gpu-manager",  # Tencent's
    "migagent",  # nos
    "das-daemonset",  # instaslice-operator
    "instaslice-daemonset",
)
"""File names of programs that serve GPUs to the kubelet, or cut them.

Left out, as they do neither: ``gpu-feature-discovery``, exporters, ``config-manager`` (stands
beside ``nvidia-device-plugin``) and ``compute-domain-kubelet-plugin`` (serves IMEX channels, and
may run where the DRA driver has no GPUs).
"""

_KUBELET = Path("/var/lib/kubelet")
_NOT_OTHERS = (
    "kubelet.sock",
    "partita-",  # ours, or of the agent that rival_agent tells
)
_LOCK = "@hhqqi"  # struct flock of a 64-bit Linux: type, whence, start, length, PID
_CLAIMED = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # the whole file


class KubeletNeighbours:
    """What can be seen of others from the kubelet's folders. One object has one claim."""

    def __init__(
        self,
        processes: ProcessTable,
        *,
        labels: Callable[[], Mapping[str, str] | None] | None = None,
        device_plugins: Path = _KUBELET / "device-plugins",
        registry: Path = _KUBELET / "plugins_registry",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Look at nothing yet.

        Args:
            processes: The process table of the host.
            labels: Returns the labels of the node, None when it cannot.
            device_plugins: The folder of the kubelet's socket for device plugins.
            registry: The folder in which the kubelet finds other plugins.
            now: The time, with its time zone.
        """
        self._processes = processes
        self._labels = labels
        self._device_plugins = device_plugins
        self._registry = registry
        self._now = now
        self._claim: int | None = None
        self._claim_problem: str | None = None

    def look(self) -> Signs:
        """Return what is there now; what cannot be read is not there."""
        return Signs(
            plugin_sockets=_answering(self._device_plugins),
            registry_sockets=_answering(self._registry),
            programs=self._programs(),
            rival_agent=self._rival(),
            labels=self._told_labels(),
            claimed=self._claim is not None,
            claim_problem=self._claim_problem,
        )

    def take(self) -> bool:
        """Claim the node for this agent until it ends; False when another agent has it.

        A claim counts as long as its file is in its place: when somebody removed it or put another
        there, which the next agent would claim, it is claimed anew.

        Raises:
            KubeletError: When there is no place for the claim.
        """
        path = self._device_plugins / CLAIM
        if self._claim is not None and _is_in_place(self._claim, path):
            return True
        self.close()
        try:
            self._claim = self._claimed(path)
        except BlockingIOError:  # another agent has it
            return False
        except OSError as error:
            self._claim_problem = f"cannot claim the node: {error.strerror}: {path}"
            raise KubeletError(
                message=self._claim_problem,
                hint="mount the kubelet's folder of device plugins, and run as root",
            ) from error
        return True

    def close(self) -> None:
        """Give the claim back, as the end of the program does."""
        self._claim_problem = None
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def _claimed(self, path: Path) -> int:
        with contextlib.ExitStack() as undo:
            claim = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
            undo.callback(os.close, claim)
            fcntl.fcntl(claim, fcntl.F_OFD_SETLK, _CLAIMED)
            if not _is_in_place(claim, path):  # it was exchanged just now
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            self._sign(claim)
            undo.pop_all()
        return claim

    def _sign(self, claim: int) -> None:
        since = self._now().isoformat(timespec="seconds")
        os.ftruncate(claim, 0)
        os.write(claim, f"process {os.getpid()} on {socket.gethostname()} since {since}\n".encode())

    def _rival(self) -> str | None:
        if self._claim is not None:
            return None
        try:
            with (self._device_plugins / CLAIM).open(encoding="utf-8", errors="replace") as file:
                told = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _CLAIMED)
                if struct.unpack(_LOCK, told)[0] == fcntl.F_UNLCK:
                    return None
                return file.readline().strip() or "one that has not yet said who it is"
        except OSError:
            return None

    def _programs(self) -> Mapping[str, int]:
        """Return the first process of each program; mostly there is none, told by one look."""
        if not self._processes.programs(PROGRAMS):
            return {}
        running = ((name, self._processes.programs([name])) for name in PROGRAMS)
        return {name: found[0].process_id for name, found in running if found}

    def _told_labels(self) -> Mapping[str, str] | None:
        try:
            return self._labels() if self._labels is not None else None
        except PartitaError:
            return None


def _is_in_place(claim: int, path: Path) -> bool:
    """Tell whether an open file is the one that is found by a path."""
    try:
        return os.path.samestat(os.fstat(claim), path.stat())
    except OSError:
        return False


def _answering(folder: Path) -> tuple[str, ...]:
    """Return the names of others' sockets below a folder that accept connections."""
    others = (path for path in _sockets(folder) if not path.name.startswith(_NOT_OTHERS))
    return tuple(sorted(str(path.relative_to(folder)) for path in others if _accepts(path)))


def _sockets(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(path.stat().st_mode):
                    yield path


def _accepts(path: Path) -> bool:
    """Tell whether somebody listens; who is too busy to accept at once does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ours:
        ours.settimeout(0)
        try:
            with _short(path) as name:
                ours.connect(name)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a name of a socket that fits into an address, which has 108 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
