"""GPUs before and after: a map of the axis each, who holds what, and what is lost.

GPUs that look alike before and after share one map. What is not shown is counted, never dropped.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from partita.model.gpu import GpuInstance, Hold, MigMode
from partita.planner.plan import GpuPlan, Plan
from partita.views import axis_map, gpu_cells, gpu_names, plan_summary, step_words
from partita.views.axis_map import Cell, Frame, Mark
from partita.views.gpu_names import count
from partita.views.style import Style, Tone
from partita.views.table import facts, paragraph

__all__ = ["lines", "unchanged"]

_UNBROKEN = "\u00a0"  # a blank at which no line is broken
_SMALL_FLEET = 8  # GPUs up to which all are shown, also those that stay
_MOST = 12  # maps before the rest is only counted
_LEGEND = (
    (Mark.HELD, "held, untouched"),
    (Mark.STAYS, "free, stays"),
    (Mark.CREATED, "created"),
    (Mark.DESTROYED, "destroyed"),
    (Mark.EMPTY, "empty"),
    (Mark.UNUSABLE, "no profile fits any more"),
    (Mark.UNSURE, "may be occupied"),
)


def lines(plan: Plan, *, width: int, style: Style, frame: Frame, every: bool) -> list[str]:
    """Return the maps of the GPUs that matter, or of every GPU by itself.

    What matters: GPUs that change, and those that a pod would need that does not fit. Of a small
    fleet, all.

    Args:
        plan: The plan.
        width: Columns the text may take.
        style: How it is emphasised.
        frame: Characters of the lines around boxes.
        every: Whether to show every GPU by itself, also those that stay as they are.
    """
    groups = [[gpu] for gpu in plan.gpus] if every else _groups(_shown(plan))
    if not groups:
        return []
    shown = groups if every else groups[:_MOST]
    found = [style.paint(f"GPUs {'before and after' if plan.steps else 'as they are'}", Tone.TITLE)]
    for group in shown:
        found += ["", *_block(group, width=width, style=style, frame=frame)]
    left = sum(len(group) for group in groups[len(shown) :])
    if left:
        found += ["", f"  and {count(left, 'more GPU')}, shown with --all"]
    if not any(gpu_cells.units(group[0]) for group in shown):
        return found
    return [*found, "", *(style.paint(line, Tone.FAINT) for line in _legend(width))]


def unchanged(plan: Plan, *, width: int, every: bool) -> list[str]:
    """Return how many GPUs are not shown since they stay, and which of them must not be re-cut."""
    shown = {gpu.gpu.key for gpu in (plan.gpus if every else _shown(plan))}
    still = [gpu for gpu in plan.gpus if gpu.gpu.key not in shown]
    if not still:
        return []
    nodes = len({gpu.gpu.node for gpu in still})
    noun = "other GPU" if shown else "GPU"
    where = f"{count(len(still), noun)} on {count(nodes, 'node')}"
    found = [f"{where} {'stays as it is' if len(still) == 1 else 'stay as they are'}"]
    reasons: dict[str, list[tuple[str, int]]] = {}
    for gpu in still:
        if gpu.frozen is not None:
            reasons.setdefault(gpu.frozen, []).append(gpu.gpu.key)
    for reason, keys in reasons.items():
        text = f"not to be re-cut, {reason}: {gpu_names.gpus(keys)}"
        found += paragraph(text, width=width, indent=2, mark="- ")
    return found


def _legend(width: int) -> list[str]:
    entries = (f"{mark.value} {words}".replace(" ", _UNBROKEN) for mark, words in _LEGEND)
    wrapped = paragraph("; ".join(entries), width=width, indent=2)
    return [line.replace(_UNBROKEN, " ") for line in wrapped]


# ---- One GPU, or several that look alike --------------------------------------------------------


def _groups(plans: Sequence[GpuPlan]) -> list[list[GpuPlan]]:
    groups: dict[tuple[object, ...], list[GpuPlan]] = {}
    for plan in plans:
        groups.setdefault(_likeness(plan), []).append(plan)
    return list(groups.values())


def _shown(plan: Plan) -> list[GpuPlan]:
    if len(plan.gpus) <= _SMALL_FLEET:
        return list(plan.gpus)
    wanted = {
        (change.blocker.node, change.blocker.index)
        for unfit in plan.unfit
        for change in unfit.changes
        if change.blocker is not None
    }
    return [gpu for gpu in plan.gpus if gpu.touched or gpu.gpu.key in wanted]


def _likeness(plan: GpuPlan) -> tuple[object, ...]:
    """Everything that a block shows of a GPU, apart from names and ids."""
    gpu = plan.gpu
    stands = tuple((i.profile, i.candidates, i.hold) for i in gpu.instances)
    planned = tuple((i.profile, i.candidates, i.standing is None) for i in plan.instances)
    before = (gpu.product, gpu.model, gpu.mig_mode, gpu.hold, gpu.replicas, gpu.notes)
    after = (plan.mig_mode, plan.replicas, plan.budget_mib, plan.needs_reset, plan.unusable)
    return (stands, planned, before, after, plan.frozen)


def _block(group: Sequence[GpuPlan], *, width: int, style: Style, frame: Frame) -> list[str]:
    first = group[0]
    names = gpu_names.gpus(plan.gpu.key for plan in group)
    title = names if len(group) == 1 else f"{count(len(group), 'GPU')}: {names}"
    still = "stays as it is" if len(group) == 1 else "stay as they are"
    stays = "" if first.touched else f", {still}"
    uuid = f", {first.gpu.uuid}" if len(group) == 1 and first.gpu.uuid else ""
    found = paragraph(f"{title}  {first.gpu.product}{uuid}{stays}", width=width, indent=2)
    rows = list(_rows(first, alone=len(group) == 1))
    length = gpu_cells.units(first)
    if rows and length is not None:
        found += axis_map.lines(rows, length, width=width, style=style, frame=frame)
    words = _words(first, {label for label, _ in rows}, alone=len(group) == 1)
    details = [*words, *_details(group)]
    padded = [(f"{label:<{len('planned')}}", value) for label, value in details]
    return found + facts(padded, width=width, style=style)


def _rows(plan: GpuPlan, *, alone: bool) -> Iterator[tuple[str, Sequence[Cell]]]:
    length = gpu_cells.units(plan)
    if length is None:
        return
    planned = gpu_cells.planned(plan, length)
    stands = gpu_cells.standing(plan, length) if plan.touched else planned
    for label, cells in (("stands", stands), ("planned", planned if plan.touched else None)):
        if cells is not None:
            yield label, cells if alone else _anonymous(cells)


def _anonymous(cells: Sequence[Cell]) -> list[Cell]:
    """Leave names out, which differ between like GPUs."""
    return [
        Cell(start=cell.start, size=cell.size, mark=cell.mark, name=cell.name) for cell in cells
    ]


def _words(plan: GpuPlan, drawn: set[str], *, alone: bool) -> Iterator[tuple[str, str]]:
    """What is not drawn: a GPU that is not cut by MIG, or whose axis is unknown."""
    gpu = plan.gpu
    if "stands" not in drawn:
        holds = {gpu.hold, *(instance.hold for instance in gpu.instances)}
        state = _held_by(gpu.hold, gpu.holders) if gpu.hold.pinned else "free"
        if not gpu.hold.pinned and holds != {Hold.FREE}:
            state = "not all free"
        if gpu.problem is not None:
            state = "in error, offers nothing"
        if gpu.replicas > 1 and gpu.slots_held:
            state = f"{gpu.slots_held} of them {state}"
        yield "stands", f"{_layout(gpu.mig_mode, gpu.replicas, None, gpu.instances)}, {state}"
    if "planned" not in drawn and plan.touched:
        pods = f", for {gpu_names.names(plan.pods)}" if plan.pods and alone else ""
        yield "planned", _layout(plan.mig_mode, plan.replicas, plan.budget_mib, ()) + pods


def _layout(
    mode: MigMode, replicas: int, budget_mib: int | None, instances: Sequence[GpuInstance]
) -> str:
    if mode is MigMode.ON:
        profiles = ", ".join(instance.profile for instance in instances)
        return f"MIG on: {profiles or 'no instances'}"
    prefix = "MIG off, " if mode is MigMode.OFF else ""
    if replicas == 1:
        return prefix + "whole GPU"
    budget = f" of {step_words.gib(budget_mib)} each" if budget_mib is not None else ""
    return f"{prefix}{count(replicas, 'shared slot')}{budget}"


def _details(group: Sequence[GpuPlan]) -> Iterator[tuple[str, str]]:
    plan = group[0]
    yield from _held(group)
    named = len(group) == 1
    adrift = Counter(_adrift(instance, named=named) for instance in gpu_cells.adrift(plan))
    for text, times in adrift.items():
        yield "placement unknown", text if times == 1 else f"{times} x {text}"
    if plan.needs_reset:
        yield "reset", "needed for the mode change: nothing may run on the GPU"
    if plan.unusable is not None and (plan.unusable.memory_slices or plan.unusable.compute_slices):
        each = " on each" if len(group) > 1 else ""
        yield "unusable", plan_summary.waste([plan.unusable]) + each
    if plan.frozen is not None:
        yield "not re-cut", plan.frozen
    if plan.gpu.problem is not None and plan.gpu.problem != plan.frozen:
        yield "problem", plan.gpu.problem
    for note in plan.gpu.notes:
        yield "note", note


def _held(group: Sequence[GpuPlan]) -> Iterator[tuple[str, str]]:
    first = group[0].gpu
    pinned = [i for i in first.instances if i.hold.pinned and i.placement is not None]
    if len(group) > 1 and pinned:
        total = count(len(pinned) * len(group), "instance")
        yield "held", f"{total} in all; --all names the holders"
        return
    for number, instance in enumerate(pinned):
        by = _held_by(instance.hold, instance.holders).removeprefix("held ")
        yield "held" if not number else "", f"{instance.placement} {instance.profile} {by}"


def _held_by(hold: Hold, holders: Sequence[str]) -> str:
    by = gpu_names.names(holders)
    if hold is Hold.POSSIBLE:
        return f"possibly held by {by}" if by else "possibly held"
    return f"held by {by}" if by else "held by unknown"


def _adrift(instance: GpuInstance, *, named: bool) -> str:
    held = ""
    if instance.hold.pinned:
        held = f", {_held_by(instance.hold, instance.holders if named else ())}"
    places = ", ".join(str(placement) for placement in instance.candidates)
    return f"{instance.profile}{held}, at one of {places}"
