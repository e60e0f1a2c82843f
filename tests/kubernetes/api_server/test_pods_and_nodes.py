"""Pods and nodes: defaults, what is refused, how pods are bound, and how they end."""

from collections.abc import Iterator

import pytest
from tests.kubernetes.api_server.api_under_test import (
    STRATEGIC,
    TABLE,
    Answer,
    ApiUnderTest,
    Object,
    pod,
)

_GPU = "nvidia.com/gpu"
_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "enableServiceLinks": True,
    "securityContext": {},
}


def test_a_pod_gets_defaults(api: ApiUnderTest, pods: str) -> None:
    """Limits are requests too, amounts are texts, and a new pod is pending."""
    found = api.create(pods, pod("p", limits={_GPU: 1, "cpu": "1000m"})).body
    container = found["spec"]["containers"][0]
    assert {key: found["spec"][key] for key in _DEFAULTS} == _DEFAULTS
    amounts = {_GPU: "1", "cpu": "1"}
    assert container["resources"] == {"limits": amounts, "requests": amounts}
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert found["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert found["metadata"]["generation"] == 1
    tolerated = {one["key"] for one in found["spec"]["tolerations"]}
    reasons = ("not-ready", "unreachable")
    assert tolerated == {f"node.kubernetes.io/{reason}" for reason in reasons}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"requests": {_GPU: 1}},
            (
                "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                "overcommitable resources"
            ),
        ),
        (
            {"requests": {_GPU: 1}, "limits": {_GPU: 2}},
            (
                'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
                "nvidia.com/gpu limit of 2"
            ),
        ),
        (
            {"requests": {"cpu": 2}, "limits": {"cpu": 1}},
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal "
                "to cpu limit of 1"
            ),
        ),
        (
            {"requests": {_GPU: "500m"}, "limits": {_GPU: "500m"}},
            (
                f'[spec.containers[0].resources.limits[{_GPU}]: Invalid value: "500m": must be an '
                f'integer, spec.containers[0].resources.requests[{_GPU}]: Invalid value: "500m": '
                f"must "
                "be an integer]"
            ),
        ),
    ],
)
def test_resources_have_rules(
    api: ApiUnderTest, pods: str, resources: Object, message: str
) -> None:
    """Extended resources are whole, and requested as they are limited."""
    body = pod("p")
    body["spec"]["containers"][0]["resources"] = resources
    answer = api.create(pods, body)
    assert (answer.code, answer.message) == (422, f'Pod "p" is invalid: {message}')


def test_a_pod_has_containers(api: ApiUnderTest, pods: str) -> None:
    """With names and images."""
    answer = api.create(pods, pod("p", containers=[]))
    assert answer.message == 'Pod "p" is invalid: spec.containers: Required value'
    answer = api.create(pods, pod("p", containers=[{"name": "a"}]))
    assert answer.message == 'Pod "p" is invalid: spec.containers[0].image: Required value'


def test_a_pod_stays_as_it_is(api: ApiUnderTest, pods: str) -> None:
    """Its image may change, hardly anything else."""
    api.create(pods, pod("p"))
    answer = api.patch(f"{pods}/p", {"spec": {"schedulerName": "another"}})
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than '
    )
    patch = {"spec": {"containers": [{"name": "main", "image": "example.com/other"}]}}
    found = api.patch(f"{pods}/p", patch, content=STRATEGIC).body
    assert found["spec"]["containers"][0]["image"] == "example.com/other"
    assert found["metadata"]["generation"] == 2


@pytest.fixture
def bound(api: ApiUnderTest, pods: str, node: str) -> Iterator[str]:
    """Return the path of a pod that is bound to a node without a kubelet, and stays there."""
    toleration = {"operator": "Exists"}
    api.create(pods, pod("p", tolerations=[toleration]))
    answer = _bind(api, pods, node.rsplit("/", 1)[1])
    assert (answer.code, answer.body["status"]) == (201, "Success")
    yield f"{pods}/p"
    api.delete(f"{pods}/p", gracePeriodSeconds=0)


def _bind(api: ApiUnderTest, pods: str, node: str) -> Answer:
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}
    binding |= {"target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    return api.create(f"{pods}/p/binding", binding)


def test_a_pod_is_bound_once(api: ApiUnderTest, pods: str, bound: str, name: str) -> None:
    """The binding sets the node and the condition."""
    found = api.get(bound).body
    condition = found["status"]["conditions"][0]
    assert found["spec"]["nodeName"] == name
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    answer = _bind(api, pods, "another")
    assert answer.code == 409
    assert answer.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node '
        f'"{name}"'
    )


def test_a_pod_on_a_node_ends_in_its_own_time(api: ApiUnderTest, bound: str) -> None:
    """It is marked, stays, may be hurried, and goes when somebody waits no longer."""
    marked = api.delete(bound).body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    assert marked["generation"] == 2
    hurried = api.delete(bound, {"gracePeriodSeconds": 5}).body["metadata"]
    assert hurried["deletionGracePeriodSeconds"] == 5
    assert hurried["generation"] == 2
    slowed = api.delete(bound, {"gracePeriodSeconds": 20}).body["metadata"]
    assert slowed["deletionGracePeriodSeconds"] == 5
    gone = api.delete(bound, gracePeriodSeconds=0)
    assert gone.body["kind"] == "Pod"
    assert api.get(bound).code == 404


def test_a_pod_on_no_node_ends_at_once(api: ApiUnderTest, pods: str) -> None:
    """The answer is the pod, marked."""
    api.create(pods, pod("p"))
    gone = api.delete(f"{pods}/p").body
    assert (gone["kind"], gone["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert api.get(f"{pods}/p").code == 404


def test_a_pods_status_is_changed_apart(api: ApiUnderTest, bound: str, name: str) -> None:
    """Through the status path the spec stays; labels may change there."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    both = {"metadata": {"labels": {"l": "1"}}, "spec": {"nodeName": "x"}, "status": status}
    found = api.patch(f"{bound}/status", both, content=STRATEGIC).body
    kinds = [one["type"] for one in found["status"]["conditions"]]
    assert kinds == ["Ready", "PodScheduled"]
    assert found["metadata"]["labels"] == {"l": "1"}
    assert found["spec"]["nodeName"] == name
    ignored = api.patch(bound, {"status": {"phase": "Failed"}}).body
    assert ignored["status"]["phase"] == "Running"


def test_a_pods_row_tells_how_it_stands(api: ApiUnderTest, bound: str, name: str) -> None:
    """Ready containers of all, the reason, and restarts."""
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    container = {"name": "main", "ready": False, "restartCount": 2, "image": "i", "imageID": "i"}
    status = {"phase": "Running", "containerStatuses": [container | {"state": state}]}
    api.patch(f"{bound}/status", {"status": status})
    table = api.ask("GET", bound, accept=TABLE).body
    cells = table["rows"][0]["cells"]
    assert cells[:4] == ["p", "0/1", "CrashLoopBackOff", "2"]
    assert cells[5:] == ["<none>", name, "<none>", "<none>"]
    api.delete(bound)
    assert api.ask("GET", bound, accept=TABLE).body["rows"][0]["cells"][2] == "Terminating"


def test_a_nodes_status_is_changed_apart(api: ApiUnderTest, node: str) -> None:
    """Extended resources come and go by a merge patch."""
    for path, expected in ((node, {}), (f"{node}/status", {_GPU: "8"})):
        patch = {"status": {"capacity": {_GPU: "8"}}}
        found = api.patch(path, patch).body
        assert found["status"].get("capacity", {}) == expected
    found = api.patch(f"{node}/status", {"status": {"capacity": {_GPU: None}}}).body
    assert "capacity" not in found["status"]


def test_a_strategic_merge_knows_conditions_by_type(api: ApiUnderTest, node: str) -> None:
    """What the patch names comes first; directives remove."""

    def patch(*conditions: Object, **more: object) -> list[tuple[str, str]]:
        body = {"status": {"conditions": list(conditions), **more}}
        found = api.patch(f"{node}/status", body, content=STRATEGIC).body
        listed = found["status"].get("conditions", [])
        return [(one["type"], one["status"]) for one in listed]

    assert patch({"type": "A", "status": "True"}) == [("A", "True")]
    assert patch({"type": "B", "status": "True"}) == [("B", "True"), ("A", "True")]
    assert patch({"type": "A", "status": "False"}) == [("B", "True"), ("A", "False")]
    order = {"$setElementOrder/conditions": [{"type": "C"}, {"type": "A"}]}
    ordered = [("C", "True"), ("B", "True"), ("A", "False")]
    assert patch({"type": "C", "status": "True"}, **order) == ordered
    assert patch({"type": "B", "$patch": "delete"}) == [("C", "True"), ("A", "False")]
    replaced = patch({"$patch": "replace"}, {"type": "D", "status": "True"})
    assert replaced == [("D", "True")]


def test_events_have_two_forms(api: ApiUnderTest, namespace: str) -> None:
    """One object, in core/v1 and in events.k8s.io/v1."""
    core = f"/api/v1/namespaces/{namespace}/events"
    new = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    involved = {"kind": "Pod", "name": "p", "namespace": namespace}
    body = {"metadata": {"name": "e"}, "involvedObject": involved, "message": "m", "reason": "R"}
    assert api.create(core, body | {"type": "Normal"}).code == 201
    found = api.get(f"{new}/e").body
    assert (found["apiVersion"], found["note"]) == ("events.k8s.io/v1", "m")
    assert found["regarding"] == involved
    selector = "involvedObject.name=p,involvedObject.kind=Pod"
    assert len(api.get(core, fieldSelector=selector).body["items"]) == 1
