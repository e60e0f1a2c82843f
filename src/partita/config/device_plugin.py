"""NVIDIA's device-plugin configuration, ``version: v1``: read as its reader reads it, and written.

The plugin drops unknown and misplaced keys under ``flags`` and at the top without a word; here they
are warnings that say where the key belongs. What it refuses is an error, and the refused part is
left out of the value. Its decoder takes the keys of plain structures in any letter case, those of
a sharing section as written only. Source: NVIDIA/k8s-device-plugin v0.20.0, ``api/config/v1``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from partita.config import plugin_flags, serving_options, sharing_section, yaml_nodes
from partita.config.inspection import Decoded, Inspection, kind_of, sorted_findings
from partita.config.serving_options import ServingOptions
from partita.config.sharing_section import SharingKind, SharingSection
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode, YamlScalar

__all__ = [
    "DevicePluginConfig",
    "MigStrategy",
    "decode",
    "encode",
    "looks_like",
    "read",
]

_TOP = ("version", "flags", "resources", "sharing", "imex")
_SHARING = ("timeSlicing", "mps")
_HOMES: dict[str, str] = {
    **dict.fromkeys(_TOP, ""),
    **plugin_flags.HOMES,
    **dict.fromkeys(_SHARING, "sharing"),
    **sharing_section.HOMES,
}


class MigStrategy(Enum):
    """How the plugin names MIG devices."""

    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginConfig:
    """One configuration of the device plugin.

    Attributes:
        name: Its key in a ConfigMap, None for a file of its own.
        mig_strategy: None when unset, which is ``none`` or what the command line says.
        time_slicing: The time-slicing section.
        mps: The MPS section.
        other_flags: Dotted names of everything else that is set: it has no counterpart in a policy.
        serving: What the flags say of how containers get devices, and defaults; not written by
            ``encode``.
        path: File that it is from.
        at: Where it starts.
    """

    name: str | None = None
    mig_strategy: MigStrategy | None = None
    time_slicing: SharingSection | None = None
    mps: SharingSection | None = None
    other_flags: tuple[str, ...] = ()
    serving: ServingOptions = ServingOptions()  # noqa: RUF009 - frozen
    path: str = field(compare=False, default="")
    at: Position = field(compare=False, default=Position(line=1, column=1))

    @property
    def sharing(self) -> SharingSection | None:
        """The section that counts: MPS wins when both are set."""
        return self.mps or self.time_slicing


def decode(text: str, path: str) -> Decoded[DevicePluginConfig]:
    """Read a configuration file of the device plugin.

    Raises:
        InputError: When the text is not YAML.
    """
    inspection = Inspection(path=path)
    values = [
        read(document, None, inspection)
        for document in yaml_nodes.compose(text, path)
        if isinstance(document, YamlMapping)
    ]
    return Decoded(values=tuple(values), findings=sorted_findings(inspection.findings))


def looks_like(node: YamlNode) -> bool:
    """Tell whether a document is a device-plugin configuration rather than something else."""
    return isinstance(node, YamlMapping) and (
        bool({"flags", "sharing", "imex"} & {key.lower() for key in node.keys})
        or node.keys == ("version",)
        or (bool({"timeSlicing", "mps"} & set(node.keys)) and "kind" not in node.keys)
    )


def read(root: YamlMapping, name: str | None, inspection: Inspection) -> DevicePluginConfig:
    """Read one configuration that is composed already, noting into an inspection."""
    inspection.templates(root)
    root = inspection.fold_case(root, "", _TOP)
    sharing_section.note_dropped_keys(root, "", _TOP, inspection, _HOMES)
    _version(root, inspection)
    _dropped_resources(root, inspection)
    flags = inspection.mapping(root.get("flags"), "flags")
    if flags is not None:
        flags = inspection.fold_case(flags, "flags", plugin_flags.FLAGS)
    sharing = inspection.mapping(root.get("sharing"), "sharing")
    if sharing is not None:
        sharing = inspection.fold_case(sharing, "sharing", _SHARING)
        sharing_section.note_dropped_keys(sharing, "sharing", _SHARING, inspection, _HOMES)
    return DevicePluginConfig(
        name=name,
        mig_strategy=_mig_strategy(flags, inspection),
        time_slicing=sharing_section.read(sharing, SharingKind.TIME_SLICING, inspection),
        mps=sharing_section.read(sharing, SharingKind.MPS, inspection),
        other_flags=plugin_flags.read(flags, _HOMES, inspection)
        + plugin_flags.read_imex(root.get("imex"), _HOMES, inspection),
        serving=serving_options.read(flags),
        path=inspection.path,
        at=root.at,
    )


def encode(config: DevicePluginConfig) -> Mapping[str, object]:
    """Return the document of a configuration, ready to be written as YAML or JSON."""
    document: dict[str, object] = {"version": "v1"}
    if config.mig_strategy is not None:
        document["flags"] = {"migStrategy": config.mig_strategy.value}
    sharing = {
        section.kind.value: sharing_section.encode(section)
        for section in (config.time_slicing, config.mps)
        if section is not None
    }
    if sharing:
        document["sharing"] = sharing
    return document


def _version(root: YamlMapping, inspection: Inspection) -> None:
    node = root.get("version")
    if node is None:
        inspection.info(
            "version-missing", "no version, it is taken as v1", root.at, "add version: v1"
        )
        return
    if yaml_nodes.is_template(node):
        return
    if not isinstance(node, YamlScalar) or node.value not in (None, "", "v1"):
        shown = node.text if isinstance(node, YamlScalar) else kind_of(node)
        inspection.error(
            "unknown-version",
            f"the plugin knows only v1, not: {shown}",
            node.at,
            "write version: v1",
        )


def _dropped_resources(root: YamlMapping, inspection: Inspection) -> None:
    entry = root.entry("resources")
    if entry is not None and not (isinstance(entry.value, YamlScalar) and not entry.value.text):
        inspection.warning(
            "resources-ignored",
            "the plugin reads the naming rules in resources and throws them away",
            entry.at,
            "remove them; the names are nvidia.com/gpu and nvidia.com/mig-<profile>",
            "resources",
        )


def _mig_strategy(flags: YamlMapping | None, inspection: Inspection) -> MigStrategy | None:
    node = flags.get("migStrategy") if flags else None
    if isinstance(node, YamlScalar) and node.text == "":
        return None
    return inspection.choice(node, "flags.migStrategy", MigStrategy, "mig-strategy")
