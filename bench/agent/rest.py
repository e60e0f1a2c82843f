"""What the agent costs while nothing happens: CPU and memory, with all GPUs cut and served.

It is measured twice at once: over simulated GPUs, and over NVML with the stub library of the tests.
The stub reads its state from a file in every call; that is time of the process, though no driver
spends it so. The simulated GPUs cost nothing, so what is true lies between the two.
"""

import asyncio
import os
import shutil
import subprocess
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.agent.node import MODEL, AgentProcess, Node, node
from tests.nvml.world import STATE_VARIABLE, World

__all__ = ["Cost", "measure"]

_SETTLE_SECONDS = 10.0  # every look around the node has been taken once then
_SOURCES = Path(__file__).parents[2] / "tests" / "nvml"
_LIBRARY = "libnvidia-ml.so.1"
_KIBIBYTE = 1 << 10
# The stub asks its file 500 times a second whether there is an event; a driver sleeps.
_BUSY, _SLEEPING = "PAUSE_MICROSECONDS = 2000", "PAUSE_MICROSECONDS = 250000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one agent costs.

    Attributes:
        driver: ``simulated`` or ``stub NVML``.
        gpus: Number of GPUs.
        seconds: How long it was watched.
        cpu_seconds: CPU time of all its threads meanwhile, in user and kernel mode.
        resident_bytes: Its pages in memory, VmRSS.
        proportional_bytes: The same with each shared page divided by those who share it, PSS.
    """

    driver: str
    gpus: int
    seconds: float
    cpu_seconds: float
    resident_bytes: int
    proportional_bytes: int

    @property
    def cpu_share(self) -> float:
        """Of one core."""
        return self.cpu_seconds / self.seconds


async def measure(gpus: int, seconds: float, *, settle: float = _SETTLE_SECONDS) -> list[Cost]:
    """Watch an agent over simulated GPUs, and one over the stub where there is a C compiler."""
    compiler = shutil.which("cc")
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(node(gpus))
        agents = {"simulated": AgentProcess(one, f"--simulate={MODEL}:{gpus}")}
        if compiler is not None:
            one = await stack.enter_async_context(node(gpus))
            agents["stub NVML"] = AgentProcess(one, environment=_stub(one, compiler))
        for agent in agents.values():
            agent.node.want(cut=True)
            stack.enter_context(agent)
        for agent in agents.values():
            await agent.serves(cut=True)
        await asyncio.sleep(settle)
        return await _watch(agents, gpus, seconds)


async def _watch(agents: dict[str, AgentProcess], gpus: int, seconds: float) -> list[Cost]:
    began = time.monotonic()
    before = {name: _cpu_seconds(agent.process_id) for name, agent in agents.items()}
    await asyncio.sleep(seconds)
    spent = time.monotonic() - began
    return [
        Cost(
            driver=name,
            gpus=gpus,
            seconds=spent,
            cpu_seconds=_cpu_seconds(agent.process_id) - before[name],
            resident_bytes=_memory(agent.process_id, "Rss"),
            proportional_bytes=_memory(agent.process_id, "Pss"),
        )
        for name, agent in agents.items()
    ]


def _stub(one: Node, compiler: str) -> dict[str, str]:
    """Build the stub library for a node, and return the environment in which it is found."""
    folder = one.base / "stub"
    shutil.copytree(_SOURCES, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    events = folder / "stub_events.c"
    text = events.read_text(encoding="utf-8")
    if _BUSY not in text:
        raise RuntimeError(f"the stub waits in another way now: {_SOURCES / events.name}")
    events.write_text(text.replace(_BUSY, _SLEEPING), encoding="utf-8")
    names = [f"-Wl,-soname,{_LIBRARY}", "-o", str(folder / _LIBRARY)]
    sources = map(str, folder.glob("*.c"))
    options = ["-shared", "-fPIC", "-O2", "-std=c11", "-fvisibility=hidden"]
    subprocess.run([compiler, *options, *names, *sources], check=True)  # noqa: S603 - no shell
    world = one.base / "gpus.txt"
    World(world, *[MODEL] * one.gpus)
    return {"LD_LIBRARY_PATH": str(folder), STATE_VARIABLE: str(world)}


def _cpu_seconds(process_id: int) -> float:
    """Return utime and stime of a process; proc(5)."""
    text = Path("/proc", str(process_id), "stat").read_text(encoding="utf-8")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(process_id: int, name: str) -> int:
    text = Path("/proc", str(process_id), "smaps_rollup").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * _KIBIBYTE
