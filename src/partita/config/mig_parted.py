"""NVIDIA's mig-parted configuration, ``mig-configs``: read as strictly as its reader, and written.

Its reader refuses unknown fields and compares their names letter by letter, so almost everything
here is an error. A refused entry is left out of the value.
Source: NVIDIA/mig-parted v0.15.0, ``api/spec/v1/spec.go``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partita.config import mig_layouts, yaml_nodes
from partita.config.inspection import Decoded, Inspection, kind_of, sorted_findings
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode, YamlScalar, YamlSequence

__all__ = ["MigEntry", "NamedMigConfig", "decode", "encode", "looks_like", "read"]

_ENTRY = ("device-filter", "devices", "mig-enabled", "mig-devices")
_HOMES = {
    **dict.fromkeys(("version", "mig-configs"), ""),
    **dict.fromkeys(_ENTRY, "mig-configs.<name>[]"),
}
_FILTER = re.compile(r"^0x[0-9A-Fa-f]{8}(:0x[0-9A-Fa-f]{8})?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigEntry:
    """One item of a named configuration: which GPUs, and what they become.

    Attributes:
        devices: NVML indices, None = all.
        device_filters: PCI device ids, empty = every GPU.
        mig_enabled: Whether MIG is on.
        mig_devices: Profile → count on each of the GPUs.
        at: Where the entry stands.
        devices_at: Where its device list stands.
        mig_devices_at: Where its layout stands.
        filter_at: Where its filter stands.
    """

    devices: tuple[int, ...] | None
    device_filters: tuple[str, ...] = ()
    mig_enabled: bool
    mig_devices: Mapping[str, int] = field(default_factory=dict)
    at: Position = field(compare=False)
    devices_at: Position = field(compare=False)
    mig_devices_at: Position = field(compare=False)
    filter_at: Position = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMigConfig:
    """A named configuration: the value of the label ``nvidia.com/mig.config``.

    Attributes:
        name: Its name.
        entries: Its entries, applied in this order.
        path: File that it is from.
        at: Where its name stands.
    """

    name: str
    entries: tuple[MigEntry, ...]
    path: str = field(compare=False, default="")
    at: Position = field(compare=False)


def decode(text: str, path: str) -> Decoded[NamedMigConfig]:
    """Read a mig-parted file.

    Raises:
        InputError: When the text is not YAML.
    """
    inspection = Inspection(path=path)
    values: list[NamedMigConfig] = []
    for document in yaml_nodes.compose(text, path):
        if isinstance(document, YamlMapping):
            values += read(document, inspection)
    return Decoded(values=tuple(values), findings=sorted_findings(inspection.findings))


def looks_like(node: YamlNode) -> bool:
    """Tell whether a document is a mig-parted file."""
    return isinstance(node, YamlMapping) and "mig-configs" in node.keys


def read(root: YamlMapping, inspection: Inspection) -> tuple[NamedMigConfig, ...]:
    """Read the configurations of a file that is composed already, noting into an inspection."""
    inspection.templates(root)
    inspection.known_keys(root, "", ("version", "mig-configs"), homes=_HOMES)
    inspection.duplicate_keys(root, "")
    _version(root, inspection)
    configs = inspection.mapping(root.get("mig-configs"), "mig-configs")
    if configs is None or not configs.entries:
        at = configs.at if configs else root.at
        inspection.error(
            "no-configs", "mig-configs needs at least one named config", at, "add all-disabled"
        )
        return ()
    _duplicate_configs(configs, inspection)
    for entry in configs.last_entries():
        inspection.label_value(entry.key, entry.at)
    return tuple(
        _named(entry.key, entry.value, entry.at, inspection.inside(entry.key))
        for entry in configs.last_entries()
    )


def encode(configs: Sequence[NamedMigConfig]) -> Mapping[str, object]:
    """Return the document of some configurations, ready to be written as YAML or JSON."""
    return {
        "version": "v1",
        "mig-configs": {
            config.name: [_encode_entry(entry) for entry in config.entries] for config in configs
        },
    }


def _encode_entry(entry: MigEntry) -> Mapping[str, object]:
    document: dict[str, object] = {}
    if entry.device_filters:
        filters = list(entry.device_filters)
        document["device-filter"] = filters[0] if len(filters) == 1 else filters
    document["devices"] = "all" if entry.devices is None else list(entry.devices)
    document["mig-enabled"] = entry.mig_enabled
    if entry.mig_enabled:
        document["mig-devices"] = dict(entry.mig_devices)
    return document


def _version(root: YamlMapping, inspection: Inspection) -> None:
    node = root.get("version")
    if node is None:
        inspection.error(
            "version-missing",
            "mig-parted refuses a file without version",
            root.at,
            "add version: v1",
        )
        return
    if yaml_nodes.is_template(node):
        return
    if not isinstance(node, YamlScalar) or node.value != "v1":
        shown = node.text if isinstance(node, YamlScalar) else kind_of(node)
        inspection.error(
            "unknown-version",
            f"mig-parted knows only v1, not: {shown}",
            node.at,
            "write version: v1",
        )


def _duplicate_configs(configs: YamlMapping, inspection: Inspection) -> None:
    for entry in configs.duplicates():
        inspection.warning(
            "duplicate-config",
            f"config name stands twice, the last one counts: {entry.key}",
            entry.at,
            "rename or remove one; readers that follow YAML strictly refuse the file",
            entry.key,
        )


def _named(name: str, node: YamlNode, at: Position, inspection: Inspection) -> NamedMigConfig:
    items = inspection.sequence(node, "config")
    if not items:
        empty = items is not None or (isinstance(node, YamlScalar) and node.value is None)
        if empty:
            inspection.error(
                "config-empty",
                f"mig-parted refuses a config without entries: {name}",
                at,
                "add `- devices: all` with mig-enabled",
            )
        return NamedMigConfig(name=name, entries=(), path=inspection.path, at=at)
    entries = []
    for number, item in enumerate(items):
        mapping = inspection.mapping(item, f"[{number}]")
        entry = _entry(mapping, f"[{number}]", inspection) if mapping is not None else None
        if entry is not None:
            entries.append(entry)
    return NamedMigConfig(name=name, entries=tuple(entries), path=inspection.path, at=at)


def _entry(mapping: YamlMapping, where: str, inspection: Inspection) -> MigEntry | None:
    before = len(inspection.findings)
    inspection.known_keys(mapping, where, _ENTRY, homes=_HOMES)
    inspection.duplicate_keys(mapping, where)
    for key in ("devices", "mig-enabled"):
        if mapping.get(key) is None:
            inspection.error(
                "field-missing",
                f"mig-parted needs the field {key}",
                mapping.at,
                f"add {key}",
                where,
            )
    devices = _devices(mapping.get("devices"), where, inspection)
    filters = _filters(mapping.get("device-filter"), where, inspection)
    enabled = inspection.boolean(mapping.get("mig-enabled"), "mig-enabled")
    layout = _layout(mapping, where, inspection, enabled=enabled)
    unfilled = any(yaml_nodes.is_template(scalar) for scalar in yaml_nodes.scalars(mapping))
    if inspection.has_errors_since(before) or enabled is None or unfilled:
        return None
    return MigEntry(
        devices=devices,
        device_filters=filters,
        mig_enabled=enabled,
        mig_devices=layout,
        at=mapping.at,
        devices_at=_place(mapping, "devices"),
        mig_devices_at=_place(mapping, "mig-devices"),
        filter_at=_place(mapping, "device-filter"),
    )


def _place(mapping: YamlMapping, key: str) -> Position:
    entry = mapping.entry(key)
    return entry.at if entry is not None else mapping.at


def _devices(node: YamlNode | None, where: str, inspection: Inspection) -> tuple[int, ...] | None:
    where = f"{where}.devices"
    if isinstance(node, YamlSequence):
        return tuple(
            index for item in node.items if (index := _index(item, where, inspection)) is not None
        )
    if node is not None and not (isinstance(node, YamlScalar) and node.text == "all"):
        shown = f": {node.text}" if isinstance(node, YamlScalar) else ""
        if not yaml_nodes.is_template(node):
            inspection.error(
                "devices-value",
                f"devices takes all or a list of indices, not this{shown}",
                node.at,
                "write devices: all or devices: [0, 1]",
                where,
            )
    return None


def _index(node: YamlNode, where: str, inspection: Inspection) -> int | None:
    if yaml_nodes.is_template(node):
        return None
    if isinstance(node, YamlScalar) and type(node.value) is int and node.value >= 0:
        return node.value
    shown = f": {node.text}" if isinstance(node, YamlScalar) else ""
    inspection.error(
        "devices-value",
        f"mig-parted selects GPUs by whole-number index only, not by this{shown}",
        node.at,
        "write the NVML index from 0, without quotes; UUIDs and PCI addresses are refused",
        where,
    )
    return None


def _filters(node: YamlNode | None, where: str, inspection: Inspection) -> tuple[str, ...]:
    if node is None:
        return ()
    items = node.items if isinstance(node, YamlSequence) else (node,)
    found = []
    for item in items:
        text = inspection.text(item, f"{where}.device-filter")
        if text is not None and _FILTER.match(text):
            found.append(text)
        elif text is not None:
            inspection.error(
                "device-filter-form",
                f"a device filter is 0xDDDDVVVV or 0xDDDDVVVV:0xSSSSSSSS, not: {text}",
                item.at,
                "write device and vendor id, such as 0x20B510DE",
                f"{where}.device-filter",
            )
    return tuple(found)


def _layout(
    mapping: YamlMapping, where: str, inspection: Inspection, *, enabled: bool | None
) -> Mapping[str, int]:
    where = f"{where}.mig-devices"
    entry = mapping.entry("mig-devices")
    devices = inspection.mapping(entry.value if entry else None, where)
    if devices is None:
        if enabled and (entry is None or isinstance(entry.value, YamlScalar)):
            inspection.error(
                "mig-devices-missing",
                "mig-parted needs mig-devices when mig-enabled is true",
                entry.at if entry else mapping.at,
                "add mig-devices with profiles and counts, or {} for MIG on without instances",
                where,
            )
        return {}
    if enabled is False and devices.entries:
        inspection.error(
            "mig-devices-while-off",
            "mig-parted refuses mig-devices when mig-enabled is false",
            devices.at,
            "remove them, or write mig-enabled: true",
            where,
        )
    inspection.duplicate_keys(devices, where)
    counts = {
        item.key: count
        for item in devices.last_entries()
        if (count := _count(item.key, item.value, item.at, where, inspection)) is not None
    }
    if counts and not any(counts.values()):
        inspection.error(
            "counts-all-zero",
            "mig-parted refuses a layout whose counts are all 0",
            devices.at,
            "write {} for MIG on without instances",
            where,
        )
    return {name: count for name, count in counts.items() if count}


def _count(
    profile: str, node: YamlNode, at: Position, where: str, inspection: Inspection
) -> int | None:
    where = f"{where}.{profile}"
    if yaml_nodes.is_template(YamlScalar(text=profile, value=profile, at=at)):
        inspection.error(
            "unexpanded-variable",
            f"unexpanded variable: {profile}",
            at,
            "check the output of the tool that fills it in, or write the value",
            where,
        )
        return None
    if not mig_layouts.is_profile_name(profile):
        _bad_profile(profile, at, where, inspection)
        return None
    count = inspection.integer(node, where)
    if count is not None and count < 0:
        inspection.error(
            "count-negative",
            f"a count cannot be negative: {count}",
            node.at,
            "write 0 or more",
            where,
        )
        return None
    if count is None and isinstance(node, YamlScalar) and node.value is None:
        inspection.error("count-missing", f"no count for {profile}", at, "write a number", where)
    return count


def _bad_profile(profile: str, at: Position, where: str, inspection: Inspection) -> None:
    guess = profile.strip().lower().replace("mig-", "").replace(".me", "+me").replace("gib", "gb")
    hint = "write <compute>g.<memory>gb, such as 1g.10gb or 1g.10gb+me"
    if mig_layouts.is_profile_name(guess):
        hint = f"did you mean {guess}? {hint}"
    inspection.error("profile-form", f"not a MIG profile name: {profile}", at, hint, where)
