"""One GPU while its facts are gathered, and the GPU noun that they amount to."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.catalog.legality import Slot
from partita.inventory import instances, usage
from partita.inventory.advertisement import Advertisement
from partita.inventory.boards import Board
from partita.inventory.instances import Instance
from partita.inventory.recognition import recognise
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode, Sharing
from partita.model.placement import Placement
from partita.model.report import InstanceReport

__all__ = ["GIVE", "Device"]

GIVE = "give `nvidia-smi -q -x` and `nvidia-smi mig -lgi` of the node"

_UNNAMED = "unknown GPU"


@dataclass(kw_only=True)
class Device:
    """One GPU of a node while it is concluded.

    Attributes:
        board: What reports say; without facts when there is none.
        model: Its model, None when the catalogue has none of that name.
        mode: Its MIG mode, None while not known.
        listed: Its instances, None while not known.
        vague: Whether it is counted only how GPUs are cut, and this one may be cut otherwise.
        pinned: Whether it must be left alone, whoever holds it.
        replicas: Slots it is served as.
        notes: For the GPU.
    """

    board: Board
    model: GpuModel | None
    mode: MigMode | None = None
    listed: tuple[InstanceReport, ...] | None = None
    vague: bool = False
    pinned: bool = False
    replicas: int = 1
    notes: list[str] = field(default_factory=list)

    @property
    def mig(self) -> MigCapability | None:
        """What MIG means on it, None when it has none or its model is not known."""
        return self.model.mig if self.model is not None else None

    def profiles(self, offered: frozenset[str]) -> Counter[str]:
        """Count its instances by profile; the likeliest one where several look the same."""
        counts: Counter[str] = Counter()
        for report in self.listed or ():
            found = recognise(self.mig, report, offered) if self.mig is not None else ()
            counts[found[0].name if found else report.profile or "unknown"] += 1
        return counts

    def gpu(self, node: str, said: Advertisement, offered: frozenset[str]) -> Gpu:
        """Return the GPU, with what processes use marked as held.

        With MIG on, who uses the GPU uses one of its instances, and which one is not known.
        """
        report, mode = self.board.report, self.mode or MigMode.OFF
        on = mode is MigMode.ON
        single = on and (said.single or said.strategy == "single")
        somewhere = self._somewhere() if on else ()
        standing = tuple(_shadowed(i, somewhere) for i in self._instances(offered)) if on else ()
        signs = () if on else usage.signs(report)
        shared = not on and self.replicas > 1
        unsure = not on and (self.pinned or self.vague or bool(signs))
        problem = report.problem
        if on and self.listed is None:
            problem = problem or f"its MIG instances are not known: {GIVE}"
        if somewhere and not standing:
            problem = problem or f"in use, but no instance is known: {', '.join(somewhere)}"
        if single:
            self.notes.append("its slices are served as nvidia.com/gpu (MIG strategy single)")
        return Gpu(
            node=node,
            index=report.index,
            product=report.product or said.product or _UNNAMED,
            model=self.model.id if self.model is not None else None,
            uuid=report.uuid,
            mig_mode=mode,
            pending_mig_mode=None if report.pending_mig_mode is mode else report.pending_mig_mode,
            instances=standing,
            hold=_hold(() if on else report.process_ids, unsure=unsure),
            holders=() if on else (*_processes(report.process_ids), *signs),
            replicas=self.replicas if shared else 1,
            sharing=(said.sharing or Sharing.TIME_SLICING) if shared else None,
            renamed=shared and said.renamed,
            single_strategy=single,
            memory_mib=self._memory_mib(said),
            reserved_memory_mib=report.reserved_memory_mib,
            problem=problem,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _somewhere(self) -> tuple[str, ...]:
        """Return who uses an instance of it that is not known.

        Memory in use on the GPU says nothing more where that of its instances is read.
        """
        report = self.board.report
        if any(instance.used_memory_mib is not None for instance in self.listed or ()):
            report = replace(report, used_memory_mib=None, used_unreadable=False)
        return (*_processes(report.process_ids), *usage.signs(report))

    def _memory_mib(self, said: Advertisement) -> int | None:
        for known in (self.board.report.memory_mib, said.memory_mib):
            if known is not None:
                return known
        return self.model.memory_mib if self.model is not None else None

    def _instances(self, offered: frozenset[str]) -> tuple[GpuInstance, ...]:
        found = tuple(self._concluded(offered))
        return tuple(sorted(found, key=_order))

    def _concluded(self, offered: frozenset[str]) -> Iterator[GpuInstance]:
        mig, listed = self.mig, self.listed or ()
        if mig is None:
            yield from (_unplaced(report) for report in listed)
            return
        concluded = instances.conclude(mig, listed, offered=offered, layout=self._layout(mig))
        self.notes += concluded.notes
        for instance in concluded.instances:
            yield self._instance(mig, instance)

    def _layout(self, mig: MigCapability) -> frozenset[Slot] | None:
        """Return the layout that a source without instance ids tells beside the listed ones."""
        if self.board.layout is None:
            return None
        return frozenset(
            Slot(placement=report.placement, profile=profile.name)
            for report in self.board.layout
            if report.placement is not None
            and (profile := mig.by_name.get(report.profile or "")) is not None
        )

    def _instance(self, mig: MigCapability, instance: Instance) -> GpuInstance:
        report, candidates = instance.report, instance.candidates
        if self.vague:
            candidates = _everywhere(mig, instance)
        alone = self.pinned or self.vague or not instance.certain
        signs = usage.signs(report)
        return GpuInstance(
            profile=instance.profiles[0],
            candidates=candidates,
            instance_id=report.instance_id,
            hold=_hold(report.process_ids, unsure=alone or bool(signs)),
            holders=(*_processes(report.process_ids), *signs),
            compute_instances=report.compute_instances,
        )


def _everywhere(mig: MigCapability, instance: Instance) -> tuple[Placement, ...]:
    profile = mig.by_name.get(instance.profiles[0])
    return profile.placements if profile is not None else instance.candidates


def _unplaced(report: InstanceReport) -> GpuInstance:
    """Return an instance on a GPU of unknown model: nothing follows from what is known of it."""
    return GpuInstance(
        profile=report.profile or "unknown",
        candidates=(report.placement,) if report.placement is not None else (),
        instance_id=report.instance_id,
        hold=_hold(report.process_ids, unsure=True),
        holders=(*_processes(report.process_ids), *usage.signs(report)),
        compute_instances=report.compute_instances,
    )


def _shadowed(instance: GpuInstance, somewhere: tuple[str, ...]) -> GpuInstance:
    """Return an instance that may be the one that somebody uses."""
    if not somewhere:
        return instance
    hold = Hold.HELD if instance.hold is Hold.HELD else Hold.POSSIBLE
    return replace(instance, hold=hold, holders=(*instance.holders, *somewhere))


def _hold(processes: tuple[int, ...], *, unsure: bool) -> Hold:
    if processes:
        return Hold.HELD
    return Hold.POSSIBLE if unsure else Hold.FREE


def _processes(numbers: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"process {number}" for number in sorted(numbers))


def _order(instance: GpuInstance) -> tuple[bool, tuple[Placement, ...], str, int]:
    identity = -1 if instance.instance_id is None else instance.instance_id
    return (instance.placement is None, instance.candidates, instance.profile, identity)
