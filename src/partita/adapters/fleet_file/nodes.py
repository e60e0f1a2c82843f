"""The ``nodes`` of a fleet file: models, MIG instances, replicas and holders."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from partita.adapters.fleet_file.record import Field, Record
from partita.adapters.fleet_file.world import World
from partita.catalog import legality, library
from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.config.untyped import shown
from partita.errors import UnknownModelError, UnknownProfileError
from partita.model import resource
from partita.model.gpu import MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Phase, Pod
from partita.model.report import GpuReport, InstanceReport, NodeReport

__all__ = ["KEYS", "read"]

KEYS = ("name", "count", "labels", "gpus")

_GPU_KEYS = ("model", "count", "mig", "instances", "held_by", "replicas")
_INSTANCE_KEYS = ("profile", "start", "held_by")
_POD = re.compile(
    r"(?:(?P<namespace>[a-z0-9-]{1,63})/)?(?P<name>[a-z0-9][a-z0-9.-]{0,200})\Z", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """Who holds a place of the pattern: the whole GPU, or the instance at ``start``."""

    written: Field
    resource: str
    start: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """GPUs that are all alike.

    Attributes:
        count: How many of them on each node.
        gpu: The first of them.
        holders: Who holds what on each.
    """

    count: int
    gpu: GpuReport
    holders: tuple[_Holder, ...]


def read(entry: Record, world: World) -> None:
    """Add the nodes of one entry, their GPUs, and the pods that hold them.

    Raises:
        InputError: When a value is unknown, wrong, or not possible on the hardware.
    """
    name = entry.need("name")
    count = entry.get("count")
    copies = 1 if count is None else count.whole(least=1)
    patterns = [_pattern(gpu) for gpu in entry.records("gpus", "a GPU", _GPU_KEYS)]
    each = sum(pattern.count * (1 + len(pattern.gpu.instances or ())) for pattern in patterns)
    world.spend(copies * (1 + each), count or name)
    labels = _labels(entry.get("labels"))
    for number in range(copies):
        node = name.name() if count is None else f"{name.name()}-{number}"
        gpus = tuple(_numbered(patterns))
        resources = _resources(gpus)
        world.add_node(
            Node(name=node, labels=labels, capacity=resources, allocatable=resources),
            NodeReport(node=node, source=entry.path, gpus=gpus, complete=True),
            name,
        )
        _add_holders(patterns, world, number=number, copies=copies)


def _labels(field: Field | None) -> Mapping[str, str]:
    return {label.key: label.text() for label in field.mapping()} if field is not None else {}


def _numbered(patterns: list[_Pattern]) -> Iterator[GpuReport]:
    alike = (pattern.gpu for pattern in patterns for _ in range(pattern.count))
    yield from (replace(gpu, index=index) for index, gpu in enumerate(alike))


def _add_holders(patterns: list[_Pattern], world: World, *, number: int, copies: int) -> None:
    """Add who holds something on the last node, which is copy ``number`` of its entry."""
    node, index = world.nodes[-1].name, 0
    for pattern in patterns:
        for position in range(pattern.count):
            repeat = number * pattern.count + position
            suffix = f"-{repeat}" if copies * pattern.count > 1 else ""
            for holder in pattern.holders:
                world.add_pod(_pod(holder, node, index, suffix), holder.written)
            index += 1


def _pod(holder: _Holder, node: str, index: int, suffix: str) -> Pod:
    text = holder.written.text()
    match = _POD.match(text)
    if match is None:
        message = f"held_by: expected a pod, got: {shown(text)}"
        holder.written.fail(message, "write it like train or team/train")
    return Pod(
        namespace=match["namespace"] or "default",
        name=match["name"] + suffix,
        requests={holder.resource: 1},
        node=node,
        gpu_index=index,
        placement_start=holder.start,
        phase=Phase.RUNNING,
    )


def _pattern(entry: Record) -> _Pattern:
    model = _model(entry.need("model"))
    on = _mig_on(entry, model)
    holder = entry.get("held_by")
    replicas = entry.get("replicas")
    if on and (holder or replicas):
        (holder or replicas or entry.need("model")).fail(
            "a GPU with MIG on is neither held nor replicated as a whole",
            "give the instances holders, or set `mig: off`",
        )
    instances, holders = _instances(entry, model) if on and model.mig else ((), ())
    if holder is not None:
        holders = (_Holder(written=holder, resource=resource.WHOLE_GPU, start=None),)
    off = MigMode.OFF if model.mig is not None else MigMode.UNSUPPORTED
    gpu = GpuReport(
        index=0,
        product=model.names[0],
        mig_mode=MigMode.ON if on else off,
        instances=instances,
        memory_mib=model.memory_mib,
        replicas=replicas.whole(least=1) if replicas is not None else 1,
    )
    return _Pattern(count=entry.whole("count", 1, least=1), gpu=gpu, holders=holders)


def _model(field: Field) -> GpuModel:
    try:
        return library.get(field.term())
    except UnknownModelError as error:
        field.fail(error.message, error.hint)


def _mig_on(entry: Record, model: GpuModel) -> bool:
    switch, instances = entry.get("mig"), entry.get("instances")
    on = switch.switch() if switch is not None else instances is not None
    if on and model.mig is None:
        (switch or entry.need("instances")).fail(
            f"there is no MIG on: {model.names[0]}",
            "leave `mig` and `instances` out, or use `replicas`",
        )
    if instances is not None and not on:
        instances.fail("there are no instances with MIG off", "set `mig: on`")
    return on


def _instances(
    entry: Record, model: GpuModel
) -> tuple[tuple[InstanceReport, ...], tuple[_Holder, ...]]:
    slots: list[legality.Slot] = []
    holders = []
    for item in entry.records("instances", "an instance", _INSTANCE_KEYS):
        written, start = item.need("profile"), item.need("start").whole()
        try:
            profile = model.profile(written.term())
        except UnknownProfileError as error:
            written.fail(error.message, error.hint)
        placement = Placement(start=start, size=profile.memory_slices)
        slots.append(legality.Slot(placement=placement, profile=profile.name))
        _check(model.mig, slots, item.need("start"))
        holder = item.get("held_by")
        if holder is not None:
            name = resource.mig_resource(profile.name)
            holders.append(_Holder(written=holder, resource=name, start=start))
    reports = (InstanceReport(profile=s.profile, placement=s.placement) for s in sorted(slots))
    return tuple(reports), tuple(holders)


def _check(mig: MigCapability | None, slots: list[legality.Slot], at: Field) -> None:
    objection = legality.objection(mig, slots) if mig is not None else None
    if objection is not None:
        at.fail(f"these instances cannot stand on one GPU: {objection}", "move or drop one of them")


def _resources(gpus: tuple[GpuReport, ...]) -> Mapping[str, int]:
    """Return what the device plugin would offer under the mixed strategy."""
    found: Counter[str] = Counter()
    for gpu in gpus:
        if gpu.mig_mode is not MigMode.ON:
            found[resource.WHOLE_GPU] += gpu.replicas or 1
        for instance in gpu.instances or ():
            if instance.profile is not None:
                found[resource.mig_resource(instance.profile)] += 1
    return dict(found)
