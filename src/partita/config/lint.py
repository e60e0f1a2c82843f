"""Finds out what a text is and runs the checks for it: the whole of ``partita check`` but the node.

A text may hold several YAML documents of several kinds, or a Kubernetes ``List``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from partita.config import (
    config_map,
    device_plugin,
    mig_parted,
    operator_values,
    policy_document,
    yaml_nodes,
)
from partita.config.config_map import Configs
from partita.config.inspection import Inspection, sorted_findings
from partita.config.partition_policy import PartitionPolicy
from partita.config.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from partita.errors import InputError
from partita.model.finding import Finding

__all__ = ["UNDERSTOOD", "Kind", "Reading", "kinds", "read"]

UNDERSTOOD = (
    "a device-plugin config, a mig-parted config, a ConfigMap with either, Helm values of the "
    "gpu-operator or the device-plugin chart, a PartitionPolicy, or a node"
)
_MAX_LIST_DEPTH = 3


class Kind(Enum):
    """Kinds of documents that are told apart."""

    DEVICE_PLUGIN = "device-plugin config"
    MIG_PARTED = "mig-parted config"
    CONFIG_MAP = "ConfigMap"
    VALUES = "Helm values"
    POLICY = "PartitionPolicy"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a text says.

    Attributes:
        configs: NVIDIA configurations.
        policies: Policies without errors.
        findings: What is wrong or worth knowing, by line.
        kinds: Kinds of the documents in it; a node is not read here.
    """

    configs: Configs
    policies: tuple[PartitionPolicy, ...]
    findings: tuple[Finding, ...]
    kinds: frozenset[Kind]


def kinds(text: str, path: str) -> frozenset[Kind]:
    """Return the kinds of the documents in a text; those of no known kind count for nothing.

    Raises:
        InputError: When the text is not YAML.
    """
    found = (_kind(node, text, path) for node in _documents(yaml_nodes.compose(text, path)))
    return frozenset(kind for kind in found if kind is not None)


def read(text: str, path: str) -> Reading:
    """Read and check every document of a text.

    Raises:
        InputError: When the text is not YAML, or nothing in it is of a known kind.
    """
    inspection = Inspection(path=path)
    configs, policies, seen = Configs(), [], set()
    for node in _documents(yaml_nodes.compose(text, path)):
        kind = _kind(node, text, path)
        if kind is None or not isinstance(node, YamlMapping):
            inspection.ignored(node)
            continue
        seen.add(kind)
        match kind:
            case Kind.POLICY:
                policy = policy_document.read(node, inspection)
                policies += [policy] if policy is not None else []
            case Kind.CONFIG_MAP:
                configs += config_map.read(node, text, inspection)
            case Kind.VALUES:
                configs += operator_values.read(node, text, inspection)
            case Kind.DEVICE_PLUGIN | Kind.MIG_PARTED:
                configs += config_map.read_document(node, None, inspection)
            case Kind.NODE:
                pass  # the command reads it with the readers of cluster objects
    if not seen:
        raise InputError(
            message="nothing in this file is understood", hint=f"give {UNDERSTOOD}", path=path
        )
    return Reading(
        configs=configs,
        policies=tuple(policies),
        findings=sorted_findings(inspection.findings),
        kinds=frozenset(seen),
    )


def _documents(nodes: Sequence[YamlNode], depth: int = 0) -> Iterator[YamlNode]:
    """Yield documents; a Kubernetes list is replaced by its items."""
    for node in nodes:
        items = node.get("items") if isinstance(node, YamlMapping) else None
        if depth < _MAX_LIST_DEPTH and isinstance(items, YamlSequence):
            yield from _documents(items.items, depth + 1)
        else:
            yield node


def _kind(node: YamlNode, text: str, path: str) -> Kind | None:
    if not isinstance(node, YamlMapping):
        return None
    known = (
        (Kind.POLICY, policy_document.looks_like(node)),
        (Kind.CONFIG_MAP, config_map.looks_like(node, text, path)),
        (Kind.NODE, _is_node(node)),
        (Kind.MIG_PARTED, mig_parted.looks_like(node)),
        (Kind.VALUES, operator_values.looks_like(node)),
        (Kind.DEVICE_PLUGIN, device_plugin.looks_like(node) and "kind" not in node.keys),
    )
    return next((kind for kind, matches in known if matches), None)


def _is_node(node: YamlMapping) -> bool:
    """Tell a node object from the rest, or its labels or resources alone."""
    kind = node.get("kind")
    if isinstance(kind, YamlScalar):
        return kind.text == "Node"
    resources = any(key in node.keys for key in ("Allocatable", "Capacity", "allocatable"))
    return resources or any(key.startswith("nvidia.com/") for key in node.keys)
