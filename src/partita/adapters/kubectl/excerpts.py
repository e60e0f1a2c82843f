"""Parts of a node object that people paste alone: its labels, or its resources.

Labels are told from resources by their keys: ``nvidia.com/gpu`` and ``nvidia.com/mig-1g.10gb`` name
resources, ``nvidia.com/gpu.product`` and ``nvidia.com/mig-1g.10gb.count`` name labels.
"""

import re

from partita.adapters.kubectl import nodes
from partita.config.untyped import Untyped
from partita.model import resource
from partita.model.node import Node

__all__ = ["read", "recognises"]

_HOSTNAME = "kubernetes.io/hostname"
_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-\d+g\.\d+gb(\.(me|gfx|all))*(-[a-z]+)?)(\.shared)?\Z")
_PLAIN_RESOURCES = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_SECTIONS = frozenset({"allocatable", "Allocatable", "capacity", "Capacity"})


def recognises(value: object) -> bool:
    """Tell whether a document is an excerpt: keys of NVIDIA's, or sections that hold them."""
    if not isinstance(value, dict) or "kind" in value:
        return False
    if value and _SECTIONS.issuperset(value):
        return True
    return any(isinstance(key, str) and key.startswith(resource.DOMAIN) for key in value)


def read(document: Untyped, *, node: str) -> tuple[Node, tuple[str, ...]]:
    """Return a node that has only what the excerpt says, and notes.

    Args:
        document: The excerpt.
        node: Name of the node when no label says it.

    Raises:
        InputError: When a value has the wrong type.
    """
    sections = {key.lower(): value for key, value in document.items() if key in _SECTIONS}
    if sections:
        name, part = node, "resources"
        found = Node(
            name=node,
            capacity=nodes.resources(sections.get("capacity")),
            allocatable=nodes.resources(sections.get("allocatable")),
        )
    elif _holds_resources(document):
        name, part = node, "allocatable resources"
        found = Node(name=node, allocatable=nodes.resources(document))
    else:
        labels = nodes.texts(document)
        host = document.get(_HOSTNAME)
        name, part = (node if host is None else host.name()), "labels"
        found = Node(name=name, labels=labels)
    if name is node:
        return found, (f"node {node}: only {part} are in the file, the name is the file's",)
    return found, (f"node {name}: only {part} are in the file",)


def _holds_resources(document: Untyped) -> bool:
    keys = [key for key, _ in document.items()]
    ours = [key for key in keys if key.startswith(resource.DOMAIN)]
    return not _PLAIN_RESOURCES.isdisjoint(keys) or all(_RESOURCE.match(key) for key in ours)
