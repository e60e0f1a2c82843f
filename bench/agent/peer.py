"""The least that cuts GPUs and serves the slices: ``python -m bench.agent.peer FOLDER GPUS``.

It waits for a line, makes the driver's calls back to back, registers once, and answers every
Allocate with an empty response. It looks at nothing and remembers nothing. What partita takes
longer than this is what its care costs.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import grpc
from bench.agent.node import MODEL, PER_GPU, PROFILE, SLICE

from partita.catalog import library
from partita.model.gpu import MigMode
from partita.simulator.gpu_driver import SimulatedGpuDriver
from partita.simulator.gpus import SimulatedGpus
from partita.wire import device_plugin, methods

__all__ = ["SOCKET", "Peer"]

SOCKET = "peer.sock"
_READY = b"ready\n"
_SECONDS = 30.0


class Peer:
    """The peer as a process of its own, from entering the context to leaving it."""

    def __init__(self, folder: Path, gpus: int) -> None:
        self._command = [sys.executable, "-m", "bench.agent.peer", str(folder), str(gpus)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, and return when it waits for its line."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe)  # noqa: S603
        assert self._process.stdout is not None
        if self._process.stdout.readline() != _READY:
            raise RuntimeError("the peer does not start")
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=_SECONDS)

    def cut(self) -> None:
        """Let it begin."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"cut\n")
        self._process.stdin.flush()


def _cut(gpus: int) -> list[str]:
    """Cut new simulated GPUs, and return the UUIDs of the MIG devices."""
    driver = SimulatedGpuDriver(SimulatedGpus([(MODEL, gpus)]))
    mig = library.get(MODEL).mig
    assert mig is not None
    profile = next(one for one in mig.profiles if one.name == PROFILE)
    assert profile.profile_id is not None
    devices = []
    for gpu in driver.gpus():
        driver.set_mig_mode(gpu.uuid, MigMode.ON)
        driver.reset(gpu.uuid)
        for placement in profile.placements[:PER_GPU]:
            instance = driver.create_instance(gpu.uuid, profile.profile_id, placement)
            devices += [one.uuid for one in instance.mig_devices]
    return devices


def _service(devices: list[str]) -> grpc.GenericRpcHandler:
    served = device_plugin.DevicePlugin
    listed = [device_plugin.Device(ID=name, health="Healthy") for name in devices]

    async def options(_: Any, __: object) -> device_plugin.DevicePluginOptions:
        return device_plugin.DevicePluginOptions()

    async def watch(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.write(device_plugin.ListAndWatchResponse(devices=listed))
        await asyncio.Event().wait()

    async def allocate(_: Any, __: object) -> device_plugin.AllocateResponse:
        return device_plugin.AllocateResponse()

    return methods.service(
        served.GetDevicePluginOptions.by(options),
        served.ListAndWatch.by(watch),
        served.Allocate.by(allocate),
    )


async def _serve(folder: Path, gpus: int) -> None:
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    sys.stdin.buffer.readline()
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_service(_cut(gpus)),))
    server.add_insecure_port(f"unix:{folder / SOCKET}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{folder / 'kubelet.sock'}") as channel:
        await device_plugin.Registration.Register.on(channel)(
            device_plugin.RegisterRequest(version="v1beta1", endpoint=SOCKET, resource_name=SLICE)
        )
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
