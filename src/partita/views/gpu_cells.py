"""What stands and what is planned on one GPU, as cells of its memory-slice axis.

An instance whose placement the input does not tell is never drawn at a place: the slices that it
may occupy are *unsure*, and it is named beside the map.
"""

from collections.abc import Iterable, Sequence

from partita.catalog import library
from partita.catalog.gpu_model import MigCapability
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.planner.plan import GpuPlan, PlannedInstance
from partita.views.axis_map import Cell, Mark

__all__ = [
    "adrift",
    "capability",
    "destroyed",
    "is_obscure",
    "planned",
    "standing",
    "standing_mark",
    "units",
]


def capability(gpu: Gpu) -> MigCapability | None:
    """Return what MIG means on the GPU, None when it has none or is not in the catalogue."""
    model = library.find(gpu.model) if gpu.model is not None else None
    return model.mig if model is not None else None


def is_obscure(gpu: Gpu) -> bool:
    """Tell whether the input does not show which instances a GPU in MIG mode has."""
    unseen = gpu.hold.pinned or gpu.problem is not None
    return gpu.mig_mode is MigMode.ON and not gpu.instances and unseen


def units(plan: GpuPlan) -> int | None:
    """Return the length of the axis, None when nothing is to be drawn on one."""
    if MigMode.ON not in (plan.gpu.mig_mode, plan.mig_mode):
        return None
    mig = capability(plan.gpu)
    if mig is not None:
        return mig.memory_slices
    return plan.unusable.memory_slices_total if plan.unusable is not None else None


def destroyed(plan: GpuPlan) -> tuple[GpuInstance, ...]:
    """Return the standing instances that the planned layout does not keep."""
    kept = [instance.standing for instance in plan.instances if instance.standing is not None]
    gone = []
    for instance in plan.gpu.instances:
        if instance in kept:
            kept.remove(instance)
        else:
            gone.append(instance)
    return tuple(gone)


def standing_mark(instance: GpuInstance, *, goes: bool = False) -> Mark:
    """Return the mark of an instance that stands."""
    if instance.hold.pinned:
        return Mark.HELD
    return Mark.DESTROYED if goes else Mark.STAYS


def standing(plan: GpuPlan, length: int) -> tuple[Cell, ...] | None:
    """Return the axis as it stands, None when the GPU is not in MIG mode now."""
    if plan.gpu.mig_mode is not MigMode.ON:
        return None
    gone = destroyed(plan)
    cells = [
        _cell(instance, standing_mark(instance, goes=instance in gone), _holder(instance))
        for instance in plan.gpu.instances
        if instance.placement is not None
    ]
    unsure = _mask(i.mask for i in plan.gpu.instances if i.placement is None)
    return _filled(cells, length, unsure=-1 if is_obscure(plan.gpu) else unsure)


def planned(plan: GpuPlan, length: int) -> tuple[Cell, ...] | None:
    """Return the axis after the plan, None when the GPU is not in MIG mode then."""
    if plan.mig_mode is not MigMode.ON:
        return None
    cells, unsure = [], 0
    for instance in plan.instances:
        if len(instance.candidates) == 1:
            cells.append(_planned_cell(instance))
        else:
            unsure |= _mask(placement.mask for placement in instance.candidates)
    mig = capability(plan.gpu)
    occupied = _mask(p.mask for instance in plan.instances for p in instance.candidates)
    unusable = _unusable(mig, occupied) if plan.unusable is not None and mig is not None else 0
    unsure = -1 if is_obscure(plan.gpu) else unsure
    return _filled(cells, length, unsure=unsure, unusable=unusable)


def adrift(plan: GpuPlan) -> tuple[GpuInstance, ...]:
    """Return the standing instances whose placement the input does not tell."""
    return tuple(instance for instance in plan.gpu.instances if instance.placement is None)


def _cell(instance: GpuInstance, mark: Mark, who: str) -> Cell:
    where = instance.candidates[0]
    return Cell(start=where.start, size=where.size, mark=mark, name=instance.profile, who=who)


def _holder(instance: GpuInstance) -> str:
    if instance.hold is Hold.POSSIBLE:
        return "held?"
    return instance.holders[0] if len(instance.holders) == 1 else ""


def _planned_cell(instance: PlannedInstance) -> Cell:
    pod = instance.pods[0] if len(instance.pods) == 1 else ""
    if instance.standing is not None:
        mark = standing_mark(instance.standing)
        return _cell(instance.standing, mark, pod or _holder(instance.standing))
    where = instance.candidates[0]
    return Cell(
        start=where.start, size=where.size, mark=Mark.CREATED, name=instance.profile, who=pod
    )


def _filled(
    cells: Sequence[Cell], length: int, *, unsure: int = 0, unusable: int = 0
) -> tuple[Cell, ...]:
    """Add cells for what no known instance occupies: unsure, unusable or empty."""
    taken = {slice_: cell for cell in cells for slice_ in range(cell.start, cell.start + cell.size)}
    found = list(cells)
    before: Cell | None = None
    for number in range(length):
        if number in taken:
            before = None
            continue
        mark = _bare_mark(1 << number, unsure, unusable)
        if before is not None and before.mark is mark:
            found.remove(before)
            before = Cell(start=before.start, size=before.size + 1, mark=mark)
        else:
            before = Cell(start=number, size=1, mark=mark)
        found.append(before)
    return tuple(sorted(found, key=lambda cell: cell.start))


def _bare_mark(bit: int, unsure: int, unusable: int) -> Mark:
    if unsure & bit:
        return Mark.UNSURE
    return Mark.UNUSABLE if unusable & bit else Mark.EMPTY


def _mask(masks: Iterable[int]) -> int:
    mask = 0
    for one in masks:
        mask |= one
    return mask


def _unusable(mig: MigCapability, occupied: int) -> int:
    """Return the empty slices that no further instance can cover, as a bit mask."""
    places = [place.mask for profile in mig.profiles for place in profile.placements]
    reachable = _mask(mask for mask in places if not mask & occupied)
    return ((1 << mig.memory_slices) - 1) & ~occupied & ~reachable
