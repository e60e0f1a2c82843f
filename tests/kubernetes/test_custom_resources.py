"""Our definitions on a real API server: it takes them, and refuses what the strict reader refuses.

``tests/manifests`` asks the same of a validator of our own, so that a machine without a cluster
finds most mistakes; here it is the real one that has the last word, above all on the CEL rules.
"""

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testbed.cluster import Cluster
from testbed.errors import ApiError
from tests.manifests import examples
from tests.manifests.examples import SHARED, Document
from tests.views.example_statuses import CUT

from partita.config import condition_document, gpu_node_document, policy_status_document
from partita.manifests.crds import DEFINITIONS
from partita.model.agent_status import Condition
from partita.model.gpu_node import GpuNode
from partita.model.policy_status import PolicyStatus

_GROUP = "/apis/partita.dev/v1alpha1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PLURALS = {one.kind: one.plural for one in DEFINITIONS}
_DEPLOY = Path(__file__).parents[2] / "deploy"
_SECONDS = 30
_EXAMPLES = examples.every()
_READY = Condition(type="Ready", holds=True, reason="Serving", since="2026-01-31T12:00:00Z")


@pytest.fixture
def api(defined: Cluster) -> Any:
    """Return the API of a cluster that has our definitions."""
    return defined.api


def _create(api: Any, document: Document, *, keep: bool = True) -> Document:
    plural = _PLURALS[document["kind"]]
    query = "fieldValidation=Strict" + ("" if keep else "&dryRun=All")
    return dict(api.create(f"{_GROUP}/{plural}?{query}", document))


def _refusal(api: Any, document: Document) -> str:
    try:
        _create(api, document, keep=False)
    except ApiError as error:
        return str(error) or "refused"
    return ""


def _kubectl(cluster: Cluster, *arguments: str) -> str:
    done = subprocess.run(
        ["kubectl", *arguments],
        env=cluster.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_definitions_are_structural(api: Any) -> None:
    """The API server serves them and has nothing to say against their schemas."""
    for one in DEFINITIONS:
        found = api.get(f"{_DEFINITIONS}/{one.name}")
        kinds = {condition["type"]: condition for condition in found["status"]["conditions"]}
        assert kinds["Established"]["status"] == "True"
        assert "NonStructuralSchema" not in kinds
        assert found["status"]["acceptedNames"]["shortNames"] == [one.short]


def test_api_server_and_reader_refuse_the_same(api: Any) -> None:
    """Of every document that is written down; the reader refuses more where it has the catalogue.

    What is wrong with ``apiVersion`` or the name is the same rule here and there, so it counts.
    """
    different = {
        name: found for name, document in _EXAMPLES.items() if (found := _difference(api, document))
    }
    assert different == {}


@settings(
    deadline=None,
    max_examples=300,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(sorted(_EXAMPLES)), examples.VALUES, st.data())
def test_api_server_and_reader_agree_on_any_change(
    api: Any, name: str, value: Any, data: st.DataObject
) -> None:
    """One value or key is exchanged, added or removed."""
    document = copy.deepcopy(_EXAMPLES[name])
    examples.change(document.get("spec"), value, data)
    assert not _difference(api, document)


def _difference(api: Any, document: Document) -> str:
    """Return how reader and API server differ, empty when they agree."""
    errors, refusal = examples.errors(document), _refusal(api, document)
    if (errors - examples.READER_ONLY and not refusal) or (refusal and not errors):
        return f"reader: {errors}, API server: {refusal or 'takes it'}"
    return ""


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"strategy": "MIG", "follow": "Fixed"}, "strategy MIG needs spec.mig.layout"),
        ({"strategy": "TimeSlicing"}, "strategy TimeSlicing needs spec.timeSlicing"),
        ({"strategy": "MPS", "timeSlicing": SHARED}, "strategy MPS needs spec.mps"),
        ({"strategy": "Mig"}, 'Unsupported value: "Mig"'),
        ({"strategy": "Whole", "folow": "Fixed"}, 'unknown field "spec.folow"'),
    ],
)
def test_a_refusal_says_what_is_wrong(api: Any, spec: Document, message: str) -> None:
    """Whoever applies a bad policy reads the reader's own words, or the API server's."""
    assert message in _refusal(api, examples.policy(spec))


def test_a_refused_layout_says_what_is_wrong(api: Any) -> None:
    """The rules of a ``GPUNode`` speak too."""
    start = {"profile": "1g.5gb", "start": 0, "size": 2}
    cut = {"uuid": "GPU-1", "layout": "MIG"}
    twice = {**cut, "mig": {"instances": [start, {**start, "start": 1}]}}

    assert "mig belongs to layout MIG, and only to it" in _refusal(api, examples.gpu_node([cut]))
    assert "two instances take the same memory slice" in _refusal(api, examples.gpu_node([twice]))


def test_what_the_api_server_stores_reads_back(api: Any) -> None:
    """A node is stored with its status beside it, and is the same value again."""
    wanted = examples.gpu_node(
        [{"uuid": "GPU-1", "layout": "TimeSlicing", "timeSlicing": {"replicas": 4}}], CUT.node
    )
    _create(api, wanted)
    path = f"{_GROUP}/gpunodes/{CUT.node}"
    api.patch(f"{path}/status", {"status": dict(gpu_node_document.encode_status(CUT, 1))})

    decoded = gpu_node_document.decode_object(api.get(path))

    (expected,) = gpu_node_document.decode_object(wanted).values
    assert decoded.findings == ()
    assert decoded.values == (
        GpuNode(name=CUT.node, gpus=expected.gpus, generation=1, observed_generation=1, status=CUT),
    )
    assert decoded.values[0].is_followed


def test_kubectl_shows_nodes_at_a_glance(cluster: Cluster, api: Any) -> None:
    """Name, GPUs, slices, held ones, readiness with its reason, and age."""
    _create(api, examples.gpu_node([], CUT.node))
    _create(api, examples.gpu_node([], "silent"))
    status = {"status": dict(gpu_node_document.encode_status(CUT, 1))}
    api.patch(f"{_GROUP}/gpunodes/{CUT.node}/status", status)

    title, told, silent = _kubectl(cluster, "get", "gpun").splitlines()

    counts = status["status"]["counts"]
    assert title.split() == ["NAME", "GPUS", "SLICES", "HELD", "READY", "REASON", "AGE"]
    assert told.split()[:6] == [
        *(CUT.node, str(counts["gpus"]), str(counts["slices"]), str(counts["held"])),  # type: ignore[index]
        *("True", "Serving"),
    ]
    assert silent.split()[0] == "silent"
    assert "A100-SXM4-40GB" in _kubectl(cluster, "get", "gpunodes", "-o", "wide")


def test_kubectl_shows_policies_at_a_glance(cluster: Cluster, api: Any) -> None:
    """Strategy, what it follows, nodes, readiness and age; defaults are filled in."""
    _create(api, examples.policy({"strategy": "MIG"}, "slices"))
    told = policy_status_document.encode(
        PolicyStatus(observed_generation=1, nodes=3, conditions=(_READY,))
    )
    api.patch(f"{_GROUP}/partitionpolicies/slices/status", {"status": dict(told)})

    title, line = _kubectl(cluster, "get", "pp").splitlines()

    assert title.split() == ["NAME", "STRATEGY", "FOLLOW", "NODES", "READY", "AGE"]
    assert line.split()[:5] == ["slices", "MIG", "Demand", "3", "True"]
    assert "slices" in _kubectl(cluster, "get", "partita")
    assert "What is shared how often" in _kubectl(
        cluster, "explain", "partitionpolicies.spec.timeSlicing.resources"
    )


def test_a_status_cannot_change_what_is_wanted(api: Any) -> None:
    """Who may write the status alone cannot write the rest through it."""
    _create(api, examples.gpu_node([]))
    path = f"{_GROUP}/gpunodes/node-1"
    wanted = [{"uuid": "GPU-1", "layout": "Whole"}]
    told = {"conditions": [condition_document.encode(_READY)], **_AGENT}

    api.patch(f"{path}/status", {"spec": {"gpus": wanted}, "status": told})

    found = api.get(path)
    assert found["spec"] == {"gpus": []}
    assert found["status"]["conditions"][0]["reason"] == "Serving"


_AGENT = {"agent": {"version": "1", "processId": 1, "reportedAt": "2026-01-31T12:00:00+00:00"}}


def test_writers_of_one_node_keep_apart(api: Any) -> None:
    """Each by server-side apply has its own GPUs, and takes only those away again."""
    one, other = ({"uuid": f"GPU-{number}", "layout": "Whole"} for number in (1, 2))

    _apply(api, "controller", examples.gpu_node([one]))
    both = _apply(api, "person", examples.gpu_node([other]))
    rest = _apply(api, "controller", examples.gpu_node([]))

    assert both["spec"]["gpus"] == [one, other]
    assert rest["spec"]["gpus"] == [other]


def _apply(api: Any, writer: str, document: Document) -> Document:
    path = f"{_GROUP}/{_PLURALS[document['kind']]}/{document['metadata']['name']}"
    content = "application/apply-patch+yaml"
    query = f"fieldManager={writer}"
    return dict(api.request("PATCH", f"{path}?{query}", document, content=content))


def test_everything_to_install_is_taken(defined: Cluster) -> None:
    """``kubectl apply -k deploy`` makes all objects, also where some are there already."""
    cluster = defined
    _kubectl(cluster, "apply", "--server-side", "--force-conflicts", "-k", str(_DEPLOY))
    try:
        agents = cluster.api.get("/apis/apps/v1/namespaces/partita-system/daemonsets/partita-agent")
        assert agents["spec"]["template"]["spec"]["hostPID"] is True
        assert "partita-agent" in _kubectl(cluster, "get", "clusterrolebindings", "-o", "name")
    finally:
        for name in ("agent.yaml", "admission.yaml"):
            _kubectl(cluster, "delete", "--wait=true", "-f", str(_DEPLOY / name))
