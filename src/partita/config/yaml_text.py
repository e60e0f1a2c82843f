"""Writes documents as YAML that people read: keys in order, texts of several lines as blocks."""

from collections.abc import Mapping, Sequence

import yaml

__all__ = ["dump", "dump_all"]


class _Dumper(yaml.SafeDumper):
    """The safe dumper with block texts, and lists indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the signature is PyYAML's
        """Indent lists too: PyYAML's default puts them level with their key."""
        super().increase_indent(flow, False)  # noqa: FBT003 - PyYAML takes it by position


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(document: Mapping[str, object]) -> str:
    """Return a document as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def dump_all(documents: Sequence[Mapping[str, object]]) -> str:
    """Return documents as a YAML stream, separated by ``---``."""
    return "---\n".join(dump(document) for document in documents)
