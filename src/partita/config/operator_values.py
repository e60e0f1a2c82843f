"""The parts of NVIDIA's Helm values that concern sharing and MIG.

GPU operator: ``devicePlugin.config``, ``migManager.config``, ``mig.strategy``. Device-plugin chart:
``config.map``, ``config.default``, ``migStrategy``. Everything else in a values file is none of our
business and is passed over. Source: NVIDIA/gpu-operator v26.7.0 and k8s-device-plugin v0.20.0.
"""

from collections.abc import Mapping, Sequence

from partita.config import config_map, device_plugin, mig_parted, yaml_nodes, yaml_text
from partita.config.config_map import Configs
from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.inspection import Decoded, Inspection, nearest, sorted_findings
from partita.config.mig_parted import NamedMigConfig
from partita.config.yaml_nodes import YamlMapping, YamlNode, YamlScalar

__all__ = ["decode", "encode", "looks_like", "read"]

_OPERATOR_SECTION = ("name", "create", "default", "data")
_ALL_DISABLED = "all-disabled"  # the only default that the operator takes, but for none
_ROOT = ("devicePlugin", "migManager", "mig", "migStrategy", "config")
_LIKELY_SLIP = 0.85  # how alike a key must be: the charts have hundreds of others
_CHART_SECTION = ("name", "map", "default", "fallbackStrategies")


def decode(text: str, path: str) -> Decoded[Configs]:
    """Read a values file of the GPU operator or of the device-plugin chart.

    Raises:
        InputError: When the text is not YAML.
    """
    inspection = Inspection(path=path)
    values = [
        read(document, text, inspection)
        for document in yaml_nodes.compose(text, path)
        if isinstance(document, YamlMapping)
    ]
    return Decoded(values=tuple(values), findings=sorted_findings(inspection.findings))


def looks_like(node: YamlNode) -> bool:
    """Tell whether a document is a values file of one of the two charts."""
    if not isinstance(node, YamlMapping) or "kind" in node.keys:
        return False
    config = node.get("config")
    chart = isinstance(config, YamlMapping) and bool({"map", "default"} & set(config.keys))
    operator = {"devicePlugin", "migManager", "dcgmExporter"} & set(node.keys)
    mig = node.get("mig")
    strategy = isinstance(mig, YamlMapping) and any(nearest(key, ["strategy"]) for key in mig.keys)
    return bool(operator) or chart or strategy


def read(root: YamlMapping, source: str, inspection: Inspection) -> Configs:
    """Read the configs of a values file, noting into an inspection."""
    found = Configs()
    for path in (("devicePlugin", "config"), ("migManager", "config"), ("config",)):
        section = _descend(root, path)
        if section is not None:
            found += _section(section, ".".join(path), source, inspection)
    _strategy(root, inspection)
    _misspelt(root, "", _ROOT, inspection)
    for key in ("devicePlugin", "migManager"):
        section = _descend(root, (key,))
        if section is not None:
            _misspelt(section, key, ("config",), inspection)
    return found


def encode(
    plugin: Sequence[DevicePluginConfig],
    mig: Sequence[NamedMigConfig],
    default: str | None = None,
) -> Mapping[str, object]:
    """Return operator values that create the ConfigMaps of some configurations."""
    document: dict[str, object] = {}
    if mig:
        document["mig"] = {"strategy": MigStrategy.MIXED.value}
        names = [config.name for config in mig]
        document["migManager"] = {
            "config": {
                "name": "partita-mig-parted-config",
                "create": True,
                "default": _ALL_DISABLED if _ALL_DISABLED in names else "",
                "data": {"config.yaml": yaml_text.dump(mig_parted.encode(mig))},
            }
        }
    if plugin:
        data = {
            config.name or f"config-{number}": yaml_text.dump(device_plugin.encode(config))
            for number, config in enumerate(plugin)
        }
        section: dict[str, object] = {"name": "partita-device-plugin-config", "create": True}
        section["default"] = default or ""
        document["devicePlugin"] = {"config": {**section, "data": data}}
    return document


def _descend(root: YamlMapping, path: Sequence[str]) -> YamlMapping | None:
    node: YamlNode | None = root
    for key in path:
        node = node.get(key) if isinstance(node, YamlMapping) else None
    return node if isinstance(node, YamlMapping) else None


def _section(section: YamlMapping, where: str, source: str, inspection: Inspection) -> Configs:
    known = _CHART_SECTION if where == "config" else _OPERATOR_SECTION
    _dropped(section, where, known, inspection)
    inspection.duplicate_keys(section, where)
    inspection.templates(section)
    key = "map" if where == "config" else "data"
    data = inspection.mapping(section.get(key), f"{where}.{key}")
    default = _default(section)
    if data is None or not data.entries:
        return Configs(default=default)
    found = config_map.read_data(data, source, inspection.inside(f"{where}.{key}"))
    found += Configs(default=default if found.plugin else None)
    if found.plugin:
        config_map.check_default(data, found, default, inspection)
    names = [config.name for config in found.mig] if where == "migManager.config" else data.keys
    _default_exists(section, names, where, inspection)
    _created(section, where, inspection)
    return found


def _dropped(
    section: YamlMapping, where: str, known: Sequence[str], inspection: Inspection
) -> None:
    def note(rule: str, at: yaml_nodes.Position, message: str, hint: str) -> None:
        inspection.warning(rule, f"{message}, it is silently dropped", at, hint, where)

    inspection.known_keys(section, where, known, note)


def _misspelt(
    section: YamlMapping, where: str, known: Sequence[str], inspection: Inspection
) -> None:
    """Note keys that are nearly those that are read here; the charts have many more."""
    for entry in section.entries:
        near = nearest(entry.key, known, cutoff=_LIKELY_SLIP)
        if near is None or entry.key in known or near in section.keys:
            continue
        path = f"{where}.{entry.key}" if where else entry.key
        inspection.warning(
            "unknown-key",
            f"neither chart has this key, it is silently dropped: {path}",
            entry.at,
            f"did you mean {near}?",
            where,
        )


def _default(section: YamlMapping) -> str | None:
    node = section.get("default")
    return node.text or None if isinstance(node, YamlScalar) else None


def _default_exists(
    section: YamlMapping, names: Sequence[str], where: str, inspection: Inspection
) -> None:
    node = section.get("default")
    if (
        not isinstance(node, YamlScalar)
        or not names
        or node.text in ("", *names)
        or yaml_nodes.is_template(node)
    ):
        return
    close = nearest(node.text, names)
    guess = f"did you mean {close}? " if close else ""
    inspection.error(
        "default-missing",
        f"the default names no config of the data: {node.text}",
        node.at,
        f"{guess}there is {', '.join(names[:12])}",
        f"{where}.default",
    )


def _created(section: YamlMapping, where: str, inspection: Inspection) -> None:
    create = section.get("create")
    off = isinstance(create, YamlScalar) and create.value is False
    if where != "config" and (create is None or off):
        inspection.warning(
            "data-without-create",
            f"the chart makes a ConfigMap of this data only when create is true: {where}.create",
            create.at if create else section.at,
            "write create: true",
            f"{where}.create",
        )


def _strategy(root: YamlMapping, inspection: Inspection) -> None:
    mig = _descend(root, ("mig",))
    if mig is not None:
        inspection.templates(mig)
        _dropped(mig, "mig", ("strategy",), inspection)
        inspection.choice(mig.get("strategy"), "mig.strategy", MigStrategy, "mig-strategy")
    chart = root.get("migStrategy")
    if chart is not None:
        inspection.choice(chart, "migStrategy", MigStrategy, "mig-strategy")
