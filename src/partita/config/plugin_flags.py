"""``flags`` and ``imex`` of the device plugin's configuration: values that its programs refuse.

Most flags have no counterpart in a policy, so only their names are handed on. The reader is a plain
JSON decoder: it takes a key in any letter case and drops keys that it does not know.
Source: NVIDIA/k8s-device-plugin v0.20.0, ``api/config/v1/flags.go`` and ``duration.go``.
"""

import re
from collections.abc import Mapping, Sequence

from partita.config import sharing_section, yaml_nodes
from partita.config.inspection import Inspection, kind_of, nearest
from partita.config.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence

__all__ = ["FLAGS", "HOMES", "PLUGIN", "read", "read_imex"]

FLAGS = (
    "migStrategy",
    "failOnInitError",
    "mpsRoot",
    "nvidiaDriverRoot",
    "nvidiaDevRoot",
    "gdrcopyEnabled",
    "gdsEnabled",
    "mofedEnabled",
    "useNodeFeatureAPI",
    "deviceDiscoveryStrategy",
    "plugin",
    "gfd",
)
"""Keys of ``flags``."""

PLUGIN = (
    "passDeviceSpecs",
    "deviceListStrategy",
    "deviceIDStrategy",
    "cdiAnnotationPrefix",
    "nvidiaCTKPath",
    "containerDriverRoot",
    "sharedDevicesAllocationPolicy",
)
"""Keys of ``flags.plugin``."""

_GFD = ("oneshot", "noTimestamp", "sleepInterval", "outputFile", "machineTypeFile")
_IMEX = ("channelIDs", "required")

HOMES: Mapping[str, str] = {
    **dict.fromkeys(FLAGS, "flags"),
    **dict.fromkeys(PLUGIN, "flags.plugin"),
    **dict.fromkeys(_GFD, "flags.gfd"),
}
"""Section that each flag belongs to."""

_BOOLEANS = (
    "failOnInitError",
    "gdrcopyEnabled",
    "gdsEnabled",
    "mofedEnabled",
    "useNodeFeatureAPI",
    "passDeviceSpecs",
    "oneshot",
    "noTimestamp",
)
_CHOICES = {
    "deviceDiscoveryStrategy": ("auto", "nvml", "tegra"),
    "deviceIDStrategy": ("uuid", "index"),
    "deviceListStrategy": ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri"),
    "sharedDevicesAllocationPolicy": ("distributed", "packed"),
}
_TEXTS = (
    "mpsRoot",
    "nvidiaDriverRoot",
    "nvidiaDevRoot",
    "cdiAnnotationPrefix",
    "nvidiaCTKPath",
    "containerDriverRoot",
    "outputFile",
    "machineTypeFile",
)
_DURATION = re.compile(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")


def read(
    flags: YamlMapping | None, homes: Mapping[str, str], inspection: Inspection
) -> tuple[str, ...]:
    """Check the flags and return the dotted names of those that are set, ``migStrategy`` aside."""
    if flags is None:
        return ()
    found = _section(flags, "flags", FLAGS, homes, inspection)
    for name, known in (("plugin", PLUGIN), ("gfd", _GFD)):
        where = f"flags.{name}"
        inner = inspection.mapping(flags.get(name), where)
        if inner is not None:
            inner = inspection.fold_case(inner, where, known)
            found += _section(inner, where, known, homes, inspection)
    return found


def read_imex(
    node: YamlNode | None, homes: Mapping[str, str], inspection: Inspection
) -> tuple[str, ...]:
    """Check ``imex`` and return the dotted names of what is asked for.

    No channels, and channels that are not required, are what goes without saying.
    """
    imex = inspection.mapping(node, "imex")
    if imex is None:
        return ()
    imex = inspection.fold_case(imex, "imex", _IMEX)
    sharing_section.note_dropped_keys(imex, "imex", _IMEX, inspection, homes)
    inspection.boolean(imex.get("required"), "imex.required")
    _channels(imex.get("channelIDs"), inspection)
    return tuple(
        f"imex.{entry.key}"
        for entry in imex.last_entries()
        if entry.key in _IMEX and _is_asked(entry.value)
    )


def _is_asked(node: YamlNode) -> bool:
    if isinstance(node, YamlSequence):
        return bool(node.items)
    return not isinstance(node, YamlScalar) or node.value not in (None, False, "")


def _section(
    flags: YamlMapping,
    where: str,
    known: Sequence[str],
    homes: Mapping[str, str],
    inspection: Inspection,
) -> tuple[str, ...]:
    sharing_section.note_dropped_keys(flags, where, tuple(known), inspection, homes)
    names = []
    for entry in flags.last_entries():
        if entry.key not in known or entry.key in ("migStrategy", "plugin", "gfd"):
            continue
        _value(entry.key, entry.value, f"{where}.{entry.key}", inspection)
        names.append(f"{where}.{entry.key}")
    return tuple(names)


def _value(key: str, node: YamlNode, where: str, inspection: Inspection) -> None:
    if key in _BOOLEANS:
        inspection.boolean(node, where)
    elif key in _TEXTS:
        inspection.text(node, where)
    elif key == "sleepInterval":
        _interval(node, where, inspection)
    elif key == "deviceListStrategy" and isinstance(node, YamlSequence):
        for item in node.items:
            _choice(item, where, _CHOICES[key], inspection)
    else:
        _choice(node, where, _CHOICES[key], inspection)


def _choice(node: YamlNode, where: str, known: Sequence[str], inspection: Inspection) -> None:
    text = inspection.text(node, where)
    if text is None or text in ("", *known):
        return
    near = nearest(text, known)
    guess = f"did you mean {near}? " if near else ""
    inspection.error(
        "flag-value",
        f"{where} has no such value: {text}",
        node.at,
        f"{guess}one of {', '.join(known)}",
        where,
    )


def _interval(node: YamlNode, where: str, inspection: Inspection) -> None:
    if yaml_nodes.is_template(node):
        return
    value = node.value if isinstance(node, YamlScalar) else node
    if isinstance(value, int | float) and not isinstance(value, bool):
        inspection.warning(
            "interval-without-unit",
            f"a number without a unit is read as nanoseconds: {value}",
            node.at,
            f"write {value}s",
            where,
        )
        return
    text = inspection.text(node, where)
    if text is not None and text != "infinite" and not _DURATION.fullmatch(text):
        inspection.error(
            "flag-value",
            f"{where} is no duration: {text}",
            node.at,
            "write a number with a unit, such as 60s or 1m30s, or infinite",
            where,
        )


def _channels(node: YamlNode | None, inspection: Inspection) -> None:
    items = inspection.sequence(node, "imex.channelIDs")
    if not items or node is None or any(yaml_nodes.is_template(item) for item in items):
        return
    values = [item.value if isinstance(item, YamlScalar) else None for item in items]
    if len(values) == 1 and values[0] == 0 and type(values[0]) is int:
        return
    shown = ", ".join(
        item.text if isinstance(item, YamlScalar) else kind_of(item) for item in items[:8]
    )
    inspection.error(
        "flag-value",
        f"imex.channelIDs takes [] or [0] only, not: [{shown}]",
        node.at,
        "write channelIDs: [0], or [] for none",
        "imex.channelIDs",
    )
