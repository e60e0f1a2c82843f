"""Whether configs suit the boards of a given node.

The config that the node's label selects is what will be applied: trouble with it is an error. Other
configs of the file are for other nodes, maybe, and are passed over; without a label all are tried.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from partita.catalog.gpu_model import GpuModel
from partita.config import mig_layouts, node_facts
from partita.config.config_map import Configs
from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.inspection import Inspection, nearest
from partita.config.mig_parted import MigEntry, NamedMigConfig
from partita.config.node_facts import NodeFacts
from partita.config.sharing_rules import MPS_CLIENTS, MPS_CLIENTS_BEFORE_TURING
from partita.config.sharing_section import SharedEntry, SharingKind
from partita.config.yaml_nodes import Position
from partita.model import resource

__all__ = ["check"]

_Note = Callable[[str, str, Position | None, str, str], None]
_TURING = (7, 5)  # compute capability from which the plugin allows 48 MPS clients


def check(facts: NodeFacts, configs: Configs, inspection: Inspection) -> None:
    """Note labels that name no config, and configs that the boards cannot carry out.

    The former is about the node's file. The latter is about the config's: it is noted at its place
    there, and every message names the node and its board.
    """
    mig = _selected_mig(facts, configs.mig, inspection)
    for config in mig:
        _mig_config(facts, config, _at(config, facts, inspection), alone=len(mig) == 1)
    plugin = _selected_plugin(facts, configs, inspection)
    for named in plugin:
        _plugin_config(facts, named, _at(named, facts, inspection))


def _at(
    config: NamedMigConfig | DevicePluginConfig, facts: NodeFacts, inspection: Inspection
) -> Inspection:
    """Return an inspection for findings about a config on the node."""
    board = f" ({facts.model.names[0]})" if facts.model else ""
    return replace(
        inspection.inside(config.name or "config"),
        path=config.path or inspection.path,
        subject=f"node {facts.node.name}{board}",
    )


def _selected_mig(
    facts: NodeFacts, configs: Sequence[NamedMigConfig], inspection: Inspection
) -> Sequence[NamedMigConfig]:
    label = facts.node.labels.get(node_facts.MIG_CONFIG)
    if not label or not configs:
        return configs
    names = [config.name for config in configs]
    if label not in names:
        _missing(node_facts.MIG_CONFIG, label, names, inspection)
    return [config for config in configs if config.name == label]


def _selected_plugin(
    facts: NodeFacts, configs: Configs, inspection: Inspection
) -> Sequence[DevicePluginConfig]:
    label = facts.node.labels.get(node_facts.PLUGIN_CONFIG) or configs.default
    names = [config.name for config in configs.plugin if config.name]
    if not label or not names:
        return configs.plugin
    if label not in names and label != configs.default:
        _missing(node_facts.PLUGIN_CONFIG, label, names, inspection)
    return [config for config in configs.plugin if config.name in (None, label)]


def _missing(key: str, label: str, names: Sequence[str], inspection: Inspection) -> None:
    near = nearest(label, names)
    guess = f"did you mean {near}? " if near else ""
    inspection.error(
        "label-without-config",
        f"the label {key} names no config of the file: {label}",
        None,
        f"{guess}there is {', '.join(names[:12])}",
        "labels." + key,
    )


def _mig_config(
    facts: NodeFacts, config: NamedMigConfig, inspection: Inspection, *, alone: bool
) -> None:
    before = len(inspection.findings)
    note = inspection.error if alone else inspection.warning
    for number, entry in enumerate(config.entries):
        if _meant(facts, entry):
            _indices(facts, entry, f"[{number}]", inspection)
            _board(facts, entry, f"[{number}]", note)
    _uncovered(facts, config, inspection)
    _single(facts, config, note)
    if not inspection.has_errors_since(before):
        _mode_change(facts, config, inspection)


def _meant(facts: NodeFacts, entry: MigEntry) -> bool:
    """Tell whether the device filter of an entry lets the node's GPUs through."""
    if not entry.device_filters or facts.model is None:
        return True
    wanted = {text.partition(":")[0].upper() for text in entry.device_filters}
    return not wanted.isdisjoint(pci.upper() for pci in facts.model.pci_devices)


def _indices(facts: NodeFacts, entry: MigEntry, where: str, inspection: Inspection) -> None:
    count = facts.gpu_count
    if count is None:
        return
    beyond = [index for index in entry.devices or () if index >= count]
    if beyond:
        inspection.warning(
            "index-beyond",
            f"there are {count} GPUs and no index {', '.join(map(str, beyond[:8]))}",
            entry.devices_at,
            "the entry does nothing for them; use a config for this number of GPUs",
            where,
        )


def _board(facts: NodeFacts, entry: MigEntry, where: str, note: _Note) -> None:
    model = facts.model
    if not entry.mig_enabled or model is None:
        return
    if model.mig is None:
        note(
            "board-without-mig",
            "the board has no MIG, mig-enabled is true",
            entry.at,
            "use a config with mig-enabled: false; time-slicing or MPS can share them",
            where,
        )
    elif not _profiles_exist(model, entry, where, note):
        return
    elif (reason := mig_layouts.obstacle(model.mig, entry.mig_devices)) is not None:
        near = mig_layouts.nearest_layouts(model.mig, entry.mig_devices)
        note(
            "layout-impossible",
            f"the board cannot hold {mig_layouts.text_of(entry.mig_devices)}: {reason}",
            entry.mig_devices_at,
            "use " + "; or ".join(mig_layouts.text_of(layout) for layout in near),
            where,
        )


def _profiles_exist(model: GpuModel, entry: MigEntry, where: str, note: _Note) -> bool:
    """Tell whether the board has all GPU-instance profiles of an entry; note the first it lacks."""
    known = model.mig.by_name if model.mig else {}
    missing = [name for name in entry.mig_devices if name not in known]
    foreign = [name for name in missing if not _is_compute_part(name)]
    if foreign:
        near = mig_layouts.counterpart(foreign[0], model)
        others = ", ".join(name for name in known if "+" not in name)
        note(
            "profile-not-on-board",
            f"the board has no profile: {foreign[0]}",
            entry.mig_devices_at,
            f"write {near}, its counterpart here" if near else f"it has {others}",
            where,
        )
    return not missing


def _is_compute_part(name: str) -> bool:
    parts = mig_layouts.split_profile(name)
    return bool(parts and parts[0])


def _uncovered(facts: NodeFacts, config: NamedMigConfig, inspection: Inspection) -> None:
    entries = [entry for entry in config.entries if _meant(facts, entry)]
    if facts.gpu_count is None or any(entry.devices is None for entry in entries):
        return
    covered = {index for entry in entries for index in entry.devices or ()}
    left = [index for index in range(min(facts.gpu_count, 256)) if index not in covered]
    if left and config.entries:
        several = "are left as they are" if len(left) > 1 else "is left as it is"
        inspection.warning(
            "gpu-uncovered",
            f"GPU {', '.join(map(str, left))} {several}",
            config.at,
            "list every index of the node, or write devices: all",
        )


def _single(facts: NodeFacts, config: NamedMigConfig, note: _Note) -> None:
    if facts.strategy != MigStrategy.SINGLE.value:
        return
    entries = [entry for entry in config.entries if _meant(facts, entry)]
    profiles = {name for entry in entries for name in entry.mig_devices}
    modes = {entry.mig_enabled for entry in entries}
    partly = facts.gpu_count is not None and not all(
        any(entry.devices is None or index in entry.devices for entry in entries)
        for index in range(min(facts.gpu_count, 256))
    )
    if True in modes and (len(profiles) > 1 or len(modes) > 1 or partly):
        note(
            "single-not-uniform",
            "the single strategy is in use, which needs MIG on with one profile on every GPU",
            config.at,
            "use the mixed strategy, or the same profile on all GPUs; else the node shows "
            "MIG-INVALID",
            "",
        )


def _mode_change(facts: NodeFacts, config: NamedMigConfig, inspection: Inspection) -> None:
    mig = facts.model.mig if facts.model else None
    if mig is None or facts.model is None:
        return
    if not any(entry.mig_enabled for entry in config.entries):
        return
    if mig.mode_change_needs_reset:
        message = "switching MIG on needs a GPU reset on this board, everything on it must stop"
        hint = "the mode survives a reboot, the instances do not"
    else:
        message = "switching MIG on needs no reset on this board"
        hint = "neither mode nor instances survive a reboot, something must apply them at start"
    inspection.info("mode-change", message, config.at, hint)


def _plugin_config(facts: NodeFacts, config: DevicePluginConfig, inspection: Inspection) -> None:
    section = config.sharing
    if section is None:
        return
    for entry in section.entries:
        limit = MPS_CLIENTS_BEFORE_TURING if _before_turing(facts.model) else MPS_CLIENTS
        if section.kind is SharingKind.MPS and entry.replicas > limit and facts.model:
            inspection.error(
                "mps-clients",
                f"the plugin serves at most {limit} MPS clients on this board, "
                f"asked for: {entry.replicas}",
                entry.replicas_at,
                f"write {limit} or fewer",
            )
        _mig_resource(facts, entry, inspection)
    has_mig = facts.slices or facts.single_profile or facts.mig_invalid
    if section.kind is SharingKind.MPS and has_mig:
        inspection.error(
            "mps-with-mig",
            "the plugin refuses MPS on a node with MIG devices",
            section.at,
            "share the MIG resources with timeSlicing, or switch MIG off",
        )


def _mig_resource(facts: NodeFacts, entry: SharedEntry, inspection: Inspection) -> None:
    profile = resource.mig_profile(entry.name)
    model = facts.model
    if profile is None or model is None:
        return
    if model.mig is None:
        message, hint = "the board has no MIG, the entry never matches", "remove it"
    elif profile not in model.mig.by_name:
        near = mig_layouts.counterpart(profile, model)
        message = "the board has no such profile, the entry never matches"
        hint = f"write {resource.mig_resource(near)}" if near else "remove it"
    else:
        return
    inspection.warning("mig-entry-unused", f"{message}: {entry.name}", entry.at, hint)


def _before_turing(model: GpuModel | None) -> bool:
    if model is None:
        return False
    return tuple(int(part) for part in model.compute_capability.split(".")) < _TURING
