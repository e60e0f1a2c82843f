"""Checks of a node: what its labels and resources say, and whether a config suits its boards.

Pure functions over a ``Node`` and, when there are any, GPU reports of it. Labels are read as GPU
feature discovery writes them: under the single strategy ``gpu.count`` counts slices and
``gpu.product`` ends in ``-MIG-<profile>``. Source: NVIDIA/k8s-device-plugin v0.20.0,
``docs/gpu-feature-discovery``, ``internal/lm`` and ``internal/rm``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.config import config_checks, mig_layouts, node_facts
from partita.config.config_map import Configs
from partita.config.inspection import Inspection
from partita.config.node_facts import NodeFacts
from partita.model import resource
from partita.model.finding import Finding
from partita.model.node import Node
from partita.model.report import NodeReport

__all__ = ["check"]

_UNLIKELY_BOARDS = 16  # no server in the catalogue's range carries more


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """How many boards the advertised resources need at least."""

    whole: int
    mig: int
    slices: Mapping[str, int]


def check(
    node: Node, reports: Sequence[NodeReport], configs: Configs, path: str
) -> tuple[Finding, ...]:
    """Return what is wrong with a node, and with the configs on this node.

    Args:
        node: The node; its labels may be empty.
        reports: What is known of its GPUs; reports of other nodes are passed over.
        configs: Configurations to try on it; empty = the node alone.
        path: File that the node came from, for findings about the node; those about a config carry
            the config's own.
    """
    inspection = Inspection(path=path, where=node.name)
    facts = node_facts.of(node, [report for report in reports if report.node == node.name])
    _invalid(facts, inspection)
    _count_meaning(facts, inspection)
    _state(facts, inspection)
    _capacity(facts, inspection)
    _left_over(facts, inspection)
    _too_much(facts, inspection)
    config_checks.check(facts, configs, inspection)
    return tuple(inspection.findings)


def _invalid(facts: NodeFacts, inspection: Inspection) -> None:
    if not facts.mig_invalid:
        return
    label = facts.node.labels.get(node_facts.MIG_CONFIG, "")
    hint = "apply a layout with profiles of this board, the same on all GPUs"
    missing = _foreign_profile(label, facts.model)
    if missing is not None and facts.model is not None:
        near = mig_layouts.counterpart(missing, facts.model)
        hint = f"{missing} does not exist on {facts.model.names[0]}"
        if near is not None:
            hint += f", use {label.replace(missing, near)}"
    if facts.model is not None and facts.model.mig and facts.model.mig.mode_change_needs_reset:
        hint += "; on this board the mode change also needs a GPU reset"
    inspection.error(
        "mig-invalid",
        "MIG is on, and no MIG device exists or their profiles differ: "
        + facts.node.labels.get(node_facts.PRODUCT, ""),
        None,
        hint,
        "labels." + node_facts.PRODUCT,
    )


def _foreign_profile(label: str, model: GpuModel | None) -> str | None:
    """Return the profile in a name like ``all-1g.5gb`` that the board does not have."""
    profile = label.removeprefix("all-").replace(".me", "+me")
    if model is None or model.mig is None or not mig_layouts.is_profile_name(profile):
        return None
    return None if profile in model.mig.by_name else profile


def _count_meaning(facts: NodeFacts, inspection: Inspection) -> None:
    labels = facts.node.labels
    count = labels.get(node_facts.COUNT)
    if count is None or facts.mig_invalid:
        return
    where = "labels." + node_facts.COUNT
    if facts.single_profile is not None:
        inspection.info(
            "count-is-slices",
            f"under the single strategy gpu.count counts MIG devices of {facts.single_profile}, "
            f"requested as nvidia.com/gpu: {count}",
            None,
            None,
            where,
        )
    elif facts.strategy == "single":
        inspection.info(
            "count-is-boards",
            "under the single strategy gpu.count counts boards while MIG is off, and MIG devices "
            f"once it is on: {count}",
            None,
            None,
            where,
        )
    elif facts.slices:
        offered = ", ".join(f"{n} x{c}" for n, c in sorted(facts.slices.items()))
        inspection.info(
            "count-is-boards",
            f"under the mixed strategy gpu.count counts boards, not what can be requested: {count}",
            None,
            f"MIG devices by label: {offered}",
            where,
        )


def _state(facts: NodeFacts, inspection: Inspection) -> None:
    state = facts.node.labels.get(node_facts.MIG_STATE)
    if state in ("failed", "pending", "rebooting"):
        inspection.warning(
            "mig-state",
            f"the last MIG change is not done, nvidia.com/mig.config.state: {state}",
            None,
            "read the log of mig-manager on this node",
            "labels." + node_facts.MIG_STATE,
        )


def _capacity(facts: NodeFacts, inspection: Inspection) -> None:
    node = facts.node
    for name, capacity in sorted(node.capacity.items()):
        allocatable = node.allocatable.get(name, 0)
        if capacity > allocatable and node.allocatable:
            inspection.warning(
                "capacity-not-allocatable",
                f"pods get only what is allocatable, {name} has {allocatable} of: {capacity}",
                None,
                "the missing devices are gone or unhealthy, a pod that asks for them stays Pending"
                + _no_room(facts, name),
                f"status.capacity.{name}",
            )


def _no_room(facts: NodeFacts, name: str) -> str:
    """Return that a slice cannot even be created beside the others, where that is certain."""
    profile = resource.mig_profile(name)
    mig = facts.model.mig if facts.model else None
    if profile is None or mig is None or facts.gpu_count != 1:
        return ""
    beside = {one: count for one, count in facts.slices.items() if one != profile}
    if not beside or mig_layouts.fits(mig, {**beside, profile: 1}):
        return ""
    return f"; {profile} does not fit beside {mig_layouts.text_of(beside)}"


def _left_over(facts: NodeFacts, inspection: Inspection) -> None:
    allocatable = facts.node.allocatable
    renamed = allocatable.get(resource.shared(resource.WHOLE_GPU), 0)
    for name, count in sorted(allocatable.items()):
        if count != 0 or not name.startswith(resource.DOMAIN):
            continue
        where = f"status.allocatable.{name}"
        if name == resource.WHOLE_GPU and renamed:
            inspection.info(
                "renamed",
                f"the GPUs are shared under another name, {resource.shared(name)}: {renamed}",
                None,
                f"pods that ask for {name} stay Pending; ask for {resource.shared(name)}",
                where,
            )
        elif resource.mig_profile(name) is not None and not facts.node.capacity.get(name):
            inspection.info(
                "zero-resource",
                f"left over from an earlier layout, the kubelet keeps the name at 0: {name}",
                None,
                "it goes away when the kubelet restarts",
                where,
            )


def _too_much(facts: NodeFacts, inspection: Inspection) -> None:
    """Note whole GPUs and slices that the boards cannot be at the same time."""
    need = _need(facts)
    if need is None or not need.mig:
        return
    boards, total = facts.gpu_count, need.whole + need.mig
    where = "status.allocatable"
    offered = ", ".join(
        f"{name} {count}" for name, count in sorted(facts.node.allocatable.items()) if count
    )
    if total > (_UNLIKELY_BOARDS if boards is None else boards):
        have = f"the node has {boards}" if boards is not None else "no server has so many"
        inspection.warning(
            "stale-allocatable",
            f"needs at least {total} GPUs and {have}: {offered}",
            None,
            _which_is_real(facts, need),
            where,
        )
    elif need.whole and boards is None:
        inspection.info(
            "whole-and-slices",
            f"with MIG off on {need.whole} GPUs this needs at least {total} GPUs: {offered}",
            None,
            "if all GPUs have MIG on, nvidia.com/gpu is stale: compare with `nvidia-smi -L`",
            where,
        )


def _need(facts: NodeFacts) -> _Need | None:
    """Return the boards needed; None when the slices are not of a known board."""
    slices: dict[str, int] = {}
    for name, count in facts.node.allocatable.items():
        profile = resource.mig_profile(name)
        if profile is not None and count:
            # Replicas count several times over; how often is in a label.
            slices[profile] = -(-count // facts.replicas(profile))
    boards = _possible_boards(facts, slices)
    if not boards:
        return None
    whole = facts.node.allocatable.get(resource.WHOLE_GPU, 0)
    if facts.single_profile is not None:
        whole = 0  # they are MIG devices
    least = min(mig_layouts.minimum_boards(mig, slices) for mig in boards) if slices else 0
    return _Need(whole=-(-whole // facts.replicas(None)), mig=least, slices=slices)


def _possible_boards(facts: NodeFacts, slices: Mapping[str, int]) -> Sequence[MigCapability]:
    """Return the node's board, or every board that has the profiles when it is unknown."""
    known = facts.model if facts.model and facts.model.mig else None
    models = [known] if known else mig_layouts.boards_with(tuple(slices))
    return [model.mig for model in models if model.mig is not None]


def _which_is_real(facts: NodeFacts, need: _Need) -> str:
    """Return the advice: which of the numbers can be real, where that can be told."""
    advice = "restart the device plugin and the kubelet, and compare with `nvidia-smi -L`"
    by_label = {profile for profile in need.slices if profile in facts.slices}
    real = by_label or _filling(facts, need)
    if len(real) != 1:
        return f"only one of them can be real; {advice}"
    profile = next(iter(real))
    name = resource.mig_resource(profile)
    return f"only {name} {need.slices[profile]} looks real, it uses every GPU; {advice}"


def _filling(facts: NodeFacts, need: _Need) -> set[str]:
    """Return profiles whose number fills all boards with more than one slice each."""
    boards = facts.gpu_count or need.whole
    possible = _possible_boards(facts, need.slices)
    return {
        profile
        for profile, count in need.slices.items()
        if count > boards
        and any(mig_layouts.minimum_boards(mig, {profile: count}) == boards for mig in possible)
    }
