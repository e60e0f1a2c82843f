"""``sharing.timeSlicing`` and ``sharing.mps`` of the device plugin's configuration.

Both have the same shape. Source: NVIDIA/k8s-device-plugin v0.20.0, ``api/config/v1/replicas.go``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from partita.config.inspection import Inspection
from partita.config.yaml_nodes import Position, YamlMapping, YamlScalar, YamlSequence
from partita.model import resource

__all__ = [
    "HOMES",
    "SharedEntry",
    "SharingKind",
    "SharingSection",
    "encode",
    "note_dropped_keys",
    "read",
]

_SECTION = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_ENTRY = ("name", "replicas", "rename", "devices")
_MAX_NAME = 63

HOMES: Mapping[str, str] = {
    "renameByDefault": "sharing.timeSlicing",
    "failRequestsGreaterThanOne": "sharing.timeSlicing",
    "replicas": "sharing.timeSlicing.resources[]",
}
"""Where keys of a section belong that stand elsewhere."""


class SharingKind(Enum):
    """The two ways to share; the value is the key in the file."""

    TIME_SLICING = "timeSlicing"
    MPS = "mps"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedEntry:
    """One resource that is served several times over.

    Attributes:
        name: Full resource name.
        replicas: Replicas of each device, 2 or more.
        at: Where its name stands.
        replicas_at: Where its count stands.
    """

    name: str
    replicas: int
    at: Position = field(compare=False)
    replicas_at: Position = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingSection:
    """``sharing.timeSlicing`` or ``sharing.mps``.

    Attributes:
        kind: Which of the two.
        entries: What is shared how often.
        rename_by_default: Whether the suffix ``.shared`` is added.
        fail_requests_greater_than_one: None when unset: false for time-slicing, true for MPS.
        at: Where the section stands.
    """

    kind: SharingKind
    entries: tuple[SharedEntry, ...]
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None
    at: Position = field(compare=False)


def encode(section: SharingSection) -> Mapping[str, object]:
    """Return the section as plain data."""
    document: dict[str, object] = {}
    if section.rename_by_default:
        document["renameByDefault"] = True
    if section.fail_requests_greater_than_one is not None:
        document["failRequestsGreaterThanOne"] = section.fail_requests_greater_than_one
    document["resources"] = [
        {"name": entry.name, "replicas": entry.replicas} for entry in section.entries
    ]
    return document


def note_dropped_keys(
    mapping: YamlMapping,
    where: str,
    known: tuple[str, ...],
    inspection: Inspection,
    homes: Mapping[str, str],
) -> None:
    """Note dropped keys as warnings: this reader drops them without a word."""

    def note(rule: str, at: Position, message: str, hint: str) -> None:
        inspection.warning(rule, f"{message}, it is silently dropped", at, hint, where)

    inspection.known_keys(mapping, where, known, note, homes)
    inspection.duplicate_keys(mapping, where)


def read(
    sharing: YamlMapping | None, kind: SharingKind, inspection: Inspection
) -> SharingSection | None:
    """Read a section; None when there is none or nothing of it is usable."""
    where = f"sharing.{kind.value}"
    mapping = inspection.mapping(sharing.get(kind.value) if sharing else None, where)
    if mapping is None:
        return None
    homes = dict.fromkeys(_SECTION, where) | {"replicas": f"{where}.resources[]"}
    note_dropped_keys(mapping, where, _SECTION, inspection, homes)
    entries = _entries(mapping, where, inspection)
    if not entries:
        return None
    fail = "failRequestsGreaterThanOne"
    return SharingSection(
        kind=kind,
        entries=entries,
        rename_by_default=bool(
            inspection.boolean(mapping.get("renameByDefault"), f"{where}.renameByDefault")
        ),
        fail_requests_greater_than_one=inspection.boolean(mapping.get(fail), f"{where}.{fail}"),
        at=mapping.at,
    )


def _entries(mapping: YamlMapping, where: str, inspection: Inspection) -> tuple[SharedEntry, ...]:
    where = f"{where}.resources"
    node = mapping.get("resources")
    items = inspection.sequence(node, where)
    if not items and (node is None or isinstance(node, YamlSequence | YamlScalar)):
        if items is not None or node is None or (isinstance(node, YamlScalar) and not node.text):
            inspection.error(
                "no-resources",
                "the plugin refuses a sharing section without resources",
                node.at if node else mapping.at,
                "list at least `- name: nvidia.com/gpu` with replicas, or remove the section",
                where,
            )
        return ()
    found = []
    for number, item in enumerate(items or ()):
        inner = inspection.mapping(item, f"{where}[{number}]")
        entry = _entry(inner, f"{where}[{number}]", inspection) if inner else None
        if entry is not None:
            found.append(entry)
    return tuple(found)


def _entry(mapping: YamlMapping, where: str, inspection: Inspection) -> SharedEntry | None:
    note_dropped_keys(mapping, where, _ENTRY, inspection, HOMES)
    _dropped_selection(mapping, where, inspection)
    name_node, replicas_node = mapping.get("name"), mapping.get("replicas")
    name = _name(mapping, where, inspection)
    replicas = _replicas(mapping, where, inspection)
    if name is None or replicas is None or name_node is None or replicas_node is None:
        return None
    return SharedEntry(name=name, replicas=replicas, at=name_node.at, replicas_at=replicas_node.at)


def _dropped_selection(mapping: YamlMapping, where: str, inspection: Inspection) -> None:
    rename, devices = mapping.entry("rename"), mapping.entry("devices")
    if rename is not None:
        inspection.warning(
            "rename-ignored",
            "the plugin reads a name in rename and throws it away",
            rename.at,
            "remove it; only renameByDefault with the suffix .shared works",
            f"{where}.rename",
        )
    if devices is None or (isinstance(devices.value, YamlScalar) and devices.value.text == "all"):
        return
    if isinstance(devices.value, YamlScalar) and isinstance(devices.value.value, str):
        inspection.error(
            "devices-value",
            f"the only text that devices takes is all, not: {devices.value.text}",
            devices.value.at,
            "remove devices; sharing is for every GPU of the node",
            f"{where}.devices",
        )
        return
    inspection.warning(
        "devices-ignored",
        "the plugin reads a choice in devices and throws it away, every GPU is shared",
        devices.at,
        "remove it; to share some GPUs only, use nodes with different configs",
        f"{where}.devices",
    )


def _name(mapping: YamlMapping, where: str, inspection: Inspection) -> str | None:
    node = mapping.get("name")
    text = inspection.text(node, f"{where}.name")
    if node is None or text == "" or (isinstance(node, YamlScalar) and node.value is None):
        at = node.at if node else mapping.at
        inspection.error(
            "name-missing", "a shared resource needs a name", at, "add name: nvidia.com/gpu", where
        )
        return None
    if text is None:
        return None
    name = text if text.startswith(resource.DOMAIN) else resource.DOMAIN + text
    if len(name) > _MAX_NAME:
        inspection.error(
            "name-too-long",
            f"a resource name has at most {_MAX_NAME} characters, this one: {len(name)}",
            node.at,
            "use a name of the plugin, such as nvidia.com/gpu",
            where,
        )
        return None
    return name


def _replicas(mapping: YamlMapping, where: str, inspection: Inspection) -> int | None:
    node = mapping.get("replicas")
    where = f"{where}.replicas"
    if node is None:
        inspection.error(
            "replicas-missing",
            "a shared resource needs replicas",
            mapping.at,
            "add replicas: 2",
            where,
        )
        return None
    replicas = inspection.integer(node, where)
    if replicas is None and isinstance(node, YamlScalar) and node.value is None:
        inspection.error("replicas-missing", "replicas is empty", node.at, "write 2 or more", where)
    if replicas is not None and replicas < 2:  # noqa: PLR2004 - the reader's own minimum
        inspection.error(
            "replicas-too-few",
            f"the plugin and GPU feature discovery refuse fewer than 2 replicas: {replicas}",
            node.at,
            "write 2 or more; to stop sharing, remove the section or label the node for a config "
            "without it",
            where,
        )
        return None
    return replicas
