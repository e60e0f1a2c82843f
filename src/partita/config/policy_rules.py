"""Whether the parts of a policy agree with each other, and its layout with any board."""

from partita.config import mig_layouts, policy_schema
from partita.config.inspection import Inspection
from partita.config.partition_policy import PartitionPolicy, Strategy
from partita.config.yaml_nodes import YamlMapping
from partita.model import resource

__all__ = ["check"]


def check(policy: PartitionPolicy, spec: YamlMapping, inspection: Inspection) -> None:
    """Note parameters that the strategy does not use, and those that it misses."""
    used = {
        Strategy.WHOLE: (),
        Strategy.MIG: ("mig",),
        Strategy.TIME_SLICING: ("timeSlicing",),
        Strategy.MPS: ("mps",),
        Strategy.AUTO: ("mig", "timeSlicing"),
    }[policy.strategy]
    for key in ("mig", "timeSlicing", "mps"):
        entry = spec.entry(key)
        if entry is not None and key not in used:
            inspection.warning(
                "parameters-unused",
                f"strategy {policy.strategy.value} does not use these parameters: {key}",
                entry.at,
                "remove them, or choose the strategy they are for",
                f"spec.{key}",
            )
    for need in policy_schema.NEEDS:
        if not need.is_met(policy):
            inspection.error("parameters-missing", need.message, spec.at, f"add {need.key}", "spec")
    _layout_fits(policy, spec, inspection)
    _not_planned(policy, spec, inspection)


def _layout_fits(policy: PartitionPolicy, spec: YamlMapping, inspection: Inspection) -> None:
    layout = policy.mig.layout
    mig_node = spec.get("mig")
    if not layout or mig_node is None:
        return
    boards = [board for board in mig_layouts.boards_with(tuple(layout)) if board.mig]
    if any(board.mig and mig_layouts.fits(board.mig, layout) for board in boards):
        return
    if not boards or boards[0].mig is None:
        hint = "use profiles of one board; `partita gpus` lists them"
        message = f"no single board has all of these profiles: {', '.join(layout)}"
    else:
        near = mig_layouts.nearest_layouts(boards[0].mig, layout)
        hint = "use " + "; or ".join(mig_layouts.text_of(one) for one in near)
        reason = mig_layouts.obstacle(boards[0].mig, layout)
        message = f"no board can hold {mig_layouts.text_of(layout)}: {reason}"
    inspection.error("layout-impossible", message, mig_node.at, hint, "spec.mig.layout")


def _not_planned(policy: PartitionPolicy, spec: YamlMapping, inspection: Inspection) -> None:
    """Note shared MIG resources: the planner cuts and shares whole GPUs only."""
    match policy.strategy:
        case Strategy.TIME_SLICING:
            key, sharing = "timeSlicing", policy.time_slicing
        case Strategy.MPS:
            key, sharing = "mps", policy.mps
        case _:
            return
    node = spec.get(key)
    names = [one.name for one in (sharing.resources if sharing else ())]
    slices = [name for name in names if resource.mig_profile(name) is not None]
    if slices and node is not None:
        inspection.warning(
            "not-planned",
            f"partita plans replicas of {resource.WHOLE_GPU} only, not of: {', '.join(slices)}",
            node.at,
            "`partita export --to device-plugin` writes them for NVIDIA's plugin",
            f"spec.{key}.resources",
        )
