"""The reports of several sources on the GPUs of one node, joined to one report per GPU.

A source fills what the ones before it leave open. Where two contradict each other the one nearer to
the driver counts, and the contradiction is named. Nearest is ``nvidia-smi -q -x``; a layout that a
node object tells comes last.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from partita.catalog import library
from partita.model.gpu import ComputeInstance
from partita.model.report import GpuReport, InstanceReport, NodeReport

__all__ = ["Board", "join"]

_Instances = tuple[InstanceReport, ...]
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What all sources together say of one GPU.

    Attributes:
        report: The facts; its instances are None when no source lists them.
        source: Where its instances come from, else where the GPU does.
        layout: Placements by a source without instance ids, beside the listed instances.
        from_driver: Whether the driver listed the instances.
    """

    report: GpuReport
    source: str
    layout: _Instances | None = None
    from_driver: bool = False


def join(node: str, reports: Sequence[NodeReport]) -> tuple[tuple[Board, ...], tuple[str, ...]]:
    """Return one board per GPU index, by index, and notes on contradictions."""
    joined: dict[int, _Joining] = {}
    for report in sorted(reports, key=_distance):
        for gpu in report.gpus:
            if gpu.index in joined:
                joined[gpu.index].add(gpu, report)
            else:
                joined[gpu.index] = _Joining(node=node, first=report, report=gpu)
    boards = tuple(joined[index].board() for index in sorted(joined))
    return boards, tuple(note for index in sorted(joined) for note in joined[index].notes)


def _distance(report: NodeReport) -> int:
    """How far a source is from the driver: the XML, ``-L``, ``-lgi``, anything else."""
    uuids = any(gpu.uuid is not None for gpu in report.gpus)
    ids = any(i.instance_id is not None for gpu in report.gpus for i in gpu.instances or ())
    return (0 if ids else 1) if uuids else (2 if ids else 3)


_OTHER = 3


@dataclass(kw_only=True)
class _Joining:
    """The joined report of one GPU while sources are added."""

    node: str
    first: NodeReport
    report: GpuReport
    notes: list[str] = field(default_factory=list)
    layout: _Instances | None = None
    lister: NodeReport | None = None

    def __post_init__(self) -> None:
        if self.report.instances is not None:
            self.lister = self.first

    def board(self) -> Board:
        return Board(
            report=self.report,
            source=(self.lister or self.first).source,
            layout=self.layout,
            from_driver=self.lister is not None and _distance(self.lister) < _OTHER,
        )

    def add(self, gpu: GpuReport, source: NodeReport) -> None:
        for name in ("product", "uuid", "mig_mode"):
            self._compare(name, gpu, source)
        own = self.report
        self.report = replace(
            own,
            product=own.product or gpu.product,
            pci_device=own.pci_device or gpu.pci_device,
            uuid=own.uuid or gpu.uuid,
            mig_mode=_first(own.mig_mode, gpu.mig_mode),
            pending_mig_mode=_first(own.pending_mig_mode, gpu.pending_mig_mode),
            process_ids=_union(own.process_ids, gpu.process_ids),
            used_memory_mib=_most(own.used_memory_mib, gpu.used_memory_mib),
            used_unreadable=own.used_unreadable or gpu.used_unreadable,
            processes_unreadable=own.processes_unreadable or gpu.processes_unreadable,
            memory_mib=_first(own.memory_mib, gpu.memory_mib),
            reserved_memory_mib=_first(own.reserved_memory_mib, gpu.reserved_memory_mib),
            replicas=_first(own.replicas, gpu.replicas),
            problem=own.problem or gpu.problem,
        )
        if gpu.instances is not None:
            self._add_instances(gpu.instances, source)

    def _compare(self, name: str, gpu: GpuReport, source: NodeReport) -> None:
        ours, theirs = getattr(self.report, name), getattr(gpu, name)
        if ours is None or theirs is None or ours == theirs:
            return
        if name == "product" and library.find(ours) is library.find(theirs) is not None:
            return
        shown = [getattr(value, "value", value) for value in (ours, theirs)]
        what = name.replace("_", " ")
        self._note(
            f"{what} is {shown[0]} in {self.first.source}, {shown[1]} in {source.source};"
            f" taken: {shown[0]}"
        )

    def _add_instances(self, others: _Instances, source: NodeReport) -> None:
        if self.report.instances is None:
            self.lister = source
            self.report = replace(self.report, instances=others)
            return
        if _distance(source) == _OTHER and any(i.placement for i in others):
            self._add_layout(others, source)
            return
        ours, names = self.report.instances, (self._lister_source, source.source)
        if not _have_ids(ours) and _have_ids(others):
            ours, others, names = others, ours, (names[1], names[0])
        together = _by_id(ours, others) if _have_ids(others) else _by_order(ours, others)
        for note in _missing(ours, others, names):
            self._note(note)
        self.report = replace(self.report, instances=together)

    def _add_layout(self, others: _Instances, source: NodeReport) -> None:
        ours = self.report.instances or ()
        if len(ours) == len(others):
            self.layout = others
        else:
            self._note(
                f"{len(ours)} instances stand by {self._lister_source}, {len(others)} by the"
                f" layout in {source.source}, which is ignored"
            )

    @property
    def _lister_source(self) -> str:
        return (self.lister or self.first).source

    def _note(self, text: str) -> None:
        self.notes.append(f"node {self.node}: GPU {self.report.index}: {text}")


def _have_ids(instances: _Instances) -> bool:
    return any(instance.instance_id is not None for instance in instances)


def _by_id(ours: _Instances, others: _Instances) -> _Instances:
    by_id = {instance.instance_id: instance for instance in others}
    known = {instance.instance_id for instance in ours}
    filled = [
        _filled(own, by_id[own.instance_id]) if own.instance_id in by_id else own for own in ours
    ]
    return (*filled, *(other for other in others if other.instance_id not in known))


def _by_order(ours: _Instances, others: _Instances) -> _Instances:
    """Pair with a list without ids: by order when ours names no profile, else by profile."""
    if len(ours) == len(others) and all(own.profile is None for own in ours):
        return tuple(_filled(own, other) for own, other in zip(ours, others, strict=True))
    mine = Counter(own.profile for own in ours)
    theirs = Counter(other.profile for other in others)
    unique = {o.profile: o for o in others if mine[o.profile] == theirs[o.profile] == 1}
    return tuple(
        _filled(own, unique[own.profile]) if own.profile in unique else own for own in ours
    )


def _missing(ours: _Instances, others: _Instances, names: tuple[str, str]) -> Iterator[str]:
    """Yield what one source lists and the other does not."""
    if not (_have_ids(ours) and _have_ids(others)):
        if len(ours) != len(others):
            yield f"{names[0]} lists {len(ours)} instances, {names[1]} {len(others)}"
        return
    mine, theirs = {i.instance_id for i in ours}, {i.instance_id for i in others}
    for number in sorted(n for n in mine ^ theirs if n is not None):
        there, absent = names if number in mine else (names[1], names[0])
        yield f"instance {number} is in {there}, not in {absent}"


def _filled(own: InstanceReport, other: InstanceReport) -> InstanceReport:
    return InstanceReport(
        profile=own.profile or other.profile,
        profile_id=_first(own.profile_id, other.profile_id),
        instance_id=_first(own.instance_id, other.instance_id),
        placement=own.placement or other.placement,
        memory_mib=_first(own.memory_mib, other.memory_mib),
        decoder_count=_first(own.decoder_count, other.decoder_count),
        copy_engine_count=_first(own.copy_engine_count, other.copy_engine_count),
        jpeg_count=_first(own.jpeg_count, other.jpeg_count),
        ofa_count=_first(own.ofa_count, other.ofa_count),
        compute_instances=_compute_instances(own.compute_instances, other.compute_instances),
        process_ids=_union(own.process_ids, other.process_ids),
        used_memory_mib=_most(own.used_memory_mib, other.used_memory_mib),
        used_unreadable=own.used_unreadable or other.used_unreadable,
        processes_unreadable=own.processes_unreadable or other.processes_unreadable,
    )


def _compute_instances(
    ours: tuple[ComputeInstance, ...], others: tuple[ComputeInstance, ...]
) -> tuple[ComputeInstance, ...]:
    if len(ours) != len(others):
        return ours or others
    return tuple(
        ComputeInstance(
            instance_id=own.instance_id,
            uuid=own.uuid or other.uuid,
            sm_count=_first(own.sm_count, other.sm_count),
        )
        for own, other in zip(ours, others, strict=True)
    )


def _first(own: _Value | None, other: _Value | None) -> _Value | None:
    return other if own is None else own


def _most(own: int | None, other: int | None) -> int | None:
    return max((value for value in (own, other) if value is not None), default=None)


def _union(ours: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*ours, *others)))
