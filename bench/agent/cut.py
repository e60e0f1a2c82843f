"""How long it takes until the kubelet lists the slices of a node whose GPUs are to be cut.

The peer is the least that must be done: the driver's calls back to back, and one registration of
what they made. It does not look whether anybody holds a GPU, and could not be run twice.
"""

import asyncio
import random
import time
from dataclasses import dataclass

from bench.agent.node import MODEL, AgentProcess, node
from bench.agent.peer import Peer

__all__ = ["Cut", "measure"]

_CALM_SECONDS = 1.5  # after a change; then an edit comes at any moment between two looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What was measured; all in seconds.

    Attributes:
        gpus: Number of GPUs.
        slices: Slices that the kubelet lists in the end.
        cut: From the edit until the kubelet lists all slices and no whole GPU, each time.
        uncut: The way back, each time.
        peer: The peer's cut, each time.
    """

    gpus: int
    slices: int
    cut: tuple[float, ...]
    uncut: tuple[float, ...]
    peer: tuple[float, ...]


async def measure(gpus: int, repeats: int) -> Cut:
    """Cut and uncut a node so many times, and let the peer cut as many."""
    cut: list[float] = []
    uncut: list[float] = []
    async with node(gpus) as one:
        with AgentProcess(one, f"--simulate={MODEL}:{gpus}") as agent:
            await agent.serves(cut=False)
            for number in range(repeats):
                for seconds, wanted in ((cut, True), (uncut, False)):
                    await _calm(number)
                    began = time.monotonic()
                    one.want(cut=wanted)
                    await agent.serves(cut=wanted)
                    seconds.append(time.monotonic() - began)
    peer = [await _peer(gpus) for _ in range(repeats)]
    return Cut(gpus=gpus, slices=one.slices, cut=tuple(cut), uncut=tuple(uncut), peer=tuple(peer))


async def _calm(seed: int) -> None:
    moment = random.Random(seed).random()  # noqa: S311 - repeatable, not secret
    await asyncio.sleep(_CALM_SECONDS + moment)


async def _peer(gpus: int) -> float:
    async with node(gpus) as one:
        with Peer(one.device_plugins, gpus) as peer:
            began = time.monotonic()
            peer.cut()
            await one.until_listed(cut=True)
            return time.monotonic() - began
