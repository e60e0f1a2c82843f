"""An agent writes the GPUNode of its own node, and nothing else in the cluster."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testbed import waiting
from testbed.api import Api
from testbed.cluster import Cluster
from testbed.errors import ApiError
from tests.kubernetes import pods
from tests.manifests import examples
from tests.views.example_statuses import CUT

from partita.config import gpu_node_document
from partita.manifests import admission, agent

_NAMESPACE = "default"  # whose pods are removed after each test
_NODES = "/apis/partita.dev/v1alpha1/gpunodes"
_STATUS = {"status": dict(gpu_node_document.encode_status(CUT, None))}
_COLLECTIONS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
}
_SECONDS = 20


@pytest.fixture
def installed(defined: Cluster) -> Iterator[Cluster]:
    """Return a cluster with our definitions, the agent's account and rights, and its limits."""
    cluster = defined
    wanted: list[Any] = [
        *admission.documents(namespace=_NAMESPACE),
        *(one for one in agent.documents(namespace=_NAMESPACE) if one["kind"] in _COLLECTIONS),
    ]
    for one in wanted:
        cluster.api.create(_COLLECTIONS[one["kind"]], one)
    waiting.poll(
        lambda: _try(lambda: cluster.api.get(_NODES)) == "",
        seconds=_SECONDS,
        otherwise="the definitions are not served",
    )
    yield cluster
    paths = [f"{_COLLECTIONS[one['kind']]}/{one['metadata']['name']}" for one in reversed(wanted)]
    for path in paths:
        cluster.api.delete(path)
    waiting.poll(
        lambda: all(cluster.api.find(path) is None for path in paths),
        seconds=_SECONDS,
        otherwise="not all is gone",
    )


@pytest.fixture
def agent_of(installed: Cluster) -> Callable[[str], Api]:
    """Return a function that gives the API as the agent of a node sees it."""

    def api(node: str) -> Api:
        where = {"kubernetes.io/hostname": node}
        pod = pods.pod(
            f"agent-{node}", pods.container(), serviceAccountName=agent.ACCOUNT, nodeSelector=where
        )
        installed.run(pod)
        bound = installed.await_pod(f"agent-{node}", lambda it: "nodeName" in it["spec"])
        return _as(installed, _token(installed, bound))

    return api


@pytest.fixture
def in_force(installed: Cluster, agent_of: Callable[[str], Api]) -> Api:
    """Return the API as the agent of node-1 sees it, once the policy is in force."""
    mine = agent_of("node-1")
    installed.api.create(_NODES, examples.gpu_node([], "node-1"))
    installed.api.create(_NODES, examples.gpu_node([], "node-2"))
    waiting.poll(
        lambda: _try(lambda: mine.patch(f"{_NODES}/node-2/status", _STATUS)) != "",
        seconds=_SECONDS,
        otherwise="the admission policy is not in force",
    )
    return mine


def _token(cluster: Cluster, pod: dict[str, Any] | None) -> str:
    """Return a token of the agent's account as the kubelet fetches it, for a pod or for none."""
    reference = None
    if pod is not None:
        names = pod["metadata"]
        reference = {"kind": "Pod", "apiVersion": "v1", "name": names["name"], "uid": names["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": reference},
    }
    account = f"{_COLLECTIONS['ServiceAccount']}/{agent.ACCOUNT}"
    return str(cluster.api.create(f"{account}/token", request)["status"]["token"])


def _as(cluster: Cluster, token: str) -> Api:
    return Api(address=cluster.api.address, token=token, authority=cluster.api.authority)


def _try(action: Callable[[], object]) -> str:
    """Return why something is refused, empty when it is not."""
    try:
        action()
    except ApiError as error:
        return str(error)
    return ""


def test_an_agent_reports_on_its_own_node_only(installed: Cluster, in_force: Api) -> None:
    """The status of another node is refused with both names, and stays as it was."""
    own = _try(lambda: in_force.patch(f"{_NODES}/node-1/status", _STATUS))
    before = installed.api.get(f"{_NODES}/node-2")
    other = _try(lambda: in_force.patch(f"{_NODES}/node-2/status", _STATUS))

    assert own == ""
    assert "the agent on node node-1 may not write the GPUNode of: node-2" in other
    assert installed.api.get(f"{_NODES}/node-2") == before


def test_an_agent_makes_its_own_node_only(
    installed: Cluster, in_force: Api, agent_of: Callable[[str], Api]
) -> None:
    """It may begin its node, without saying what is wanted there."""
    for name in ("node-1", "node-2"):
        installed.api.delete(f"{_NODES}/{name}")
    theirs = agent_of("node-2")
    bare = {**examples.gpu_node([], "node-1"), "spec": {}}
    wanted = examples.gpu_node([{"uuid": "GPU-1", "layout": "Whole"}], "node-2")

    assert "may not write the GPUNode of: node-1" in _try(lambda: theirs.create(_NODES, bare))
    assert "what its GPUs are to be" in _try(lambda: theirs.create(_NODES, wanted))
    assert _try(lambda: in_force.create(_NODES, bare)) == ""


def test_an_agent_changes_nothing_else(in_force: Api) -> None:
    """Neither what is wanted of its GPUs, nor whether its node is there, nor anybody's pods."""
    own = f"{_NODES}/node-1"
    wanted = {"spec": {"gpus": [{"uuid": "GPU-1", "layout": "Whole"}]}}
    for action in (
        lambda: in_force.patch(own, wanted),
        lambda: in_force.request("DELETE", own),
        lambda: in_force.get("/api/v1/namespaces/default/pods"),
        lambda: in_force.patch("/api/v1/nodes/node-1", {"metadata": {"labels": {"a": "b"}}}),
        lambda: in_force.get("/api/v1/namespaces/default/secrets"),
    ):
        assert "forbidden" in _try(action)
    assert _try(lambda: in_force.get("/api/v1/nodes/node-1")) == ""


def test_a_token_without_a_node_writes_nothing(installed: Cluster, in_force: Api) -> None:
    """Whoever makes a token of the account without a pod gains nothing by it."""
    assert _try(lambda: in_force.patch(f"{_NODES}/node-1/status", _STATUS)) == ""
    loose = _as(installed, _token(installed, None))

    refused = _try(lambda: loose.patch(f"{_NODES}/node-1/status", _STATUS))

    assert "does not say on which node it is" in refused


def test_the_policy_has_no_mistake_in_it(installed: Cluster) -> None:
    """Kubernetes looks at its expressions beside our schema, and has nothing to say."""
    path = f"{_COLLECTIONS['ValidatingAdmissionPolicy']}/{admission.NAME}"
    looked = installed.api.wait(
        path, lambda it: it is not None and "typeChecking" in it.get("status", {})
    )
    assert looked is not None
    assert looked["status"]["typeChecking"] == {}


def test_others_are_not_held_to_a_node(installed: Cluster, in_force: Api) -> None:
    """The policy is about agents: the controller and people write any node."""
    assert _try(lambda: in_force.patch(f"{_NODES}/node-1/status", _STATUS)) == ""
    for name in ("node-1", "node-2"):
        assert _try(lambda: installed.api.patch(f"{_NODES}/{name}/status", _STATUS)) == ""  # noqa: B023
