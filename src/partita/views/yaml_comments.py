"""Comments at the head of a YAML document that is meant to be read before it is applied."""

from collections.abc import Iterable, Mapping, Sequence

from partita.views.table import paragraph

__all__ = ["block", "bullet", "label_commands"]

_WIDTH = 98  # columns after the sign of a comment


def block(lines: Iterable[str]) -> str:
    """Return lines as comments, ``#`` before each; control characters become ``?``."""
    safe = ("".join(c if c.isprintable() else "?" for c in line) for line in lines)
    return "\n".join(f"# {line}".rstrip() for line in safe)


def bullet(text: str) -> list[str]:
    """Return a text as a bullet, wrapped."""
    return paragraph(text, width=_WIDTH, indent=2, mark="- ")


def label_commands(label: str, nodes_by_value: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the commands that set a label to each value on its nodes, none of them too long."""
    found = []
    for value, nodes in nodes_by_value.items():
        tail = f" {label}={value}"
        line = ""
        for node in nodes:
            if line and len(line) + len(node) + 1 + len(tail) > _WIDTH:
                found.append(line + tail)
                line = ""
            line = f"{line or '  kubectl label node --overwrite'} {node}"
        found.append(line + tail)
    return found
