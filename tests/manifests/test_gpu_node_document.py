"""A ``GPUNode`` reads back as it was written, from a file and from an API object alike."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifests import examples
from tests.views.example_statuses import CUT

from partita.config import gpu_node_document, policy_document, policy_status_document, yaml_text
from partita.errors import InputError
from partita.model.agent_status import (
    AgentStatus,
    Condition,
    GpuStatus,
    ResourceStatus,
    SliceStatus,
)
from partita.model.finding import Finding, Severity
from partita.model.gpu_node import (
    GpuNode,
    MigLayout,
    PlacedProfile,
    SharedDevices,
    TimeSlicedLayout,
    WantedGpu,
    WholeLayout,
)
from partita.model.placement import Placement
from partita.model.policy_status import PolicyStatus

_WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, categories=["L", "N", "P"]))
_SOME = _WORDS.filter(bool)
_TIMES = st.sampled_from(["2026-03-01T10:00:00Z", "2026-03-01T10:00:00.25+00:00"])
_COUNTS = st.integers(0, 1 << 40)
_CONDITIONS = st.lists(
    st.builds(
        Condition,
        type=_SOME,
        holds=st.sampled_from([True, False, None]),
        reason=_SOME,
        message=_WORDS,
        hint=st.none() | _WORDS,
        since=st.just("") | _TIMES,
    ),
    max_size=3,
    unique_by=lambda one: one.type,
).map(tuple)
_SLICES = st.lists(
    st.builds(
        SliceStatus,
        device_id=_SOME,
        resource=_SOME,
        profile=st.none() | _WORDS,
        placement=st.none() | st.just("4:4"),
        usable=st.booleans(),
        leaving=st.booleans(),
        holders=st.lists(_WORDS, max_size=2).map(tuple),
        budget_mib=st.none() | _COUNTS,
    ),
    max_size=3,
    unique_by=lambda one: (one.resource, one.device_id),
).map(tuple)
_GPU_STATUSES = st.lists(
    st.builds(
        GpuStatus,
        index=st.integers(0, 15),
        uuid=_SOME,
        product=_WORDS,
        memory_mib=st.none() | _COUNTS,
        mig_mode=st.sampled_from([None, "on", "off", "unsupported"]),
        phase=_SOME,
        reason=st.none() | _WORDS,
        since=st.just("") | _TIMES,
        processes=st.lists(_WORDS, max_size=2).map(tuple),
        slices=_SLICES,
    ),
    max_size=3,
    unique_by=lambda one: one.uuid,
).map(tuple)
_RESOURCES = st.lists(
    st.builds(
        ResourceStatus,
        name=_SOME,
        slices=_COUNTS,
        usable=_COUNTS,
        held=_COUNTS,
        connected=st.booleans(),
        problem=st.none() | _WORDS,
    ),
    max_size=2,
    unique_by=lambda one: one.name,
).map(tuple)
_STATUSES = st.builds(
    AgentStatus,
    node=st.just("node-1"),
    version=_WORDS,
    process_id=_COUNTS,
    at=_TIMES,
    source=_WORDS,
    conditions=_CONDITIONS,
    gpus=_GPU_STATUSES,
    resources=_RESOURCES,
)
_PLACES = ((0, 1, "1g.5gb"), (1, 1, "1g.5gb+me"), (2, 2, "2g.10gb"), (4, 4, "3g.20gb"))
_LAYOUTS = (
    st.just(WholeLayout())
    | st.builds(
        TimeSlicedLayout,
        replicas=st.integers(2, 100),
        renamed=st.booleans(),
        one_each=st.booleans(),
    )
    | st.builds(
        MigLayout,
        instances=st.lists(st.sampled_from(_PLACES), unique=True).map(
            lambda places: tuple(
                PlacedProfile(profile=name, placement=Placement(start=start, size=size))
                for start, size, name in places
            )
        ),
        shared=st.lists(
            st.builds(
                SharedDevices,
                name=st.sampled_from(["nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.me"]),
                replicas=st.integers(2, 9),
            ),
            max_size=2,
            unique_by=lambda one: one.name,
        ).map(tuple),
        renamed=st.booleans(),
        one_each=st.booleans(),
    )
)
_NODES = st.builds(
    GpuNode,
    name=st.just("node-1"),
    gpus=st.lists(
        st.builds(
            WantedGpu,
            uuid=st.sampled_from(["GPU-1", "GPU-2", "GPU-3"]),
            layout=_LAYOUTS,
            may_reset=st.booleans(),
            policy=st.none() | st.just("small"),
        ),
        max_size=3,
        unique_by=lambda one: one.uuid,
    ).map(tuple),
    generation=st.none() | st.integers(1, 9),
    status=st.none(),
)

_DOCUMENTS = {
    **{name: one for name, one in examples.every().items() if one["kind"] == "GPUNode"},
    "told": json.loads(
        json.dumps(
            gpu_node_document.encode(
                GpuNode(name=CUT.node, generation=3, observed_generation=2, status=CUT)
            )
        )
    ),
}


@st.composite
def _told_nodes(draw: st.DrawFn) -> GpuNode:
    """Draw nodes whose agent has reported, or not."""
    node = draw(_NODES)
    if draw(st.booleans()):
        return node
    return GpuNode(
        name=node.name,
        gpus=node.gpus,
        generation=node.generation,
        observed_generation=draw(st.none() | st.integers(0, 9)),
        status=draw(_STATUSES),
    )


def _errors(document: examples.Document) -> list[Finding]:
    found = gpu_node_document.decode_object(document).findings
    return [one for one in found if one.severity is Severity.ERROR]


@settings(deadline=None)  # a loaded machine is no finding
@given(_told_nodes())
def test_a_node_reads_back_from_a_file(node: GpuNode) -> None:
    """Written as YAML and read again it is the same value, and nothing is noted."""
    decoded = gpu_node_document.decode(yaml_text.dump(gpu_node_document.encode(node)), "n.yaml")
    assert decoded.findings == ()
    assert decoded.values == (node,)


@settings(deadline=None)  # a loaded machine is no finding
@given(_told_nodes())
def test_a_node_reads_back_from_an_api_object(node: GpuNode) -> None:
    """So does the object that comes over the wire as JSON."""
    wire = json.loads(json.dumps(gpu_node_document.encode(node)))
    decoded = gpu_node_document.decode_object(wire)
    assert decoded.findings == ()
    assert decoded.values == (node,)


@settings(deadline=None)  # a loaded machine is no finding
@given(_CONDITIONS, st.none() | _COUNTS, st.none() | _COUNTS)
def test_the_status_of_a_policy_reads_back(
    conditions: tuple[Condition, ...], nodes: int | None, generation: int | None
) -> None:
    """The controller finds what it wrote."""
    status = PolicyStatus(observed_generation=generation, nodes=nodes, conditions=conditions)
    wire = json.loads(json.dumps(policy_status_document.encode(status)))
    assert policy_status_document.decode_object(wire, "small").values == (status,)


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    """And with where it stands, though an API object has no lines."""
    wanted = [{"uuid": "GPU-1", "layout": "Whole", "mayreset": True}]
    (error,) = _errors(examples.gpu_node(wanted))
    assert error.rule == "unknown-key"
    assert error.where == "node-1/spec.gpus[0].mayreset"
    assert error.hint is not None
    assert error.hint.startswith("did you mean mayReset? ")
    assert (error.line, error.column) == (None, None)


def test_a_file_has_lines() -> None:
    """The same mistake in a file is shown at its place."""
    text = (
        "apiVersion: partita.dev/v1alpha1\nkind: GPUNode\nmetadata: {name: node-1}\n"
        "spec:\n  gpus:\n  - uuid: GPU-1\n    layout: Whole\n    mayreset: true\n"
    )
    (error,) = gpu_node_document.decode(text, "n.yaml").findings
    assert (error.line, error.column) == (8, 5)


def test_a_layout_is_refused_as_a_whole() -> None:
    """What is understood of it is not carried out without the rest."""
    good = {"uuid": "GPU-1", "layout": "Whole"}
    bad = {"uuid": "GPU-2", "layout": "MIG"}
    decoded = gpu_node_document.decode_object(examples.gpu_node([good, bad]))
    assert decoded.values == ()
    assert [one.rule for one in decoded.findings] == ["layout-section"]


def test_a_profile_must_be_of_some_board() -> None:
    """The API server cannot know it; the reader does."""
    instance = {"profile": "1g.9gb", "start": 0, "size": 1}
    wanted = [{"uuid": "GPU-1", "layout": "MIG", "mig": {"instances": [instance]}}]
    assert [one.rule for one in _errors(examples.gpu_node(wanted))] == ["profile-unknown"]


def test_the_status_of_a_newer_agent_is_read() -> None:
    """A key of its status that is not known here is a warning, and the rest counts."""
    agent = {"version": "9", "processId": 1, "reportedAt": "2026-03-01T10:00:00Z", "mood": "good"}
    decoded = gpu_node_document.decode_object({**examples.gpu_node([]), "status": {"agent": agent}})
    assert [one.severity for one in decoded.findings] == [Severity.WARNING]
    (node,) = decoded.values
    assert node.status is not None
    assert node.status.version == "9"


@pytest.mark.parametrize("driver", [False, None])
def test_sums_are_absent_while_the_driver_is_silent(driver: bool | None) -> None:  # noqa: FBT001
    """No answer is not 0 GPUs."""
    silent = Condition(type="DriverAnswers", holds=driver, reason="NoAnswer")
    status = AgentStatus(
        node="n", version="1", process_id=1, at="2026-03-01T10:00:00Z", conditions=(silent,)
    )
    assert "counts" not in gpu_node_document.encode_status(status, None)


def test_a_node_is_followed_once_its_agent_has_seen_the_latest() -> None:
    """The generation that the agent names is the one that stands."""
    assert GpuNode(name="n", generation=2, observed_generation=2).is_followed
    assert not GpuNode(name="n", generation=2, observed_generation=1).is_followed
    assert not GpuNode(name="n").is_followed


def test_what_is_not_wanted_stays() -> None:
    """A GPU that is not listed has no wanted layout."""
    gpu = WantedGpu(uuid="GPU-1", layout=WholeLayout())
    node = GpuNode(name="n", gpus=(gpu,))
    assert node.wanted("GPU-1") == gpu
    assert node.wanted("GPU-2") is None


def test_a_bottomless_object_is_refused() -> None:
    """One error with a hint, not the end of the process."""
    inner: dict[str, object] = {}
    for _ in range(5000):
        inner = {"a": inner}
    with pytest.raises(InputError, match="nested deeper"):
        gpu_node_document.decode_object(inner)
    with pytest.raises(InputError, match="nested deeper"):
        policy_document.decode_object(inner)


@settings(deadline=None)  # a loaded machine is no finding
@given(st.sampled_from(sorted(_DOCUMENTS)), examples.VALUES, st.data())
def test_files_and_api_objects_are_read_alike(
    name: str, value: object, data: st.DataObject
) -> None:
    """One value or key is exchanged, added or removed: the same is read, or the same is noted."""
    document = copy.deepcopy(_DOCUMENTS[name])
    examples.change(document, value, data)

    whole = gpu_node_document.decode_object(document)
    text = gpu_node_document.decode(yaml_text.dump(document), "n.yaml")

    assert whole.values == text.values
    assert {one.rule for one in whole.findings} == {one.rule for one in text.findings}
