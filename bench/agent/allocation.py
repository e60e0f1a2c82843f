"""How long Allocate takes over the Unix socket, beside a server that answers nothing."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass

from bench.agent.node import MODEL, SLICE, AgentProcess, Node, node
from bench.agent.peer import SOCKET, Peer

from partita.adapters.local_kubelet import LocalKubelet

__all__ = ["Allocation", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What was measured.

    Attributes:
        devices: Devices that are offered.
        seconds: Seconds of every call of partita.
        peer: Seconds of every call of the peer.
    """

    devices: int
    seconds: tuple[float, ...]
    peer: tuple[float, ...]


async def measure(gpus: int, calls: int) -> Allocation:
    """Cut a node, and allocate one device after the other, from a process of its own."""
    async with node(gpus) as one, node(gpus) as other:
        one.want(cut=True)
        with (
            AgentProcess(one, f"--simulate={MODEL}:{gpus}") as agent,
            Peer(other.device_plugins, gpus) as peer,
        ):
            await agent.serves(cut=True)
            peer.cut()
            await other.until_listed(cut=True)
            names = await _names(one)
            seconds, least = await asyncio.to_thread(_call, one, other, names, calls)
    return Allocation(devices=one.slices, seconds=tuple(seconds), peer=tuple(least))


async def _names(one: Node) -> list[str]:
    kubelet = LocalKubelet(one.kubelet.folders.pod_resources, one.device_plugins)
    try:
        return sorted((await kubelet.allocatable())[SLICE])
    finally:
        await kubelet.close()


def _call(one: Node, other: Node, names: list[str], calls: int) -> tuple[list[float], list[float]]:
    (ours,) = one.device_plugins.glob(f"partita-{SLICE.rpartition('/')[2]}-*.sock")
    sockets = [str(ours), str(other.device_plugins / SOCKET)]
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-m", "bench.agent.caller", str(calls), *sockets],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, least = json.loads(done.stdout)
    return seconds, least
