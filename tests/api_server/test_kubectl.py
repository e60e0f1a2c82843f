"""The real kubectl works on the simulated API server."""

import json
from pathlib import Path

import pytest
from tests.api_server.conftest import Kubectl
from tests.kubernetes.api_server import gadget
from tests.kubernetes.api_server.api_under_test import ApiUnderTest

pytestmark = pytest.mark.slow

_CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: conf, labels: {{app: demo}}}}
data: {{replicas: "{replicas}"}}
"""
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: "busybox:1", resources: {limits: {nvidia.com/gpu: 1}}}
"""
_NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  capacity: {cpu: 8, nvidia.com/gpu: 4}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.37.2}
"""
_GADGET = """
apiVersion: facts.example.com/v1
kind: Gadget
metadata: {name: one}
spec: {count: 3, parts: [{id: a}]}
"""


@pytest.fixture(autouse=True)
def _custom(api: ApiUnderTest) -> None:
    assert api.create(gadget.DEFINITIONS, gadget.DEFINITION).code == 201


def _editor(folder: Path, script: str) -> str:
    path = folder / "editor"
    path.write_text(f'#!/bin/sh\nsed -i "{script}" "$1"\n', encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_apply_creates_changes_and_leaves(kubectl: Kubectl) -> None:
    """It computes its patch from the last applied configuration and the OpenAPI document."""
    said = [
        kubectl("apply", "-f", "-", given=_CONFIG.format(replicas=count)) for count in (4, 4, 8)
    ]
    assert said == [f"configmap/conf {word}\n" for word in ("created", "unchanged", "configured")]
    assert kubectl("get", "cm", "conf", "-o", "jsonpath={.data.replicas}") == "8"


def test_server_side_apply_tells_of_conflicts(kubectl: Kubectl) -> None:
    """And force takes the field."""
    kubectl("create", "configmap", "conf", "--from-literal=replicas=4")
    words = ("apply", "--server-side", "-f", "-")
    refused = kubectl(*words, given=_CONFIG.format(replicas=8), fails=True)
    assert 'conflict with "kubectl-create" using v1: .data.replicas' in refused
    kubectl(*words, "--force-conflicts", given=_CONFIG.format(replicas=8))
    assert kubectl("get", "cm", "conf", "-o", "jsonpath={.data.replicas}") == "8"


def test_apply_refuses_what_the_kind_does_not_know(kubectl: Kubectl) -> None:
    """Validation is the server's."""
    wrong = _GADGET.replace("count", "cuont")
    assert 'unknown field "spec.cuont"' in kubectl("apply", "-f", "-", given=wrong, fails=True)


def test_edit_changes_what_was_edited(kubectl: Kubectl, tmp_path: Path) -> None:
    """A ConfigMap, a pod's image and a custom resource."""
    documents = "---".join([_CONFIG.format(replicas=4), _POD, _GADGET])
    kubectl("create", "-f", "-", given=documents)
    script = "s/replicas: .4./replicas: '8'/; s/count: 3/count: 5/; s/image: busybox:1/&.1/"
    kubectl("edit", "cm/conf", "gadget/one", "pod/web", EDITOR=_editor(tmp_path, script))
    assert kubectl("get", "cm", "conf", "-o", "jsonpath={.data.replicas}") == "8"
    assert kubectl("get", "gd", "one", "-o", "jsonpath={.spec.count}") == "5"
    image = kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}")
    assert image == "busybox:1.1"


def test_tables_have_their_columns(kubectl: Kubectl) -> None:
    """Nodes, pods, ConfigMaps and custom resources, by short names as well."""
    documents = "---".join([_CONFIG.format(replicas=4), _POD, _NODE, _GADGET])
    kubectl("create", "-f", "-", given=documents)
    assert _rows(kubectl("get", "no"))[1][:3] == ["node-1", "Ready", "<none>"]
    assert _rows(kubectl("get", "no"))[1][4] == "v1.37.2"
    assert _rows(kubectl("get", "po", "-o", "wide"))[1][:3] == ["web", "0/1", "Pending"]
    assert _rows(kubectl("get", "cm"))[0] == ["NAME", "DATA", "AGE"]
    assert _rows(kubectl("get", "gd")) == [["NAME", "COUNT", "PARTS", "READY"], ["one", "3", "a"]]


def test_nodes_are_labelled_tainted_and_cordoned(kubectl: Kubectl) -> None:
    """Each is a patch of its own kind."""
    kubectl("create", "-f", "-", given=_NODE)
    kubectl("label", "node", "node-1", "zone=a")
    kubectl("taint", "node", "node-1", "gpu=yes:NoSchedule")
    kubectl("cordon", "node-1")
    node = json.loads(kubectl("get", "node", "node-1", "-o", "json"))
    assert node["metadata"]["labels"] == {"zone": "a"}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert node["spec"] == {"taints": [taint], "unschedulable": True}


def test_describe_tells_of_nodes_and_pods(kubectl: Kubectl) -> None:
    """It asks for pods by node, for leases and for events."""
    kubectl("create", "-f", "-", given=f"{_POD}---{_NODE}")
    node = kubectl("describe", "node", "node-1")
    assert "nvidia.com/gpu:  4" in node
    assert "Non-terminated Pods:          (0 in total)" in node
    assert "nvidia.com/gpu:  1" in kubectl("describe", "pod", "web")


def test_patch_label_and_delete(kubectl: Kubectl) -> None:
    """Deletion waits until the object is gone."""
    kubectl("create", "-f", "-", given=_GADGET)
    kubectl("patch", "gd", "one", "--type=merge", "-p", '{"spec":{"count":7}}')
    kubectl("annotate", "gd", "one", "why=this")
    found = json.loads(kubectl("get", "gd", "one", "-o", "json"))
    assert found["spec"]["count"] == 7
    assert found["metadata"]["annotations"] == {"why": "this"}
    assert kubectl("delete", "gd", "one") == 'gadget.facts.example.com "one" deleted\n'
    assert kubectl("get", "gd", "-o", "name") == ""


def test_get_watches(kubectl: Kubectl) -> None:
    """What is there, in one table, until the time is over."""
    kubectl("create", "-f", "-", given=_GADGET)
    told = kubectl("get", "gd", "-w", "--request-timeout=1s", "--output-watch-events")
    assert _rows(told)[1][:2] == ["ADDED", "one"]


def test_kinds_are_listed_and_explained(kubectl: Kubectl) -> None:
    """From discovery and from the OpenAPI documents."""
    kinds = {row[0]: row for row in _rows(kubectl("api-resources", "--no-headers"))}
    gadgets = ["gadgets", "gd", "facts.example.com/v1", "false", "Gadget"]
    assert kinds["gadgets"] == gadgets
    assert {"nodes", "pods", "configmaps", "leases"} <= kinds.keys()
    assert "maximum" not in kubectl("explain", "gadget.spec.parts")
    assert "colour\t<string>" in kubectl("explain", "gadget.spec.parts")
    assert "<map[string]Quantity>" in kubectl("explain", "pod.spec.containers.resources")


def test_namespaces_come_and_go(kubectl: Kubectl) -> None:
    """With everything in them; kubectl speaks protobuf to create them."""
    kubectl("create", "namespace", "blue")
    kubectl("run", "web", "--image=busybox", "-n", "blue")
    assert kubectl("get", "pods", "-A", "-o", "name") == "pod/web\n"
    kubectl("delete", "namespace", "blue")
    assert kubectl("get", "pods", "-A", "-o", "name") == ""


def test_custom_resources_go_with_their_definition(kubectl: Kubectl) -> None:
    """And a definition that comes again begins with none."""
    kubectl("create", "-f", "-", given=_GADGET)
    kubectl("delete", "crd", "gadgets.facts.example.com")
    assert "could not find" in kubectl("get", "--raw", gadget.PATH, fails=True)
    kubectl("create", "-f", "-", given=json.dumps(gadget.DEFINITION))
    assert json.loads(kubectl("get", "--raw", gadget.PATH))["items"] == []
