"""Kubernetes objects around NVIDIA's configs: ConfigMaps whose values are texts.

Each key of a device-plugin ConfigMap is a named config that the label
``nvidia.com/device-plugin.config`` selects; a mig-parted ConfigMap has the one key ``config.yaml``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from partita.config import device_plugin, mig_parted, mig_rules, sharing_rules, yaml_nodes
from partita.config.device_plugin import DevicePluginConfig
from partita.config.inspection import Inspection
from partita.config.mig_parted import NamedMigConfig
from partita.config.yaml_nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar
from partita.errors import InputError

__all__ = [
    "Configs",
    "check_default",
    "is_config_map",
    "looks_like",
    "read",
    "read_data",
    "read_document",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configs:
    """NVIDIA configurations of a document.

    Attributes:
        plugin: Device-plugin configurations.
        mig: mig-parted configurations.
        default: Name of the plugin config for nodes without the label, None when not set.
    """

    plugin: tuple[DevicePluginConfig, ...] = ()
    mig: tuple[NamedMigConfig, ...] = ()
    default: str | None = None

    def __add__(self, other: "Configs") -> "Configs":
        """Return both together."""
        return Configs(
            plugin=self.plugin + other.plugin,
            mig=self.mig + other.mig,
            default=self.default or other.default,
        )


def is_config_map(node: YamlNode) -> bool:
    """Tell whether a document is a ConfigMap."""
    kind = node.get("kind") if isinstance(node, YamlMapping) else None
    return isinstance(kind, YamlScalar) and kind.text == "ConfigMap"


def looks_like(node: YamlNode, source: str, path: str) -> bool:
    """Tell whether a ConfigMap holds a config of NVIDIA's, or a text that cannot be read."""
    data = node.get("data") if isinstance(node, YamlMapping) and is_config_map(node) else None
    if not isinstance(data, YamlMapping):
        return False
    for entry in data.entries:
        if not isinstance(entry.value, YamlScalar):
            continue
        try:
            inner = yaml_nodes.compose_embedded(entry.value, source, path)
        except InputError:
            return True
        if any(device_plugin.looks_like(one) or mig_parted.looks_like(one) for one in inner):
            return True
    return False


def read(root: YamlMapping, source: str, inspection: Inspection) -> Configs:
    """Read the configs of a ConfigMap, noting into an inspection."""
    inspection.duplicate_keys(root, "")
    inspection.templates(root)
    data = inspection.mapping(root.get("data"), "data")
    if data is None:
        return Configs()
    found = read_data(data, source, inspection.inside("data"))
    check_default(data, found, None, inspection)
    return found


def read_data(data: YamlMapping, source: str, inspection: Inspection) -> Configs:
    """Read name → text pairs, of a ConfigMap or of Helm values."""
    found = Configs()
    for entry in data.duplicates():
        inspection.warning(
            "duplicate-config",
            f"config name stands twice, the last one counts: {entry.key}",
            entry.at,
            "rename or remove one; strict readers refuse the file",
            entry.key,
        )
    for entry in data.last_entries():
        for document in _documents(entry, source, inspection):
            if _is_config(document):
                found += read_document(document, entry, inspection)
            else:
                _not_a_config(document, entry, inspection)
    return found


def check_default(
    data: YamlMapping, found: Configs, default: str | None, inspection: Inspection
) -> None:
    """Note what nodes without the label get when no default is set."""
    names = [config.name for config in found.plugin if config.name]
    if len(names) > 1 and default is None and "default" not in names:
        inspection.info(
            "no-default",
            "nodes without the label nvidia.com/device-plugin.config get none of these configs",
            data.at,
            "set devicePlugin.config.default in the operator's values to one of them",
            "data",
        )


def read_document(document: YamlNode, entry: YamlEntry | None, inspection: Inspection) -> Configs:
    """Read one configuration, check it, and note under the name of its key."""
    if not isinstance(document, YamlMapping) or not _is_config(document):
        return Configs()
    inner = inspection.inside(entry.key) if entry else inspection
    if mig_parted.looks_like(document):
        configs = mig_parted.read(document, inner)
        mig_rules.check(configs, inner)
        return Configs(mig=configs)
    before = len(inner.findings)
    config = device_plugin.read(document, entry.key if entry else None, inner)
    if entry is not None:
        inspection.label_value(entry.key, entry.at)
    sharing_rules.check(config, inner, refused=inner.has_errors_since(before))
    return Configs(plugin=(config,))


def _is_config(document: YamlNode) -> bool:
    return mig_parted.looks_like(document) or device_plugin.looks_like(document)


def _not_a_config(document: YamlNode, entry: YamlEntry, inspection: Inspection) -> None:
    """Note an entry that configures nothing: the plugin refuses a text, and drops other keys."""
    refused = not isinstance(document, YamlMapping)
    note = inspection.error if refused else inspection.warning
    note(
        "not-a-config",
        f"this entry is no config of the device plugin or of mig-parted: {entry.key}",
        document.at,
        "write a config that begins with version: v1, or remove the entry",
        entry.key,
    )


def _documents(entry: YamlEntry, source: str, inspection: Inspection) -> Sequence[YamlNode]:
    value = entry.value
    if isinstance(value, YamlMapping):
        inspection.error(
            "data-not-text",
            f"Kubernetes takes texts only in data, this is a mapping: {entry.key}",
            value.at,
            f"write `{entry.key}: |-` and indent the config below it",
            entry.key,
        )
        return (value,)
    if not isinstance(value, YamlScalar):
        return ()
    try:
        return yaml_nodes.compose_embedded(value, source, inspection.path)
    except InputError as error:
        at = yaml_nodes.Position(line=error.line or value.at.line, column=error.column or 1)
        inspection.error("not-yaml", error.message, at, error.hint, entry.key)
        return ()
