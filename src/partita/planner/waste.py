"""Capacity that a layout leaves unusable: free slices where nothing can start any more."""

from collections.abc import Sequence

from partita.catalog.gpu_model import MigCapability
from partita.model.gpu import Gpu
from partita.planner.geometry import Geometry, arrangements, geometry
from partita.planner.plan import PlannedInstance, Unusable

__all__ = ["unusable"]


def unusable(gpu: Gpu, mig: MigCapability, instances: Sequence[PlannedInstance]) -> Unusable:
    """Return what a layout of instances wastes on a GPU for as long as they stand.

    A memory slice is unusable when no further instance can cover it, a compute slice when no set
    of further instances can use it. An instance of unknown placement counts as being everywhere
    it may be.
    """
    table = geometry(mig)
    occupied, taken, compute = 0, 0, 0
    for instance in instances:
        for placement in instance.candidates:
            occupied |= placement.mask
        profile = mig.by_name[instance.profile]
        taken += profile.memory_slices
        compute += profile.compute_slices
    more_memory, more_compute = _room(table, occupied)
    free_memory = mig.memory_slices - taken
    lost = max(0, free_memory - more_memory)
    return Unusable(
        memory_slices=lost,
        memory_slices_total=mig.memory_slices,
        compute_slices=max(0, mig.compute_slices - compute - more_compute),
        compute_slices_total=mig.compute_slices,
        memory_mib=(
            gpu.memory_mib * lost // mig.memory_slices if gpu.memory_mib is not None else None
        ),
    )


def _room(table: Geometry, occupied: int) -> tuple[int, int]:
    """Return how many memory slices further instances can cover, and compute slices use."""
    if occupied not in table.rooms:
        table.rooms[occupied] = _find_room(table, occupied)
    return table.rooms[occupied]


def _find_room(table: Geometry, occupied: int) -> tuple[int, int]:
    coverable = 0
    for places in table.masks:
        for _, mask in places:
            if not mask & occupied:
                coverable |= mask
    plain = {
        number: profile.max_instances
        for number, profile in enumerate(table.profiles)
        if "+" not in profile.name
    }
    usable = max(
        sum(table.profiles[number].compute_slices for number, _ in new)
        for new, _ in arrangements(table, occupied, plain)
    )
    return coverable.bit_count(), usable
