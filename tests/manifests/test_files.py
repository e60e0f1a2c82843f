"""The manifests: deterministic text, few rights, and everything that the agent needs to run."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from testbed import needs
from testbed.errors import MissingError

from partita.manifests import admission, agent, files

_DEPLOY = Path(__file__).parents[2] / "deploy"


def _one(documents: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any]:
    (found,) = [one for one in documents if one["kind"] == kind]
    return found


def _container(**options: Any) -> Mapping[str, Any]:
    pod = _pod(**options)
    (container,) = pod["containers"]
    return dict(container)


def _pod(**options: Any) -> Mapping[str, Any]:
    return dict(_one(agent.documents(**options), "DaemonSet")["spec"]["template"]["spec"])


def test_the_files_are_what_the_tables_say() -> None:
    """``deploy/`` holds exactly what is generated, so a key of a reader is never missing there."""
    there = {
        str(path.relative_to(_DEPLOY)): path.read_text(encoding="utf-8")
        for path in _DEPLOY.rglob("*.yaml")
    }
    assert there == files.files()


def test_the_text_is_plain_yaml() -> None:
    """It means to any reader what was meant, and is the same every time."""
    texts = files.files()
    assert texts == files.files()
    documents = [one for one in yaml.safe_load_all(texts["agent.yaml"]) if one is not None]
    assert documents == list(agent.documents())
    assert "&id" not in "".join(texts.values())  # no aliases: people read it


def test_image_and_namespace_are_parameters() -> None:
    """Whoever installs says where the image is and where the agents run."""
    documents = agent.documents(image="example/partita:2", namespace="gpus")
    namespaces = {one["metadata"].get("namespace", "gpus") for one in documents}  # type: ignore[attr-defined]
    assert namespaces == {"gpus"}
    assert _container(image="example/partita:2")["image"] == "example/partita:2"
    user = "system:serviceaccount:gpus:partita-agent"
    assert user in str(admission.documents(namespace="gpus"))


def test_a_container_has_what_the_agent_needs() -> None:
    """Its folders of the node, its node's name, and the right to switch MIG."""
    container, pod = _container(), _pod()
    mounts = {one["mountPath"]: one.get("readOnly", False) for one in container["volumeMounts"]}
    assert mounts == {
        "/var/lib/kubelet/device-plugins": False,
        "/var/lib/kubelet/pod-resources": False,
        "/var/lib/kubelet/plugins_registry": True,
        "/var/run/cdi": False,
        "/run/partita": False,
        "/host": True,
    }
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in pod["volumes"]
    }
    assert pod["hostPID"] is True
    assert container["securityContext"] == {"privileged": True}
    assert container["env"][0]["name"] == "NODE_NAME"
    assert "--host-root=/host" in container["args"]


def test_a_config_map_is_mounted_where_the_agent_looks() -> None:
    """Without one, nothing is mounted and no file is asked for."""
    container = _container(config_map="wanted")
    assert "--config=/etc/partita/config.yaml" in container["args"]
    assert {"name": "config", "configMap": {"name": "wanted"}} in _pod(config_map="wanted")[
        "volumes"
    ]
    assert not any(argument.startswith("--config") for argument in _container()["args"])
    assert _pod(runtime_class="nvidia")["runtimeClassName"] == "nvidia"


def test_rights_are_few() -> None:
    """The agent reads nodes, and writes nothing but what it reports."""
    rules = _one(agent.documents(), "ClusterRole")["rules"]
    written = {
        (resource, verb)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert written == {
        ("gpunodes", "create"),
        ("gpunodes/status", "update"),
        ("gpunodes/status", "patch"),
    }


def test_kubectl_puts_them_together() -> None:
    """``kubectl kustomize deploy`` has every object and the image with its tag."""
    try:
        kubectl = needs.kubectl()
    except MissingError as error:
        pytest.skip(error.message)
    done = subprocess.run(  # noqa: S603 - a program of the test group
        [str(kubectl), "kustomize", str(_DEPLOY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kinds = sorted(one["kind"] for one in yaml.safe_load_all(done.stdout))
    assert kinds == [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "DaemonSet",
        "Namespace",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    assert f"image: {agent.IMAGE}" in done.stdout
