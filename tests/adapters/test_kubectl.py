"""What kubectl prints becomes nodes and pods."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from partita.adapters import kubectl
from partita.config.untyped_parser import parse
from partita.errors import InputError
from partita.model.gpu import MigMode
from partita.model.node import Node, Taint
from partita.model.placement import Placement
from partita.model.pod import NodeRequirement, Phase, Pod, Toleration
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

CaseText = Callable[[str], str]


def _read(text: str, node: str = "given") -> Observation:
    documents = parse(text, path="some.file")
    assert kubectl.recognises(documents)
    return kubectl.read(documents, node=node)


def _pod(spec: dict[str, Any], **rest: object) -> str:
    return json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, **rest})


def _container(**limits: object) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {f"nvidia.com/{k}": v for k, v in limits.items()}}}


def test_list_of_nodes_and_pods(case_text: CaseText) -> None:
    """A List yields its core nodes and the pods that ask for GPUs; the rest is noted."""
    found = _read(case_text("kubectl/cluster.json"))
    assert found.nodes == (
        Node(
            name="elm-1.rack.example",
            labels={"zone": "a"},
            capacity={"nvidia.com/gpu": 1000},
            allocatable={"nvidia.com/gpu": 16},
            taints=(
                Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule"),
                Taint(key="dedicated", value="vision", effect="NoExecute"),
            ),
            schedulable=False,
            reason="cordoned; not ready: NodeStatusUnknown",
        ),
    )
    assert [(pod.full_name, pod.phase) for pod in found.pods] == [
        ("vision/segment-0", Phase.RUNNING),
        ("batch/done", Phase.FINISHED),
    ]
    assert found.notes == (
        "skipped objects of kind Service: 1",
        "skipped objects of kind Node (longhorn.io/v1beta2): 1",
        "skipped pods that ask for no nvidia.com/ resource: 1",
    )


def test_pod_is_read_in_full(case_text: CaseText) -> None:
    """A pod keeps identity, summed requests, place, age, and where it may run.

    An empty affinity term matches no node, so it is dropped.
    """
    assert _read(case_text("kubectl/cluster.json")).pods[0] == Pod(
        namespace="vision",
        name="segment-0",
        uid="5d0c7f6e-0000-4000-8000-00000000a001",
        requests={"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 1},
        node="elm-1.rack.example",
        phase=Phase.RUNNING,
        priority=1000,
        created="2025-03-09T10:20:30Z",
        node_selector={"zone": "a"},
        node_affinity=(
            (
                NodeRequirement(key="gpu-memory", operator="Gt", values=("40",)),
                NodeRequirement(key="spot", operator="DoesNotExist"),
            ),
            (NodeRequirement(key="metadata.name", operator="In", values=("elm-1.rack.example",)),),
        ),
        tolerations=(
            Toleration(operator="Exists"),
            Toleration(key="dedicated", value="vision", effect="NoExecute"),
        ),
    )


def test_affinity_of_empty_terms_matches_nothing() -> None:
    """When every affinity term is empty no node fits, as in Kubernetes."""
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    spec = {"affinity": {"nodeAffinity": terms}, "containers": [_container(gpu=1)]}
    nowhere = NodeRequirement(key="metadata.name", operator="In", values=())
    assert _read(_pod(spec)).pods[0].node_affinity == ((nowhere,),)


def test_kind_of_a_raw_list_comes_from_the_list(case_text: CaseText) -> None:
    """The API server leaves kind out of the items of a PodList."""
    (pod,) = _read(case_text("kubectl/pods_raw_api.json")).pods
    assert (pod.full_name, pod.requests) == ("team/raw", {"nvidia.com/gpu": 1})


def test_bare_array_of_objects() -> None:
    """What `jq .items` leaves is read like the list it came from."""
    pod = json.loads(_pod({"containers": [_container(gpu=1)]}))
    assert len(_read(json.dumps([pod, pod])).pods) == 2


@pytest.mark.parametrize(
    ("text", "namespaces"),
    [('{"kind": "List", "items": []}', None), ('{"kind": "PodList"}', frozenset())],
)
def test_empty_list_is_noted(text: str, namespaces: frozenset[str] | None) -> None:
    """A list without items is no error and is said; only a PodList says that it lists pods."""
    notes = ("the file lists no objects",)
    assert _read(text) == Observation(pod_namespaces=namespaces, notes=notes)


def test_namespaces_are_of_all_listed_pods() -> None:
    """Pods that ask for no GPU count too; nodes beside them say nothing of pods."""
    plain = {"kind": "Pod", "metadata": {"name": "q", "namespace": "web"}}
    pods = [json.loads(_pod({"containers": []})), {**plain, "spec": {"containers": []}}]
    for text in (json.dumps(pods), json.dumps({"kind": "List", "items": pods})):
        assert _read(text).pod_namespaces == {"default", "web"}
    nodes = json.dumps({"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n"}}]})
    assert _read(nodes).pod_namespaces is None


def test_a_pod_alone_is_no_list() -> None:
    """A manifest of a pod says nothing of the pods that run."""
    found = _read(_pod({"containers": [_container(gpu=1)]}))
    assert (len(found.pods), found.pod_namespaces) == (1, None)


def test_init_containers_and_sidecars(case_text: CaseText) -> None:
    """Sidecars add up and stay; other init containers count as a peak.

    GPUs: the peak of 4 during warm-up beats 2 at work. Slices: 1 + 2 of the sidecars beat the
    peak of 1 + 1 during warm-up.
    """
    (pod,) = _read(case_text("kubectl/pod_init_and_sidecar.yaml")).pods
    assert pod.requests == {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": 3}


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, None), ("2", 2), ("1k", 1000), ("2e1", 20), ("3.0", 3)]
)
def test_counts_may_be_quantities(limit: object, expected: int | None) -> None:
    """Counts come as numbers or as Kubernetes quantities; a count of 0 asks for nothing."""
    pods = _read(_pod({"containers": [_container(gpu=limit)]})).pods
    assert [pod.requests["nvidia.com/gpu"] for pod in pods] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Pending", Phase.PENDING),
        ("Running", Phase.RUNNING),
        ("Unknown", Phase.RUNNING),
        ("Succeeded", Phase.FINISHED),
        ("Failed", Phase.FINISHED),
        (None, Phase.PENDING),
    ],
)
def test_phases(phase: str | None, expected: Phase) -> None:
    """A pod of unknown phase may still hold its slice; a manifest without status waits."""
    text = _pod({"containers": [_container(gpu=1)]}, status={"phase": phase})
    assert _read(text).pods[0].phase == expected


def test_slice_told_by_annotation_alone(case_text: CaseText) -> None:
    """A pod whose limits are empty holds the slice that the scheduler's annotation names."""
    found = _read(case_text("kubectl/pod_annotated_slice.yaml"))
    (pod,) = found.pods
    assert (pod.requests, pod.node) == ({"nvidia.com/mig-2g.20gb": 1}, "birch-07")
    assert (pod.gpu_index, pod.placement_start) == (1, 4)
    held = "nvidia.com/mig-2g.20gb at 4 of GPU 1"
    assert found.notes == (
        f"pod research/notebook-3: that it holds {held} is only in annotation runai-mig-device",
        "skipped objects of kind ConfigMap: 1",
    )


@pytest.mark.parametrize(
    "annotation",
    [
        "{",
        "[]",
        '{"name": "nvidia.com/gpu", "position": 0, "gpuindex": 0}',
        '{"name": "mig-1g.5gb", "position": -1, "gpuindex": 0}',
        '{"name": "mig-1g.5gb", "position": 1}',
    ],
)
def test_unusable_annotation_is_noted(annotation: str) -> None:
    """A broken assignment does not spoil the file: it is noted and the pod left out."""
    metadata = {"name": "p", "annotations": {"runai-mig-device": annotation}}
    text = json.dumps({"kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
    found = _read(text)
    assert found.pods == ()
    assert found.notes[0].startswith("pod default/p: annotation runai-mig-device is not usable: ")


def test_annotation_against_limits_is_ignored() -> None:
    """When limits and annotation name different resources the limits count."""
    slice_ = '{"name": "nvidia.com/mig-1g.5gb", "position": 1, "gpuindex": 0}'
    text = json.dumps(
        {
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"runai-mig-device": slice_}},
            "spec": {"containers": [_container(gpu=1)]},
        }
    )
    found = _read(text)
    assert (found.pods[0].requests, found.pods[0].gpu_index) == ({"nvidia.com/gpu": 1}, None)
    assert "contradicts its limits" in found.notes[0]


def test_resource_claims_are_noted() -> None:
    """A pod that asks through DRA is not read, and that is said."""
    found = _read(_pod({"containers": [], "resourceClaims": [{"name": "gpu"}]}))
    assert found.pods == ()
    assert "resource claims" in found.notes[0]


def test_layout_annotation_becomes_a_report(case_text: CaseText) -> None:
    """The annotation's position-keyed layout yields placements with the catalogue's sizes."""
    found = _read(case_text("kubectl/node_annotated_layout.yaml"))
    cut = tuple(
        InstanceReport(profile=profile, placement=Placement(start=start, size=size))
        for profile, start, size in (("1g.10gb", 0, 1), ("1g.10gb", 2, 1), ("3g.40gb", 4, 4))
    )
    product = "NVIDIA A100-SXM4-80GB"
    assert found.reports == (
        NodeReport(
            node="birch-07",
            source="some.file",
            gpus=(
                GpuReport(index=0, product=product, mig_mode=MigMode.ON, instances=cut),
                GpuReport(index=2, product=product, mig_mode=MigMode.ON, instances=cut),
                GpuReport(index=1, product=product, mig_mode=MigMode.OFF, instances=()),
            ),
        ),
    )
    assert found.nodes[0].capacity["nvidia.com/mig-3g.40gb"] == 2
    assert found.nodes[0].allocatable["nvidia.com/mig-3g.40gb"] == 1
    assert found.nodes[0].schedulable


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA-Z9", "the GPU model is not known"),
        ("4: 3g.40gb", "1: 3g.40gb", "3g.40gb cannot start at 1"),
        ("4: 3g.40gb", "0: 3g.40gb", "a key stands twice"),
        ("2: 1g.10gb", "4: 1g.10gb", "a key stands twice"),
        ("2: 1g.10gb", "5: 1g.10gb", "overlap"),
        ("0: 1g.10gb", "1g.10gb: 2", "expected text, got 2"),
        ("[1]", "[0]", "a GPU index is too large or stands twice: 0"),
        ("selected:", "- selected:", "expected a mapping, got a list"),
        ("mig-configs:", "mig-configs: ]", "broken YAML"),
    ],
)
def test_unusable_layout_annotation_is_noted(
    case_text: CaseText, before: str, after: str, reason: str
) -> None:
    """A layout that cannot be, or a GPU model that is unknown, is noted; the node stays."""
    text = case_text("kubectl/node_annotated_layout.yaml").replace(before, after)
    found = _read(text)
    assert (len(found.nodes), found.reports) == (1, ())
    assert found.notes[0].startswith("node birch-07: annotation run.ai/mig.config is not usable: ")
    assert reason in found.notes[0]


def test_labels_alone(case_text: CaseText) -> None:
    """Labels alone make a node that is named by its hostname label."""
    (node,) = _read(case_text("kubectl/labels.json")).nodes
    assert (node.name, node.labels["nvidia.com/mig-1g.10gb.count"]) == ("oak-2", "7")
    assert (node.capacity, node.allocatable) == ({}, {})


def test_labels_that_lost_their_quotes(case_text: CaseText) -> None:
    """Pasted labels without hostname are named by the file; numbers and booleans become text."""
    found = _read(case_text("kubectl/labels_excerpt.yaml"), node="pine")
    assert found.nodes == (
        Node(
            name="pine",
            labels={
                "nvidia.com/gpu.count": "4",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": "NVIDIA-L4",
            },
        ),
    )
    assert found.notes == ("node pine: only labels are in the file, the name is the file's",)


def test_allocatable_alone(case_text: CaseText) -> None:
    """Allocatable resources alone are told from labels by their names."""
    (node,) = _read(case_text("kubectl/allocatable.json"), node="pine").nodes
    expected = {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 12}
    assert node == Node(name="pine", allocatable=expected)


def test_capacity_and_allocatable_alone(case_text: CaseText) -> None:
    """The resource sections of `kubectl describe node` are read as they stand."""
    (node,) = _read(case_text("kubectl/resources_excerpt.yaml"), node="pine").nodes
    assert node.capacity == {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 14}
    assert node.allocatable == {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 0}


_LIMIT = "Pod.spec.containers[0].resources.limits['nvidia.com/gpu']"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "Node", "metadata": {}}', "Node.metadata: name is missing"),
        ('{"kind": "Node"}', "Node: metadata is missing"),
        ('{"kind": "Pod", "metadata": {"name": "p"}}', "Pod: spec is missing"),
        (_pod({}), "Pod.spec: containers is missing"),
        (_pod({"containers": 3}), "Pod.spec.containers: expected a list, got 3"),
        (
            _pod({"containers": [_container(gpu="500m")]}),
            f"{_LIMIT}: expected a whole number, got '500m'",
        ),
        (_pod({"containers": [_container(gpu=-1)]}), f"{_LIMIT}: expected a count, got -1"),
        (
            _pod({"containers": [_container(gpu=1)]}, status={"phase": 1}),
            "Pod.status.phase: expected text, got 1",
        ),
        (
            _pod({"containers": [_container(gpu=1)]}, status={"phase": "Odd"}),
            "Pod.status.phase: expected a pod phase, got 'Odd'",
        ),
        ('{"kind": "List", "items": [{"kind": 5}]}', "items[0].kind: expected text, got 5"),
        ('{"kind": "List", "items": [{"metadata": 5}]}', "items[0]: kind is missing"),
        (
            '{"nvidia.com/gpu": "many", "cpu": 1}',
            "document['nvidia.com/gpu']: expected a whole number, got 'many'",
        ),
    ],
)
def test_unusable_objects(text: str, message: str) -> None:
    """An unusable value is an error that names its path, what was expected and what is there."""
    with pytest.raises(InputError) as caught:
        _read(text)
    assert caught.value.message == message
    assert caught.value.path == "some.file"
    assert "kubectl get" in caught.value.hint
