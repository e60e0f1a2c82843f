"""What the node agent runs as: a namespace, an account with few rights, and a DaemonSet.

The agent switches MIG and creates instances, so its container is privileged; what it may do in the
cluster is little, and ``admission`` narrows that to its own node.
"""

from collections.abc import Mapping, Sequence

from partita import __version__
from partita.manifests.crds import DEFINITIONS

__all__ = ["ACCOUNT", "IMAGE", "NAMESPACE", "documents"]

Object = Mapping[str, object]

NAMESPACE = "partita-system"
ACCOUNT = "partita-agent"
IMAGE = f"partita:{__version__}"
"""A name without a registry; whoever installs says where the image really is."""

_GROUP = DEFINITIONS[0].name.partition(".")[2]
_PORT = 9410
_KUBELET = "/var/lib/kubelet"
_GPU_LABELS = {
    "nvidia.com/gpu.present": "true",  # NVIDIA's GPU feature discovery
    "feature.node.kubernetes.io/pci-10de.present": "true",  # node feature discovery
    "partita.dev/agent": "true",  # by hand
}
_FOLDERS: Sequence[tuple[str, str, str, bool]] = (
    # name, path on the node and in the container, type, whether it is only read
    ("device-plugins", f"{_KUBELET}/device-plugins", "Directory", False),
    ("pod-resources", f"{_KUBELET}/pod-resources", "Directory", False),
    ("plugins-registry", f"{_KUBELET}/plugins_registry", "DirectoryOrCreate", True),
    ("cdi", "/var/run/cdi", "DirectoryOrCreate", False),
    ("state", "/run/partita", "DirectoryOrCreate", False),
)


def documents(
    *,
    image: str = IMAGE,
    namespace: str = NAMESPACE,
    config_map: str | None = None,
    runtime_class: str | None = None,
) -> Sequence[Object]:
    """Return the objects, in the order of creating them.

    Args:
        image: Image that has partita.
        namespace: Where the agents run.
        config_map: ConfigMap of that namespace with what is wanted under the key ``config.yaml``;
            None = what stands is served as it stands.
        runtime_class: RuntimeClass that brings the driver's libraries into the container, None
            where the node's default runtime does.
    """
    return (
        _namespace(namespace),
        _object("v1", "ServiceAccount", ACCOUNT, namespace),
        _cluster_role(),
        _binding(namespace),
        _daemon_set(namespace, _pod(image, config_map, runtime_class)),
    )


def _object(version: str, kind: str, name: str, namespace: str | None = None) -> dict[str, object]:
    metadata: dict[str, object] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": {**metadata, "labels": _labels()}}


def _labels() -> dict[str, object]:
    """Return labels, each time anew: YAML would refer to the first ones by an alias."""
    return {"app.kubernetes.io/name": "partita", "app.kubernetes.io/component": "agent"}


def _namespace(name: str) -> Object:
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "partita", **level}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _cluster_role() -> Object:
    rules = [
        _rule(_GROUP, "gpunodes", "get", "list", "watch", "create"),
        _rule(_GROUP, "gpunodes/status", "get", "update", "patch"),
        _rule("", "nodes", "get"),
    ]
    return {**_object("rbac.authorization.k8s.io/v1", "ClusterRole", ACCOUNT), "rules": rules}


def _rule(group: str, resource: str, *verbs: str) -> Object:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def _binding(namespace: str) -> Object:
    group = "rbac.authorization.k8s.io"
    return {
        **_object(f"{group}/v1", "ClusterRoleBinding", ACCOUNT),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }


def _daemon_set(namespace: str, pod: Object) -> Object:
    spec = {
        "selector": {"matchLabels": _labels()},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": _labels()}, "spec": pod},
    }
    return {**_object("apps/v1", "DaemonSet", ACCOUNT, namespace), "spec": spec}


def _pod(image: str, config_map: str | None, runtime_class: str | None) -> Object:
    pod: dict[str, object] = {
        "serviceAccountName": ACCOUNT,
        "priorityClassName": "system-node-critical",
        "hostPID": True,
        "terminationGracePeriodSeconds": 10,
        "affinity": _affinity(),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [_container(image, configured=config_map is not None)],
        "volumes": [
            *(_on_node(name, path, kind) for name, path, kind, _ in _FOLDERS),
            _on_node("host", "/", "Directory"),
        ],
    }
    if runtime_class is not None:
        pod["runtimeClassName"] = runtime_class
    if config_map is not None:
        volume = {"name": "config", "configMap": {"name": config_map}}
        pod["volumes"] = [*_list(pod["volumes"]), volume]
    return pod


def _container(image: str, *, configured: bool) -> Object:
    arguments = ["agent", f"--listen=0.0.0.0:{_PORT}", "--host-root=/host", "--log-form=json"]
    mounts = [
        *(_mount(name, path, read_only=read_only) for name, path, _, read_only in _FOLDERS),
        {"name": "host", "mountPath": "/host", "readOnly": True, "mountPropagation": _FOLLOWS},
    ]
    if configured:
        arguments.append("--config=/etc/partita/config.yaml")
        mounts.append(_mount("config", "/etc/partita", read_only=True))
    return {
        "name": "agent",
        "image": image,
        "command": ["partita"],
        "args": arguments,
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            *({"name": name, "value": value} for name, value in _DRIVER.items()),
        ],
        "securityContext": {"privileged": True},
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": _probe("/healthz", seconds=10, failures=6),
        "readinessProbe": _probe("/readyz", seconds=5, failures=2),
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}},
        "volumeMounts": mounts,
    }


_FOLLOWS = "HostToContainer"
_DRIVER = {  # what NVIDIA's container toolkit reads
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "utility",
    "NVIDIA_MIG_CONFIG_DEVICES": "all",
    "NVIDIA_MIG_MONITOR_DEVICES": "all",
}


def _affinity() -> Object:
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        for key, value in _GPU_LABELS.items()
    ]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _probe(path: str, *, seconds: int, failures: int) -> Object:
    get = {"path": path, "port": "http"}
    return {"httpGet": get, "periodSeconds": seconds, "failureThreshold": failures}


def _on_node(name: str, path: str, kind: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _mount(name: str, path: str, *, read_only: bool) -> dict[str, object]:
    mount: dict[str, object] = {"name": name, "mountPath": path}
    return mount | ({"readOnly": True} if read_only else {})


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
