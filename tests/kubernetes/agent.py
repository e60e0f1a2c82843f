"""The node agent as a process of its own, over the stub NVML library and a kubelet under test."""

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testbed import isolation, waiting
from testbed.errors import WaitError
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.nvml import library
from tests.nvml.world import HANG, STATE_VARIABLE, World

Status = dict[str, Any]
Condition = Callable[[Status], bool]

A100 = "A100-SXM4-40GB"
SECONDS = 20  # a look around the node is taken every 10 s

_NUMBERS = itertools.count(1)
_ROOT = Path(__file__).parents[2]
_FAREWELL_SECONDS = 5
_NVIDIA_SMI = """\
#!{python}
import signal, sys
from pathlib import Path
sys.path[:0] = ["{root}", "{root}/src"]
from tests.nvml.world import World
world = World.__new__(World)
world.path = Path({state!r})
hang = Path({state!r} + ".hang")
when = hang.read_text() if hang.exists() else ""
if when != "before":
    try:
        world.reset(sys.argv[-1])
    except BlockingIOError as error:
        sys.exit("in use: " + str(error))
if when:
    hang.write_text("hangs")
    signal.pause()
"""


def cut(layout: Mapping[str, int]) -> str:
    """Return the wish that every GPU is cut so."""
    return (
        "apiVersion: partita.dev/v1alpha1\n"
        "kind: PartitionPolicy\n"
        "metadata: {name: cut}\n"
        "spec:\n"
        "  strategy: MIG\n"
        "  follow: Fixed\n"
        f"  mig: {{layout: {json.dumps(layout)}, allowReset: true}}\n"
    )


SEVENTHS = cut({"1g.5gb": 7})
HALVES = cut({"3g.20gb": 2})


def time_sliced(replicas: int) -> str:
    """Return the configuration of NVIDIA's device plugin for so many pods on each GPU."""
    return (
        "version: v1\n"
        "sharing:\n"
        "  timeSlicing:\n"
        "    resources:\n"
        "    - name: nvidia.com/gpu\n"
        f"      replicas: {replicas}\n"
    )


class AgentUnderTest:
    """``partita agent`` on a kubelet's node; what is awaited is awaited for a limited time.

    Attributes:
        world: The GPUs of the node; agents of one node share it.
        config: The file that the agent follows.
    """

    def __init__(
        self, folder: Path, kubelet: KubeletUnderTest, world: World, *options: str
    ) -> None:
        """Prepare a program that does not run yet.

        Args:
            folder: A folder for its files; agents of one node may share it.
            kubelet: The kubelet of its node.
            world: The GPUs of its node.
            options: More of its command line; the last word on an option counts.
        """
        self.world = world
        self.name = f"agent-{next(_NUMBERS)}"
        self.config = folder / f"{self.name}.yaml"
        self._state = folder / f"{self.name}.json"
        self._log = folder / f"{self.name}.log"
        self._folder = folder
        self._hang = Path(f"{world.path}.hang")
        self._kubelet = kubelet
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def process_id(self) -> int:
        """Its PID, as long as it has been started."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has written so far, in all its lives."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def status(self) -> Status | None:
        """What the present process says of itself in its state file, None before it does."""
        try:
            status: Status = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return status if status["process_id"] == self.process_id else None

    @property
    def sockets(self) -> list[str]:
        """The sockets of device plugins at its node; those of dead ones may stay behind."""
        folder = self._kubelet.folders.device_plugins
        return [path.name for path in folder.glob("*.sock") if path.name != "kubelet.sock"]

    def want(self, text: str) -> None:
        """Edit what it is to do, as an editor does that writes a new file in place of the old."""
        new = self.config.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.config)

    def hang(self, call: str, number: int = 1) -> None:
        """Let the next call of the driver of that name hang, or one of those that follow it."""
        if number > 1:
            self.world.fail(call, 0, times=number - 1)  # these succeed
        self.world.fail(call, HANG)

    def hang_reset(self, when: str) -> None:
        """Let the next reset hang, ``before`` or ``after`` it has an effect."""
        self._hang.write_text(when, encoding="utf-8")

    def wait_for_hang(self) -> None:
        """Wait until a call of the driver hangs as it was told to."""
        self.wait_until(self._hangs)

    def _hangs(self) -> bool:
        reset = self._hang.exists() and self._hang.read_text(encoding="utf-8") == "hangs"
        errors = self.world.rows("error")
        return reset or any(row[1:] == [str(HANG), "0"] for row in errors)

    def start(self) -> None:
        """Start it, and return at once."""
        assert not self.running
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), env=self._environment(), stderr=log, start_new_session=True
            )

    def serve(self) -> Status:
        """Start it, and wait until it serves all that is wanted."""
        self.start()
        return self.wait(is_ready)

    def stop(self) -> int:
        """End it as the node does, and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_FAREWELL_SECONDS)

    def kill(self) -> None:
        """End it and what it has started as by a crash; from then on nothing hangs.

        But not while it writes the file that stands for the driver, which no crash can tear.
        """
        if self._process is not None:
            with self.world.path.open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if self.running:
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self.world.recover()
        self._hang.unlink(missing_ok=True)

    def wait_for_end(self) -> int:
        """Wait until it ends by itself, and return its exit status."""
        assert self._process is not None
        return self._process.wait(SECONDS)

    def wait(self, condition: Condition, *, seconds: float = SECONDS) -> Status:
        """Wait until a condition holds of what the present process says of itself."""
        found: list[Status] = []

        def holds() -> bool:
            assert self.running, f"{self.name} has ended"
            status = self.status
            found[:] = [] if status is None else [status]
            return status is not None and condition(status)

        try:
            waiting.poll(holds, seconds=seconds, otherwise=f"{self.name} does not say so")
        except WaitError as error:
            error.add_note(json.dumps(found, indent=1))
            raise
        return found[0]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that it is to bring about."""
        waiting.poll(condition, seconds=SECONDS, otherwise=f"{self.name} has not done it")

    def _command(self) -> list[str]:
        folders = self._kubelet.folders
        # What else runs on the machine of a fast test is not this node's.
        root = Path("/") if isolation.inside() else self._folder
        return [
            *(sys.executable, "-m", "partita", "agent"),
            *(("--config", str(self.config)) if self.config.exists() else ()),
            f"--kubelet-folder={folders.device_plugins.parent}",
            f"--cdi-folder={folders.cdi}",
            f"--state={self._state}",
            f"--host-root={root}",
            "--listen=",
            *self._options,
        ]

    def _environment(self) -> dict[str, str]:
        programs = self._folder / "bin"
        programs.mkdir(exist_ok=True)
        smi = programs / "nvidia-smi"
        text = _NVIDIA_SMI.format(python=sys.executable, root=_ROOT, state=str(self.world.path))
        smi.write_text(text, encoding="utf-8")
        smi.chmod(0o755)
        return os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(library.load().parent),
            STATE_VARIABLE: str(self.world.path),
        }


def condition(status: Status, kind: str) -> dict[str, Any]:
    """Return one of the conditions that an agent tells."""
    return next(one for one in status["conditions"] if one["type"] == kind)


def is_ready(status: Status) -> bool:
    """Tell whether an agent serves its node, and every GPU is as wanted."""
    return all(condition(status, kind)["holds"] is True for kind in ("Ready", "GpusAsWanted"))


def phases(status: Status) -> list[str]:
    """Return the phase of every GPU."""
    return [gpu["phase"] for gpu in status["gpus"]]


def slices(status: Status) -> list[dict[str, Any]]:
    """Return what is offered of all GPUs."""
    return [one for gpu in status["gpus"] for one in gpu["slices"]]


def profiles(status: Status) -> list[str]:
    """Return the MIG profiles of all that is offered, without what is about to go."""
    return sorted(one["profile"] for one in slices(status) if one["profile"] and not one["leaving"])
