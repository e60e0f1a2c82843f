"""What every object of ours begins with: ``apiVersion``, ``kind`` and ``metadata``."""

import re
from collections.abc import Mapping

from partita.config import yaml_nodes
from partita.config.inspection import Inspection
from partita.config.yaml_nodes import YamlMapping, YamlNode, YamlScalar

__all__ = ["TOP", "check_version", "generation", "is_kind", "name", "plain"]

TOP = ("apiVersion", "kind", "metadata", "spec", "status")
"""The keys of an object."""

_MAX_NAME = 253
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def is_kind(node: YamlNode, kind: str) -> bool:
    """Tell whether a document is of a kind, whatever its version and letter case."""
    found = node.get("kind") if isinstance(node, YamlMapping) else None
    return isinstance(found, YamlScalar) and found.text.lower() == kind.lower()


def check_version(root: YamlMapping, version: str, inspection: Inspection) -> None:
    """Note an ``apiVersion`` that is not read here."""
    node = root.get("apiVersion")
    found = inspection.text(node, "apiVersion")
    if found != version and not (node is not None and yaml_nodes.is_template(node)):
        inspection.error(
            "api-version",
            f"this program reads {version}, not: {found or 'nothing'}",
            node.at if node else root.at,
            f"write apiVersion: {version}",
            "apiVersion",
        )


def name(root: YamlMapping, noun: str, inspection: Inspection) -> str:
    """Return ``metadata.name``; empty when it is missing, noted when Kubernetes takes no such."""
    metadata = inspection.mapping(root.get("metadata"), "metadata")
    found = inspection.text(metadata.get("name") if metadata else None, "metadata.name")
    if not found:
        inspection.error("name-missing", f"{noun} needs a name", root.at, "add metadata.name")
    elif metadata is not None and not _is_name(found):
        inspection.error(
            "name-form",
            f"Kubernetes takes no such name: {found[:80]}",
            metadata.at if (entry := metadata.entry("name")) is None else entry.value.at,
            "use small letters, digits, `-` and `.`, a letter or digit at both ends (RFC 1123)",
            "metadata.name",
        )
    return found or ""


def generation(root: YamlMapping, inspection: Inspection) -> int | None:
    """Return ``metadata.generation``, None when the cluster has not counted the object."""
    metadata = inspection.mapping(root.get("metadata"), "metadata")
    node = metadata.get("generation") if metadata else None
    return inspection.integer(node, "metadata.generation")


def plain(value: Mapping[str, object], version: str, kind: str) -> tuple[str, int | None] | None:
    """Return name and generation of an API object, None unless all of its header is as it should.

    Args:
        value: The object.
        version: Its ``apiVersion``.
        kind: Its ``kind``.
    """
    metadata = value.get("metadata")
    usual = (value.get("apiVersion"), value.get("kind")) == (version, kind)
    if not usual or not isinstance(metadata, dict) or not value.keys() <= set(TOP):
        return None
    found, number = metadata.get("name"), metadata.get("generation")
    if not isinstance(found, str) or not _is_name(found):
        return None
    return (found, number) if number is None or type(number) is int else None


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None
