"""What a mig-parted configuration can do on real boards, as far as the file alone tells.

The boards are not known here, so a layout is wrong only when no board of the catalogue can hold it.
``config.node_checks`` asks again when the board is known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.config import mig_layouts
from partita.config.inspection import Inspection
from partita.config.mig_parted import MigEntry, NamedMigConfig
from partita.model import resource

__all__ = ["check", "filtered_models", "resources_of"]

_DISPLAY_CARDS = {"0X1FB010DE": "DGX Display"}  # mig-parted's example for DGX Station A100 has it
_SHOWN_BOARDS = 5
_FORM_FACTOR = re.compile(r"-(sxm\d|pcie|nvl)(?=-|$)")
_SHOWN_INDICES = 8
_HIGHEST_INDEX = 255  # a mistyped index is not worth a list of thousands


def check(configs: Sequence[NamedMigConfig], inspection: Inspection) -> None:
    """Note layouts that no board can hold, GPUs left out, and what the nodes will offer."""
    highest = max((max(e.devices) for e in _entries(configs) if e.devices), default=None)
    for config in configs:
        inner = inspection.inside(config.name)
        for number, entry in enumerate(config.entries):
            _entry(entry, f"[{number}]", inner)
        _overlaps(config, inner)
        left = _uncovered(config, highest)
        _note_uncovered(config, left, inner)
        _uniform(config, inner, partly=bool(left))
    _meets_display_card(configs, inspection)


def filtered_models(entry: MigEntry) -> tuple[GpuModel, ...]:
    """Return the catalogue models that the device filter of an entry names."""
    found = (library.find(text.partition(":")[0]) for text in entry.device_filters)
    return tuple({model.id: model for model in found if model is not None}.values())


def resources_of(layout: Mapping[str, int]) -> Mapping[str, int]:
    """Return resource names and counts per GPU under the mixed strategy.

    Instances that are split further (``1c.3g.20gb``) get no resource from the device plugin.
    """
    return {
        resource.mig_resource(name): count
        for name, count in layout.items()
        if not _compute_part(name)
    }


def _entries(configs: Sequence[NamedMigConfig]) -> Iterator[MigEntry]:
    for config in configs:
        yield from config.entries


def _compute_part(name: str) -> str:
    parts = mig_layouts.split_profile(name)
    return parts[0] if parts else ""


def _entry(entry: MigEntry, where: str, inspection: Inspection) -> None:
    if entry.devices == ():
        inspection.warning(
            "no-devices",
            "the device list is empty, the entry does nothing",
            entry.devices_at,
            "list indices, or write devices: all",
            where,
        )
    _repeated_indices(entry, where, inspection)
    _filter(entry, where, inspection)
    if not entry.mig_enabled:
        return
    if not entry.mig_devices:
        inspection.info(
            "mig-on-empty",
            "MIG on without instances: these GPUs offer nothing to pods",
            entry.mig_devices_at,
            "list profiles in mig-devices, or write mig-enabled: false",
            where,
        )
        return
    before = len(inspection.findings)
    _compute_instances(entry, where, inspection)
    boards = _boards(entry, where, inspection)
    if not inspection.has_errors_since(before):
        offered = [f"{name} x{count}" for name, count in resources_of(entry.mig_devices).items()]
        inspection.info(
            "result",
            "each GPU offers under the mixed strategy " + (", ".join(offered) or "nothing"),
            entry.mig_devices_at,
            f"fits: {_board_list(boards)}" if boards else None,
            where,
        )


def _repeated_indices(entry: MigEntry, where: str, inspection: Inspection) -> None:
    devices = entry.devices or ()
    twice = sorted({index for index in devices if devices.count(index) > 1})
    if twice:
        inspection.info(
            "index-repeated",
            f"an index stands twice in one list: {twice[0]}",
            entry.devices_at,
            "remove one",
            where,
        )


def _filter(entry: MigEntry, where: str, inspection: Inspection) -> None:
    for text in entry.device_filters:
        pci = text.partition(":")[0]
        model = library.find(pci)
        display = _DISPLAY_CARDS.get(pci.upper())
        if entry.mig_enabled and (display or (model is not None and model.mig is None)):
            name = display or (model.names[0] if model else pci)
            inspection.error(
                "board-without-mig",
                f"the board of the device filter has no MIG: {name}",
                entry.filter_at,
                "write mig-enabled: false for it, or filter the boards that have MIG",
                where,
            )
        elif model is None and display is None:
            inspection.info(
                "filter-unknown",
                f"no GPU of the catalogue has this PCI id: {pci}",
                entry.filter_at,
                "check it with `lspci -nn -d 10de:`; the layout is checked against all boards",
                where,
            )


def _compute_instances(entry: MigEntry, where: str, inspection: Inspection) -> None:
    for name in entry.mig_devices:
        if _compute_part(name):
            inspection.warning(
                "no-resource",
                f"the device plugin gives no resource to part of a GPU instance: {name}",
                entry.mig_devices_at,
                f"write {name.partition('.')[2]} for pods to be able to ask for it",
                where,
            )


def _boards(entry: MigEntry, where: str, inspection: Inspection) -> Sequence[GpuModel]:
    """Return the boards that can hold the layout of an entry; note why when there are none."""
    layout = _instances(entry.mig_devices)
    if layout is None:
        return ()
    models = [model for model in filtered_models(entry) if model.mig is not None]
    candidates = models or list(mig_layouts.boards_with(tuple(layout)))
    if not candidates or not any(_has_all(model, layout) for model in candidates):
        _no_such_profiles(entry, layout, models, where, inspection)
        return ()
    having = [model for model in candidates if _has_all(model, layout)]
    holding = [model for model in having if model.mig and mig_layouts.fits(model.mig, layout)]
    if not holding:
        _not_placeable(entry, layout, having[0], where, inspection)
    return holding


def _instances(layout: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return the counts of GPU instances, None when some are split: their number is unclear."""
    if any(_compute_part(name) for name in layout):
        return None
    return layout


def _has_all(model: GpuModel, layout: Mapping[str, int]) -> bool:
    return model.mig is not None and all(name in model.mig.by_name for name in layout)


def _no_such_profiles(
    entry: MigEntry,
    layout: Mapping[str, int],
    models: Sequence[GpuModel],
    where: str,
    inspection: Inspection,
) -> None:
    if models and models[0].mig:
        board = models[0]
        missing = next(name for name in layout if name not in models[0].mig.by_name)
        near = mig_layouts.counterpart(missing, board)
        hint = f"write {near}" if near else "it has " + _profile_list(models[0].mig)
        message = f"{board.names[0]} has no profile: {missing}"
        inspection.error("profile-not-on-board", message, entry.mig_devices_at, hint, where)
        return
    orphans = [name for name in layout if not mig_layouts.boards_with([name])]
    if orphans:
        message = f"no board of the catalogue has this profile: {orphans[0]}"
        hint = _similar_profiles(orphans[0])
        inspection.error("profile-unknown", message, entry.mig_devices_at, hint, where)
        return
    homes = "; ".join(
        f"{name} is on {_board_list(mig_layouts.boards_with([name]))}" for name in layout
    )
    message = f"no single board has all of these profiles: {', '.join(layout)}"
    inspection.error("profiles-of-two-boards", message, entry.mig_devices_at, homes, where)


def _similar_profiles(name: str) -> str:
    compute = name.partition(".")[0] + "."
    known = dict.fromkeys(
        profile.name
        for model in library.models()
        if model.mig
        for profile in model.mig.profiles
        if profile.name.startswith(compute) and not mig_layouts.profile_attributes(profile.name)
    )
    if not known:
        return "`partita gpus` lists the profiles of every board"
    return f"profiles that begin with {compute[:-1]}: {', '.join(known)}"


def _not_placeable(
    entry: MigEntry,
    layout: Mapping[str, int],
    board: GpuModel,
    where: str,
    inspection: Inspection,
) -> None:
    mig = board.mig
    if mig is None:
        return
    reason = mig_layouts.obstacle(mig, layout)
    near = "; or ".join(mig_layouts.text_of(n) for n in mig_layouts.nearest_layouts(mig, layout))
    message = f"no board can hold {mig_layouts.text_of(layout)}: {reason}"
    inspection.error("layout-impossible", message, entry.mig_devices_at, f"use {near}", where)


def _profile_list(mig: MigCapability) -> str:
    return ", ".join(profile.name for profile in mig.profiles)


def _board_list(models: Sequence[GpuModel]) -> str:
    """Return boards in words, form factors aside: ``A100 80GB, H100 80GB``."""
    names = dict.fromkeys(_FORM_FACTOR.sub("", model.id).replace("-", " ") for model in models)
    shown = [name.upper() for name in names]
    more = len(shown) - _SHOWN_BOARDS
    return ", ".join(shown[:_SHOWN_BOARDS]) + (f" and {more} more" if more > 0 else "")


def _overlaps(config: NamedMigConfig, inspection: Inspection) -> None:
    for number, later in enumerate(config.entries):
        for earlier in config.entries[:number]:
            shared = _common(earlier, later)
            if shared is not None and not _same_outcome(earlier, later):
                inspection.warning(
                    "devices-overlap",
                    f"two entries want different things of {shared}",
                    later.devices_at,
                    "list each GPU once; mig-parted applies entries in order, the later one stays",
                    f"[{number}]",
                )
                break


def _common(one: MigEntry, other: MigEntry) -> str | None:
    if one.device_filters and other.device_filters:
        filters = {text.upper() for text in one.device_filters}
        if filters.isdisjoint(text.upper() for text in other.device_filters):
            return None
    elif one.device_filters or other.device_filters:
        return None  # whether the filter matches there is not known from the file
    if one.devices is None and other.devices is None:
        return "all GPUs"
    first = other.devices if one.devices is None else one.devices
    second = one.devices if other.devices is None else other.devices
    shared = set(first or ()) & set((second if second is not None else first) or ())
    return f"GPU {min(shared)}" if shared else None


def _same_outcome(one: MigEntry, other: MigEntry) -> bool:
    return (one.mig_enabled, one.mig_devices) == (other.mig_enabled, other.mig_devices)


def _uncovered(config: NamedMigConfig, highest: int | None) -> Sequence[int]:
    """Return the indices, up to the highest of the file, that the config does not mention."""
    if highest is None or not config.entries:
        return ()
    if any(entry.devices is None for entry in config.entries):
        return ()
    covered = {index for entry in config.entries for index in entry.devices or ()}
    return [index for index in range(min(highest, _HIGHEST_INDEX) + 1) if index not in covered]


def _note_uncovered(config: NamedMigConfig, left: Sequence[int], inspection: Inspection) -> None:
    if not left:
        return
    shown = ", ".join(map(str, left[:_SHOWN_INDICES])) + ("…" if left[_SHOWN_INDICES:] else "")
    are = "is left as it is" if len(left) == 1 else "are left as they are"
    inspection.warning(
        "gpu-uncovered",
        f"GPU {shown} {are}, maybe still partitioned by an earlier config",
        config.at,
        "list every index; on nodes with fewer GPUs this does not matter",
    )


def _display_card(configs: Sequence[NamedMigConfig]) -> str | None:
    for entry in _entries(configs):
        for text in entry.device_filters:
            pci = text.partition(":")[0]
            model = library.find(pci)
            if pci.upper() in _DISPLAY_CARDS or (model is not None and model.mig is None):
                return text
    return None


def _meets_display_card(configs: Sequence[NamedMigConfig], inspection: Inspection) -> None:
    display = _display_card(configs)
    unfiltered = [
        (config.name, entry)
        for config in configs
        for entry in config.entries
        if entry.mig_enabled and entry.devices is None and not entry.device_filters
    ]
    if display is None or not unfiltered:
        return
    name, entry = unfiltered[0]
    inspection.warning(
        "all-includes-display",
        f"devices: all includes the card without MIG that this file filters: {display}",
        entry.devices_at,
        "add a device-filter for the boards that have MIG"
        + (f", {len(unfiltered)} entries need it" if len(unfiltered) > 1 else ""),
        name,
    )


def _uniform(config: NamedMigConfig, inspection: Inspection, *, partly: bool) -> None:
    """Note whether the single strategy can serve the layout."""
    profiles = {name for entry in config.entries for name in entry.mig_devices}
    modes = {entry.mig_enabled for entry in config.entries}
    if True not in modes:
        return
    if len(profiles) > 1 or len(modes) > 1 or partly:
        inspection.info(
            "single-not-uniform",
            "not for the single strategy, which needs one profile on all GPUs: the node would show "
            "MIG-INVALID",
            config.at,
            "use the mixed strategy for this config",
        )
