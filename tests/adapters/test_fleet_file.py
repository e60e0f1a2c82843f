"""Our fleet file becomes nodes, GPUs and pods, and refuses what cannot be."""

from collections.abc import Callable

import pytest

from partita.adapters import fleet_file
from partita.errors import InputError
from partita.model.gpu import MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Phase, Pod
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

CaseText = Callable[[str], str]


def _read(text: str) -> Observation:
    return fleet_file.read(text, source="fleet.yaml")


def test_nodes_repeat_under_numbered_names(case_text: CaseText) -> None:
    """`count` repeats a node; its resources are what the device plugin would offer."""
    found = _read(case_text("fleet/small.yaml"))
    resources = {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-3g.40gb": 1, "nvidia.com/gpu": 3}
    assert found.nodes == tuple(
        Node(name=name, labels={"pool": "training"}, capacity=resources, allocatable=resources)
        for name in ("ash-0", "ash-1")
    )


def test_gpus_are_numbered_on_their_node(case_text: CaseText) -> None:
    """Names become catalogue products; instances get the catalogue's size and stand in order."""
    instances = (
        InstanceReport(profile="3g.40gb", placement=Placement(start=0, size=4)),
        InstanceReport(profile="1g.10gb", placement=Placement(start=6, size=1)),
    )
    cut = GpuReport(
        index=0,
        product="NVIDIA H100 80GB HBM3",
        mig_mode=MigMode.ON,
        instances=instances,
        memory_mib=81559,
        replicas=1,
    )
    shared = GpuReport(
        index=1,
        product="NVIDIA L4",
        mig_mode=MigMode.UNSUPPORTED,
        instances=(),
        memory_mib=23034,
        replicas=3,
    )
    assert _read(case_text("fleet/small.yaml")).reports == tuple(
        NodeReport(node=name, source="fleet.yaml", gpus=(cut, shared), complete=True)
        for name in ("ash-0", "ash-1")
    )


def _holder(
    namespace: str, name: str, resource: str, node: str, gpu: int, start: int | None
) -> Pod:
    return Pod(
        namespace=namespace,
        name=name,
        requests={resource: 1},
        node=node,
        gpu_index=gpu,
        placement_start=start,
        phase=Phase.RUNNING,
    )


def test_holders_are_running_pods(case_text: CaseText) -> None:
    """`held_by` makes a running pod on exactly that slice; repeated places number the holder."""
    assert _read(case_text("fleet/small.yaml")).pods[:4] == (
        _holder("team-b", "probe-0", "nvidia.com/mig-1g.10gb", "ash-0", 0, 6),
        _holder("default", "notebook-0", "nvidia.com/gpu", "ash-0", 1, None),
        _holder("team-b", "probe-1", "nvidia.com/mig-1g.10gb", "ash-1", 0, 6),
        _holder("default", "notebook-1", "nvidia.com/gpu", "ash-1", 1, None),
    )


def test_pods(case_text: CaseText) -> None:
    """Pods wait, or run where `node` says; memory is rounded up to MiB."""
    slice_ = {"nvidia.com/mig-1g.10gb": 1}
    assert _read(case_text("fleet/small.yaml")).pods[4:] == (
        Pod(namespace="team", name="infer-0", requests=slice_, priority=10, memory_mib=9728),
        Pod(namespace="team", name="infer-1", requests=slice_, priority=10, memory_mib=9728),
        Pod(
            namespace="default",
            name="big",
            requests={"nvidia.com/gpu": 2, "nvidia.com/mig-2g.20gb": 1},
            created="2025-05-01T08:00:00Z",
        ),
        _holder("default", "placed", "nvidia.com/mig-3g.40gb", "ash-1", 0, 0),
        Pod(
            namespace="default",
            name="somewhere",
            requests={"nvidia.com/gpu": 1},
            node="ash-0",
            phase=Phase.RUNNING,
        ),
    )


def test_json_with_tabs(case_text: CaseText) -> None:
    """A fleet file may be JSON; a GPU that could be cut but is not has MIG off."""
    found = _read(case_text("fleet/small.json"))
    assert [gpu.mig_mode for gpu in found.reports[0].gpus] == [MigMode.OFF, MigMode.OFF]
    assert found.pods[0].requests == {"nvidia.com/mig-1g.6gb": 1}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("gpu", "nvidia.com/gpu"),
        ("nvidia.com/gpu", "nvidia.com/gpu"),
        ("gpu.shared", "nvidia.com/gpu.shared"),
        ("1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me"),
        ("mig-1g.10gb.me", "nvidia.com/mig-1g.10gb.me"),
        ("1g.24gb-me", "nvidia.com/mig-1g.24gb-me"),
        ("nvidia.com/mig-2g.20gb.shared", "nvidia.com/mig-2g.20gb.shared"),
        ("nvidia.com/GH100".lower(), "nvidia.com/gh100"),
    ],
)
def test_requests(written: str, expected: str) -> None:
    """Resources may be written short; what stands after the domain is otherwise free."""
    found = _read(f"pods: [{{name: p, request: {written}}}]")
    assert found.pods[0].requests == {expected: 1}


@pytest.mark.parametrize(
    ("written", "expected"), [("10Gi", 10240), ("10000Mi", 10000), ("10G", 9537), ("1Ki", 1)]
)
def test_memory(written: str, expected: int) -> None:
    """Memory has a unit of Kubernetes and counts up to the next MiB."""
    found = _read(f"pods: [{{name: p, request: gpu, memory: {written}}}]")
    assert found.pods[0].memory_mib == expected


def test_several_pods_share_a_replicated_gpu() -> None:
    """As many pods as replicas may hold one time-sliced GPU."""
    pods = "[{name: p, count: 2, request: gpu, node: n, gpu: 0}]"
    found = _read(f"nodes: [{{name: n, gpus: [{{model: a30, replicas: 2}}]}}]\npods: {pods}")
    assert [pod.gpu_index for pod in found.pods] == [0, 0]


def test_empty_fleet_is_noted() -> None:
    """A file that lists nothing is no error and is said."""
    assert _read("nodes: []").notes == ("the fleet file lists neither nodes nor pods",)


_ONE_NODE = "nodes: [{name: n, gpus: [{model: a100-80gb-sxm4, mig: on, instances: INSTANCES}]}]\n"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("node: []", (1, 1), "a fleet file has no key: 'node'", "did you mean nodes?"),
        (
            "pods:\n  - {name: p, reqest: gpu}",
            (2, 15),
            "a pod has no key: 'reqest'",
            "did you mean request?",
        ),
        ("pods: [{name: p, name: q}]", (1, 18), "the key stands twice: 'name'", "keep one"),
        ("pods: [{request: gpu}]", (1, 8), "a pod needs the key: name", "write it like"),
        ("pods: [5]", (1, 8), "a pod is a mapping, got a single value: '5'", "write it like"),
        ("pods: {a: b}", (1, 7), "pods: expected a list, got a mapping", "write it like"),
        ("pods: [{name: p, request: cpu}]", (1, 27), "request: not a GPU resource: 'cpu'", "gpu"),
        (
            "pods: [{name: p, request: {gpu: none}}]",
            (1, 33),
            "gpu: expected a whole number from 1, got: 'none'",
            "write it like",
        ),
        (
            "pods: [{name: p, request: {gpu: 1, nvidia.com/gpu: 1}}]",
            (1, 52),
            "the resource stands twice: nvidia.com/gpu",
            "keep one",
        ),
        (
            "pods: [{name: p, request: gpu, memory: 10}]",
            (1, 40),
            "memory: expected an amount, got: '10'",
            "10Gi",
        ),
        (
            "pods: [{name: p, request: gpu, created: today}]",
            (1, 41),
            "created: expected a time, got: 'today'",
            "UTC",
        ),
        (
            "pods: [{name: p, request: gpu, gpu: 0}]",
            (1, 37),
            "gpu: it says nothing without a node",
            "add `node`",
        ),
        (
            "pods: [{name: p, request: gpu, node: a, start: 0}]",
            (1, 48),
            "start: it says nothing without a GPU",
            "add `gpu`",
        ),
        (
            "pods: [{name: p, request: gpu, count: 300000}]",
            (1, 39),
            "more than 200000 things in one file",
            "lower",
        ),
        (
            "pods: [{name: p, request: gpu}, {name: p, request: gpu}]",
            (1, 40),
            "two pods have the name: default/p",
            "rename",
        ),
        ("nodes: [{name: n}, {name: n}]", (1, 27), "two nodes have the name: n", "rename"),
        (
            "nodes: [{name: n, gpus: [{model: h100-80gb-sxm}]}]",
            (1, 34),
            "no such GPU model in the catalogue: h100-80gb-sxm",
            "did you mean h100-80gb-sxm5?",
        ),
        (
            "nodes: [{name: n, gpus: [{model: a30, mig: maybe}]}]",
            (1, 44),
            "mig: expected on or off, got: 'maybe'",
            "write it like",
        ),
        (
            "nodes: [{name: n, gpus: [{model: L4, mig: on}]}]",
            (1, 43),
            "there is no MIG on: NVIDIA L4",
            "replicas",
        ),
        (
            "nodes: [{name: n, gpus: [{model: a30, mig: off, instances: []}]}]",
            (1, 60),
            "there are no instances with MIG off",
            "set `mig: on`",
        ),
        (
            "nodes: [{name: n, gpus: [{model: a30, mig: on, held_by: p}]}]",
            (1, 57),
            "a GPU with MIG on is neither held nor replicated as a whole",
            "give the instances holders",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 9g.90gb, start: 0}]"),
            (1, 81),
            "NVIDIA A100-SXM4-80GB has no MIG profile named: 9g.90gb",
            "it has 1g.10gb",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 3g.40gb, start: 2}]"),
            (1, 97),
            "these instances cannot stand on one GPU: 3g.40gb cannot start at 2, only at 0, 4",
            "move or drop",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 1g.10gb, start: 0, held_by: A}]"),
            (1, 109),
            "held_by: expected a pod, got: 'A'",
            "write it like train or team/train",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 1g.10gb, start: 0, held_by: h}]")
            + "pods: [{name: p, request: 1g.10gb, node: n, gpu: 0, start: 0}]",
            (2, 15),
            "more pods than it can have hold slice 0 of GPU 0 of n",
            "give each slice one holder",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 1g.10gb, start: 0}]")
            + "pods: [{name: p, request: 2g.20gb, node: n, gpu: 0, start: 0}]",
            (2, 60),
            "the pod asks for something else than: nvidia.com/mig-1g.10gb",
            "correct",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[{profile: 1g.10gb, start: 0}]")
            + "pods: [{name: p, request: 1g.10gb, node: n, gpu: 0, start: 1}]",
            (2, 60),
            "no instance starts there: 1",
            "it has 1g.10gb at 0:1",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[]")
            + "pods: [{name: p, request: 1g.10gb, node: n, gpu: 0}]",
            (2, 50),
            "the GPU has MIG on, so the slice is needed too",
            "add `start`",
        ),
        (
            _ONE_NODE.replace("INSTANCES", "[]")
            + "pods: [{name: p, request: gpu, node: n, gpu: 1}]",
            (2, 46),
            "n has no such GPU: 1",
            "it has 1, counted from 0",
        ),
        (
            "nodes: [{name: oak-1}]\npods: [{name: p, request: gpu, node: oka-1}]",
            (2, 38),
            "there is no node named: oka-1",
            "did you mean oak-1?",
        ),
    ],
)
def test_refusals(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    """What is unknown, wrong or impossible is an error at its line and column, with advice."""
    with pytest.raises(InputError) as caught:
        _read(text)
    error = caught.value
    assert ((error.line, error.column), error.message) == (place, message)
    assert hint in error.hint


@pytest.mark.parametrize("text", ["nodes: []\n---\npods: []", "# nothing"])
def test_one_document(text: str) -> None:
    """A fleet file is exactly one document."""
    with pytest.raises(InputError, match="one document"):
        _read(text)
