"""What a device-plugin configuration does that its author may not expect.

Rules over a configuration that was read: they know the plugin's behaviour, not YAML.
Source: NVIDIA/k8s-device-plugin v0.20.0 (README, ``cmd/nvidia-device-plugin``,
``cmd/mps-control-daemon``, ``internal/rm``).
"""

from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.inspection import Inspection
from partita.config.sharing_section import SharedEntry, SharingKind, SharingSection
from partita.model import resource

__all__ = ["MPS_CLIENTS", "MPS_CLIENTS_BEFORE_TURING", "check"]

MPS_CLIENTS = 48
MPS_CLIENTS_BEFORE_TURING = 16
"""Below compute capability 7.5, as the MPS daemon of the plugin counts; V100 has 7.0."""

_MANY_REPLICAS = 64


def check(config: DevicePluginConfig, inspection: Inspection, *, refused: bool = False) -> None:
    """Note what the plugin refuses or does unexpectedly, and what the nodes will offer.

    Args:
        config: What was read.
        inspection: Where to note.
        refused: Whether the reader refuses the file already; then nodes offer nothing new.
    """
    before = len(inspection.findings)
    if config.mps and config.time_slicing:
        inspection.warning(
            "mps-wins",
            "timeSlicing and mps are both set: MPS wins, timeSlicing is not used",
            config.time_slicing.at,
            "remove one of the two sections",
            "sharing.timeSlicing",
        )
    section = config.sharing
    if section is None:
        if not refused:
            _note_unshared(config, inspection)
        return
    _entries(config, section, inspection)
    if section.kind is SharingKind.MPS:
        _mps(config, section, inspection)
    _more_than_one(section, inspection)
    if not refused and not inspection.has_errors_since(before):
        for entry in section.entries:
            if _matches(config, entry):
                _result(config, section, entry, inspection)


def _entries(config: DevicePluginConfig, section: SharingSection, inspection: Inspection) -> None:
    seen: set[str] = set()
    for entry in section.entries:
        where = f"sharing.{section.kind.value}.resources"
        _name(entry, where, inspection)
        _mig_entry(config, entry, where, inspection)
        if entry.name in seen:
            inspection.warning(
                "duplicate-resource",
                f"the resource is listed twice: {entry.name}",
                entry.at,
                "keep one entry for each resource",
                where,
            )
        seen.add(entry.name)
        if entry.replicas > _MANY_REPLICAS and section.kind is SharingKind.TIME_SLICING:
            inspection.warning(
                "replicas-many",
                f"replicas divide neither memory nor compute, so many cannot run: {entry.replicas}",
                entry.replicas_at,
                "count pods, not MiB; for shares with a memory limit use MIG or MPS",
                where,
            )


def _name(entry: SharedEntry, where: str, inspection: Inspection) -> None:
    if entry.name.endswith(resource.SHARED_SUFFIX):
        inspection.warning(
            "shared-in-name",
            f"the plugin adds .shared itself, no device has this name: {entry.name}",
            entry.at,
            f"write {resource.unshared(entry.name)} and renameByDefault: true",
            where,
        )
    elif entry.name != resource.WHOLE_GPU and resource.mig_profile(entry.name) is None:
        inspection.warning(
            "unknown-resource",
            f"no device ever has this name, the entry never matches: {entry.name}",
            entry.at,
            "write nvidia.com/gpu or nvidia.com/mig-<profile>, such as nvidia.com/mig-1g.10gb",
            where,
        )


def _mig_entry(
    config: DevicePluginConfig, entry: SharedEntry, where: str, inspection: Inspection
) -> None:
    if resource.mig_profile(entry.name) is None or config.mig_strategy is MigStrategy.MIXED:
        return
    if config.mps is not None:
        return  # refused anyway, and said there
    hint = "write flags.migStrategy: mixed, or remove the entry"
    if config.mig_strategy is None:
        message = "without migStrategy mixed from elsewhere the entry never matches"
        inspection.info("mig-entry-unused", f"{message}: {entry.name}", entry.at, hint, where)
        return
    offered = "MIG devices as" if config.mig_strategy is MigStrategy.SINGLE else "only"
    message = f"migStrategy {config.mig_strategy.value} serves {offered} nvidia.com/gpu"
    message += f", the entry never matches: {entry.name}"
    inspection.warning("mig-entry-unused", message, entry.at, hint, where)


def _mps(config: DevicePluginConfig, section: SharingSection, inspection: Inspection) -> None:
    where = "sharing.mps"
    if config.mig_strategy is MigStrategy.MIXED:
        inspection.error(
            "mps-with-mig",
            "the plugin refuses MPS together with migStrategy mixed",
            section.at,
            "share the MIG resources with timeSlicing, or use MPS on nodes without MIG",
            where,
        )
    if config.mig_strategy is MigStrategy.SINGLE:
        inspection.warning(
            "mps-with-mig",
            "the plugin refuses MPS as soon as the node has MIG devices, and migStrategy is single",
            section.at,
            "write flags.migStrategy: none, or use timeSlicing",
            where,
        )
    for entry in section.entries:
        if resource.mig_profile(entry.name) is not None:
            inspection.error(
                "mps-on-mig",
                f"the plugin refuses MPS on MIG devices: {entry.name}",
                entry.at,
                "share it with timeSlicing instead",
                f"{where}.resources",
            )
        _mps_clients(entry, inspection)


def _mps_clients(entry: SharedEntry, inspection: Inspection) -> None:
    where = "sharing.mps.resources"
    if entry.replicas > MPS_CLIENTS:
        inspection.error(
            "mps-clients",
            f"MPS serves at most {MPS_CLIENTS} clients of a GPU, asked for: {entry.replicas}",
            entry.replicas_at,
            f"write {MPS_CLIENTS} or fewer",
            where,
        )
    elif entry.replicas > MPS_CLIENTS_BEFORE_TURING:
        inspection.info(
            "mps-clients",
            "below compute capability 7.5 (V100, P100) the plugin serves at most "
            f"{MPS_CLIENTS_BEFORE_TURING} clients: {entry.replicas}",
            entry.replicas_at,
            f"write {MPS_CLIENTS_BEFORE_TURING} or fewer if such GPUs use this config",
            where,
        )


def _more_than_one(section: SharingSection, inspection: Inspection) -> None:
    fail = section.fail_requests_greater_than_one
    where = f"sharing.{section.kind.value}.failRequestsGreaterThanOne"
    if section.kind is SharingKind.TIME_SLICING and not fail:
        state = "unset is false for timeSlicing" if fail is None else "false"
        inspection.info(
            "more-than-one",
            f"a pod asking for 2 may get the same GPU twice, failRequestsGreaterThanOne: {state}",
            section.at,
            "write failRequestsGreaterThanOne: true to refuse such pods",
            where,
        )
    elif section.kind is SharingKind.MPS and fail is not False:
        inspection.info(
            "more-than-one",
            "a pod asking for more than 1 is refused, failRequestsGreaterThanOne of mps: "
            + ("true" if fail else "unset is true"),
            section.at,
            None,
            where,
        )


def _note_unshared(config: DevicePluginConfig, inspection: Inspection) -> None:
    served = {
        MigStrategy.SINGLE: "MIG devices as nvidia.com/gpu",
        MigStrategy.MIXED: "nvidia.com/gpu without MIG and nvidia.com/mig-<profile>",
    }.get(config.mig_strategy or MigStrategy.NONE, "whole GPUs as nvidia.com/gpu")
    inspection.info("result", f"no sharing, nodes serve {served}", config.at)


def _matches(config: DevicePluginConfig, entry: SharedEntry) -> bool:
    """Tell whether a device can have the name, as far as the file says."""
    if entry.name == resource.WHOLE_GPU:
        return True
    by_profile = config.mig_strategy is MigStrategy.MIXED
    is_shared = entry.name.endswith(resource.SHARED_SUFFIX)
    return by_profile and not is_shared and resource.mig_profile(entry.name) is not None


def _result(
    config: DevicePluginConfig, section: SharingSection, entry: SharedEntry, inspection: Inspection
) -> None:
    where = f"sharing.{section.kind.value}.resources"
    single = config.mig_strategy is MigStrategy.SINGLE and entry.name == resource.WHOLE_GPU
    unit = "MIG device, or GPU without MIG" if single else "MIG device"
    if entry.name == resource.WHOLE_GPU and not single:
        unit = "GPU"
    if section.rename_by_default:
        name = resource.shared(entry.name)
        label = f"{entry.name} stays at 0"
        hint = [f"pods must ask for {name}"]
    else:
        name, hint = entry.name, []
        label = "label nvidia.com/gpu.product ends in -SHARED"
        if entry.name != resource.WHOLE_GPU:
            profile = entry.name.removeprefix(resource.DOMAIN)
            label = f"label nvidia.com/{profile}.product ends in -SHARED"
    message = f"nodes serve {name} x{entry.replicas} per {unit}, {label}"
    if section.kind is SharingKind.TIME_SLICING:
        hint.append("neither memory nor faults are isolated between the pods")
    else:
        hint.append("each client process gets an equal share of memory and threads")
    inspection.info("result", message, entry.at, "; ".join(hint), where)
    if single:
        inspection.info(
            "replicas-times-slices",
            "under migStrategy single replicas multiply MIG devices: "
            f"7 slices of a GPU become {7 * entry.replicas}",
            entry.replicas_at,
            "write migStrategy: none if whole GPUs are meant",
            where,
        )
