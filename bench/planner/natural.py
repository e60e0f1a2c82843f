"""The integer program that one writes down first: a binary per GPU, profile and placement.

Written from the catalogue alone, so that it also checks what the planner takes to be possible. It
takes fleets of ``fleets.make``: no policies, one slice per pod, every placement known, and no media
variants, because of which engines and instance limits hold wherever placements do not overlap.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from bench.planner.staged import StagedProgram

from partita.catalog import library
from partita.catalog.gpu_model import MigCapability
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, MigMode
from partita.model.placement import Placement
from partita.model.resource import mig_resource

__all__ = ["write"]

_LEFT_OUT, _DESTROYED, _CREATED, _MODE_CHANGES, _FUTURE_LOST, _TOUCHED = range(6)


@dataclass
class _Cut:
    """The columns of one GPU.

    Attributes:
        cover: Per memory slice: columns of the instances that would take it.
        held: Memory slices that held instances take, as a mask.
        created: Columns of new instances.
        kept: Columns of free standing instances.
        pairs_now: (profile, placement) pairs that are free as it stands.
    """

    cover: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    held: int = 0
    created: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    pairs_now: int = 0

    def take(self, placement: Placement, column: int) -> None:
        for memory_slice in range(placement.start, placement.end):
            self.cover[memory_slice].append(column)


def write(fleet: Fleet) -> StagedProgram:
    """Return the program; its six objectives are those of a plan without priorities and ages."""
    asked: dict[str, int] = defaultdict(int)
    for pod in fleet.pods:
        if pod.node is None:
            asked[next(iter(pod.requests))] += 1
    program = StagedProgram(6)
    supply: dict[str, list[int]] = {resource: [] for resource in asked}
    for gpu in fleet.gpus:
        model = library.get(gpu.model or gpu.product)
        if model.mig is not None:
            _add(program, supply, gpu, model.mig)
    for resource, count in asked.items():
        program.at_most(count, supply[resource])
        program.constant[_LEFT_OUT] += count
        program.costs[_LEFT_OUT].update(dict.fromkeys(supply[resource], -1))
    return program


def _add(
    program: StagedProgram, supply: dict[str, list[int]], gpu: Gpu, mig: MigCapability
) -> None:
    cut = _Cut()
    _standing(program, supply, gpu, cut)
    _created(program, supply, mig, cut)
    for columns in cut.cover.values():
        program.at_most(1, columns)
    _future(program, gpu, mig, cut)
    _switches(program, gpu, cut)


def _standing(program: StagedProgram, supply: dict[str, list[int]], gpu: Gpu, cut: _Cut) -> None:
    """Held instances stay; each free one is kept or destroyed, and serves only if kept."""
    for instance in gpu.instances:
        if instance.hold.pinned:
            cut.held |= instance.mask
            continue
        kept = program.column()
        cut.kept.append(kept)
        cut.take(instance.candidates[0], kept)
        program.constant[_DESTROYED] += 1
        program.costs[_DESTROYED][kept] = -1
        resource = mig_resource(instance.profile)
        if resource in supply:
            reused = program.column()
            supply[resource].append(reused)
            program.at_most(0, [reused, kept], [1, -1])


def _created(
    program: StagedProgram, supply: dict[str, list[int]], mig: MigCapability, cut: _Cut
) -> None:
    for profile in mig.profiles:
        resource = mig_resource(profile.name)
        for placement in profile.placements if resource in supply else ():
            if not placement.mask & cut.held:
                created = program.column()
                cut.created.append(created)
                cut.take(placement, created)
                supply[resource].append(created)
                program.costs[_CREATED][created] = 1


def _future(program: StagedProgram, gpu: Gpu, mig: MigCapability, cut: _Cut) -> None:
    """One column per pair that may be free afterwards, at most 1 less what covers its slices.

    As the covering columns are binary and these are maximised, they need not be declared whole.
    """
    taken = cut.held
    for instance in gpu.instances:
        taken |= instance.mask
    for profile in mig.profiles:
        for placement in profile.placements:
            worth = _worth(placement)
            program.constant[_FUTURE_LOST] += 0 if placement.mask & taken else worth
            if placement.mask & cut.held:
                continue
            free = program.column(whole=False)
            program.costs[_FUTURE_LOST][free] = -worth
            for memory_slice in range(placement.start, placement.end):
                if cut.cover[memory_slice]:
                    program.at_most(1, [free, *cut.cover[memory_slice]])


def _switches(program: StagedProgram, gpu: Gpu, cut: _Cut) -> None:
    """MIG must be on before anything is created; a GPU with any step is touched."""
    touched = program.column()
    program.costs[_TOUCHED][touched] = 1
    for created in cut.created:
        program.at_most(0, [created, touched], [1, -1])
    for kept in cut.kept:
        program.at_least(1, [kept, touched], [1, 1])
    if gpu.mig_mode is not MigMode.ON:
        switched = program.column()
        program.costs[_MODE_CHANGES][switched] = 1
        for created in cut.created:
            program.at_most(0, [created, switched], [1, -1])


def _worth(placement: Placement) -> int:
    """What losing a free pair counts: its memory slices (``docs/planner.md``, "Which future?")."""
    return placement.size
