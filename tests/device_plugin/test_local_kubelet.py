"""What the kubelet of the node says, and what becomes of answers that are none."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from partita.adapters.local_kubelet import LocalKubelet
from partita.errors import KubeletError
from partita.ports.kubelet import Holding, Remembered
from partita.wire import methods
from partita.wire import pod_resources as v1

_LISTER = v1.PodResourcesLister


class _Kubelet:
    """Answers with what a test puts in it; fails with ``failures`` first, one per call."""

    def __init__(self) -> None:
        self.pods = v1.ListPodResourcesResponse()
        self.allocatable = v1.AllocatableResourcesResponse()
        self.failures: list[grpc.StatusCode] = []
        self.calls = 0

    async def list(self, _: object, context: Any) -> v1.ListPodResourcesResponse:
        await self._fail(context)
        return self.pods

    async def get_allocatable(self, _: object, context: Any) -> v1.AllocatableResourcesResponse:
        await self._fail(context)
        return self.allocatable

    async def _fail(self, context: Any) -> None:
        self.calls += 1
        if self.failures:
            await context.abort(self.failures.pop(0), "rate limit\nexceeded")


@contextlib.asynccontextmanager
async def _asked(folder: Path, **arguments: Any) -> AsyncIterator[tuple[LocalKubelet, _Kubelet]]:
    side = _Kubelet()
    reader = LocalKubelet(folder / "kubelet.sock", folder, **arguments)
    async with _running(folder, side):
        yield reader, side
    await reader.close()


@contextlib.asynccontextmanager
async def _running(folder: Path, side: _Kubelet) -> AsyncIterator[None]:
    server = grpc.aio.server()
    handlers = methods.service(
        _LISTER.List.by(side.list), _LISTER.GetAllocatableResources.by(side.get_allocatable)
    )
    server.add_generic_rpc_handlers((handlers,))
    server.add_insecure_port(f"unix:{folder}/kubelet.sock")
    await server.start()
    yield
    await server.stop(None)


def _pod(*containers: v1.ContainerResources) -> v1.PodResources:
    return v1.PodResources(name="pod", namespace="team", containers=containers)


async def test_holdings_are_by_container_and_device(folder: Path) -> None:
    """One entry per NUMA node adds up; claims (DRA) count as held through a claim."""
    claimed = v1.ClaimResource(driver_name="gpu.nvidia.com", pool_name="oak", device_name="gpu-0")
    container = v1.ContainerResources(
        name="main",
        devices=[
            v1.ContainerDevices(resource_name="r/gpu", device_ids=["a"]),
            v1.ContainerDevices(resource_name="r/gpu", device_ids=["b"]),
        ],
        dynamic_resources=[v1.DynamicResource(claim_name="c", claim_resources=[claimed])],
    )
    async with _asked(folder) as (reader, side):
        side.pods.pod_resources.append(_pod(container, v1.ContainerResources(name="plain")))
        holdings = await reader.holdings()

    common = {"namespace": "team", "pod": "pod", "container": "main"}
    assert list(holdings) == [
        Holding(resource="r/gpu", device_id="a", **common),
        Holding(resource="r/gpu", device_id="b", **common),
        Holding(resource="gpu.nvidia.com", device_id="oak/gpu-0", claimed=True, **common),
    ]


async def test_allocatable_devices_are_by_resource(folder: Path) -> None:
    """The entries of several NUMA nodes are one set."""
    async with _asked(folder) as (reader, side):
        side.allocatable.devices.extend(
            v1.ContainerDevices(resource_name=name, device_ids=[device_id])
            for name, device_id in (("r/gpu", "a"), ("r/mig", "m"), ("r/gpu", "b"))
        )
        assert await reader.allocatable() == {
            "r/gpu": frozenset({"a", "b"}),
            "r/mig": frozenset({"m"}),
        }


async def test_a_large_answer_is_taken(folder: Path) -> None:
    """More than gRPC's usual 4 MiB are no error."""
    devices = v1.ContainerDevices(resource_name="r", device_ids=["x" * 60] * 100_000)
    async with _asked(folder) as (reader, side):
        side.allocatable.devices.append(devices)
        assert await reader.allocatable() == {"r": frozenset({"x" * 60})}


async def test_too_many_questions_are_asked_again(folder: Path) -> None:
    """The kubelet limits how often it is asked by everybody together."""
    async with _asked(folder) as (reader, side):
        side.failures = [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
        assert await reader.holdings() == ()
        assert side.calls == 3


@pytest.mark.parametrize(
    ("code", "calls", "hint"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 4, "which monitor it is"),
        (grpc.StatusCode.UNIMPLEMENTED, 1, "Kubernetes 1.28 or later"),
        (grpc.StatusCode.INTERNAL, 1, "see the log of the kubelet"),
    ],
)
async def test_a_failure_says_what_to_do(
    folder: Path, code: grpc.StatusCode, calls: int, hint: str
) -> None:
    """What the kubelet says is in one line of the message."""
    async with _asked(folder) as (reader, side):
        side.failures = [code] * 9
        with pytest.raises(KubeletError) as error:
            await reader.holdings()

    assert side.calls == calls
    assert error.value.message == (f"the kubelet does not answer, {code.name}: rate limit exceeded")
    assert hint in error.value.hint


async def test_a_kubelet_that_is_away_is_an_error_until_it_is_back(folder: Path) -> None:
    """The same reader is used over restarts; it does not wait for the kubelet."""
    reader = LocalKubelet(folder / "kubelet.sock", folder)
    with pytest.raises(KubeletError) as error:
        await reader.holdings()
    assert f"that the folder of {folder}/kubelet.sock is mounted" in error.value.hint

    async with _running(folder, _Kubelet()):
        assert await _eventually(reader.holdings) == ()
    with pytest.raises(KubeletError):
        await reader.holdings()
    async with _running(folder, _Kubelet()):
        assert await _eventually(reader.holdings) == ()
    await reader.close()


async def _eventually(ask: Callable[[], Any]) -> Any:
    """Ask until it goes well; the test's own limit ends it."""
    while True:
        with contextlib.suppress(KubeletError):
            return await ask()


async def test_an_answer_that_is_none_is_an_error(folder: Path) -> None:
    """Bytes that are no such message are never taken for an empty answer."""

    async def nonsense(_: bytes, __: object) -> bytes:
        return b"\xff\xff\xff"

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(nonsense)
    service, method = _LISTER.List.path.removeprefix("/").split("/")
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    server.add_insecure_port(f"unix:{folder}/kubelet.sock")
    await server.start()
    reader = LocalKubelet(folder / "kubelet.sock", folder)
    with pytest.raises(KubeletError, match="answer is not understood"):
        await reader.holdings()
    await reader.close()
    await server.stop(None)


def _checkpoint(folder: Path, text: str) -> LocalKubelet:
    (folder / "kubelet_internal_checkpoint").write_text(text, encoding="utf-8")
    return LocalKubelet(folder / "kubelet.sock", folder)


async def test_the_checkpoint_is_read_as_it_lies_there(folder: Path) -> None:
    """Devices of all vendors, whatever their IDs look like; ``null`` for none."""
    entries = [
        {
            "PodUID": "uid",
            "ContainerName": "main",
            "ResourceName": "r/gpu",
            "DeviceIDs": {"-1": ["a"], "0": ["odd name"]},
            "AllocResp": "",
        }
    ]
    document = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1}
    common = {"pod_uid": "uid", "container": "main", "resource": "r/gpu"}
    assert list(await _checkpoint(folder, json.dumps(document)).remembered()) == [
        Remembered(device_id="a", **common),
        Remembered(device_id="odd name", **common),
    ]
    none = '{"Data": {"PodDeviceEntries": null, "RegisteredDevices": {}}, "Checksum": 0}'
    assert await _checkpoint(folder, none).remembered() == ()


async def test_a_kubelet_that_never_wrote_remembers_nothing(folder: Path) -> None:
    """No file is no error."""
    assert await LocalKubelet(folder / "kubelet.sock", folder).remembered() == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"Data": {"PodDeviceEntries": 5}}'])
async def test_a_checkpoint_that_is_none_is_an_error(folder: Path, text: str) -> None:
    """Nobody may take it for an empty one: devices would be cut away from their pods."""
    with pytest.raises(KubeletError, match="the kubelet's checkpoint is not understood"):
        await _checkpoint(folder, text).remembered()


async def test_a_checkpoint_that_cannot_be_read_is_an_error(folder: Path) -> None:
    """Anything but a missing file is told."""
    (folder / "kubelet_internal_checkpoint").mkdir()
    with pytest.raises(KubeletError, match="cannot read the kubelet's checkpoint"):
        await LocalKubelet(folder / "kubelet.sock", folder).remembered()
