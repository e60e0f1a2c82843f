"""A node to measure on: a simulated kubelet in this process, ``partita agent`` in its own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from partita.adapters.system_clock import SystemClock
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.kubelet import SimulatedKubelet
from partita.simulator.kubelet.process import Settings

__all__ = ["PROFILE", "SLICE", "WHOLE", "AgentProcess", "Node", "node"]

PROFILE = "1g.5gb"
PER_GPU = 7
MODEL = "A100-SXM4-40GB"
WHOLE = "nvidia.com/gpu"
SLICE = f"nvidia.com/mig-{PROFILE}"

_SECONDS = 30.0  # what takes longer is broken, not slow
_TAIL = 2000  # characters of a log that are shown
_POLICY = """\
apiVersion: partita.dev/v1alpha1
kind: PartitionPolicy
metadata: {name: bench}
spec:
  """
_LAYOUT = f"{{{PROFILE}: {PER_GPU}}}"
_CUT = f"{{strategy: MIG, follow: Fixed, mig: {{layout: {_LAYOUT}, allowReset: true}}}}\n"
_UNCUT = "{strategy: Whole, mig: {allowReset: true}}\n"


@dataclass(kw_only=True)
class Node:
    """A folder with a kubelet that runs.

    Attributes:
        base: The folder of all.
        kubelet: The kubelet, to be asked in the thread of the event loop.
        config: The file that says what is wanted.
        gpus: Number of GPUs.
    """

    base: Path
    kubelet: SimulatedKubelet
    gpus: int
    config: Path = field(init=False)

    def __post_init__(self) -> None:
        """Want whole GPUs."""
        self.config = self.base / "wanted.yaml"
        self.want(cut=False)

    @property
    def slices(self) -> int:
        """How many slices there are when all GPUs are cut."""
        return self.gpus * PER_GPU

    @property
    def device_plugins(self) -> Path:
        """The folder of the plugins' sockets."""
        return self.kubelet.folders.device_plugins

    def want(self, *, cut: bool) -> None:
        """Edit what is wanted, as an editor does: a new file in place of the old one."""
        new = self.config.with_suffix(".new")
        new.write_text(_POLICY + (_CUT if cut else _UNCUT), encoding="utf-8")
        new.replace(self.config)

    async def until_listed(self, *, cut: bool) -> None:
        """Wait until the kubelet would give away all slices, or all whole GPUs, and no other."""
        whole, slices = (0, self.slices) if cut else (self.gpus, 0)
        wanted = {WHOLE: whole, SLICE: slices}

        def listed() -> bool:
            totals = self.kubelet.report()
            return wanted == {
                name: totals[name].allocatable if name in totals else 0 for name in wanted
            }

        await asyncio.wait_for(self.kubelet.until(listed), _SECONDS)


@asynccontextmanager
async def node(gpus: int) -> AsyncIterator[Node]:
    """Yield a node of that many A100-SXM4-40GB, whole, with MIG off."""
    with TemporaryDirectory(prefix="bench-") as folder:
        folders = Folders(base=Path(folder, "kubelet"))
        kubelet = SimulatedKubelet(Settings(folders=folders, clock=SystemClock()))
        await kubelet.start()
        try:
            yield Node(base=Path(folder), kubelet=kubelet, gpus=gpus)
        finally:
            await kubelet.stop()


class AgentProcess:
    """``partita agent`` on a node, from entering the context to leaving it.

    Attributes:
        node: The node.
    """

    def __init__(
        self, node: Node, *options: str, environment: dict[str, str] | None = None
    ) -> None:
        """Prepare; ``options`` and ``environment`` are added to what is usual."""
        self.node = node
        self._options = options
        self._environment = os.environ | (environment or {})
        self._log = node.base / "agent.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int:
        """Its PID."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        """Start it."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                self._command(), env=self._environment, stdout=log, stderr=log
            )
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_SECONDS)

    async def serves(self, *, cut: bool) -> None:
        """Wait until the kubelet lists all of it.

        Raises:
            RuntimeError: When the agent ends instead, or takes far too long.
        """
        listed = asyncio.create_task(self.node.until_listed(cut=cut))
        while not listed.done():
            await asyncio.wait([listed], timeout=1.0)
            if self._process is None or self._process.poll() is not None:
                listed.cancel()
                raise RuntimeError(f"the agent has ended: {self._said()}")
        if listed.exception() is not None:
            raise RuntimeError(f"the agent does not do it: {self._said()}") from listed.exception()

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8")[-_TAIL:]

    def _command(self) -> list[str]:
        base = self.node.base
        return [
            *(sys.executable, "-m", "partita", "agent"),
            f"--config={self.node.config}",
            f"--kubelet-folder={self.node.device_plugins.parent}",
            f"--cdi-folder={self.node.kubelet.folders.cdi}",
            f"--state={base / 'state.json'}",
            "--listen=127.0.0.1:0",
            *self._options,
        ]
