"""Slices that stand but that the kubelet does not offer: gone or unhealthy, and nobody says which.

Only allocatable counts for scheduling. Where a node offers fewer slices of a kind than stand, the
missing ones count as in use, and none of the kind is touched.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from partita.catalog import library
from partita.model import resource
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.model.node import Node

__all__ = ["Withheld", "withhold"]

_Held = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """GPUs and counts with what is not offered taken out.

    Attributes:
        gpus: The GPUs, in the given order.
        held: (node, resource) → slices that are in use or not offered.
        notes: What is not offered, in words for the user.
    """

    gpus: tuple[Gpu, ...]
    held: _Held
    notes: tuple[str, ...]


def withhold(nodes: Mapping[str, Node], gpus: Iterable[Gpu], held: _Held) -> Withheld:
    """Take slices out that stand but are not allocatable.

    Args:
        nodes: Node objects by name; one without allocatable resources says nothing.
        gpus: GPUs with their holders.
        held: (node, resource) → slices in use.
    """
    listed = tuple(gpus)
    standing: dict[tuple[str, str], int] = {}
    for gpu in listed:
        for name, count in _slices(gpu):
            standing[gpu.node, name] = standing.get((gpu.node, name), 0) + count
    missing = {
        (node, name): count - nodes[node].allocatable[name]
        for (node, name), count in standing.items()
        if node in nodes and count > nodes[node].allocatable.get(name, count)
    }
    counts = dict(held)
    for key, count in missing.items():
        used = counts.get(key, 0)
        counts[key] = max(used, min(used + count, standing[key]))
    return Withheld(
        gpus=tuple(_marked(gpu, missing) for gpu in listed),
        held=counts,
        notes=tuple(
            f"{node}: {count} of {standing[node, name]} {name} are not allocatable, gone or "
            f"unhealthy; which ones is not known, so none is re-cut"
            for (node, name), count in sorted(missing.items())
        ),
    )


def _slices(gpu: Gpu) -> Iterator[tuple[str, int]]:
    """Yield the resources that a GPU serves as it stands, with counts."""
    if gpu.problem is not None or gpu.single_strategy:
        return
    if gpu.mig_mode is not MigMode.ON:
        yield gpu.resource, gpu.replicas
    for instance in gpu.instances:
        yield _resource(gpu, instance), 1


def _resource(gpu: Gpu, instance: GpuInstance) -> str:
    known = library.profile(gpu.model, instance.profile)
    return resource.mig_resource(known.name if known is not None else instance.profile)


def _marked(gpu: Gpu, missing: Mapping[tuple[str, str], int]) -> Gpu:
    whole = gpu.mig_mode is not MigMode.ON and (gpu.node, gpu.resource) in missing
    hold = Hold.POSSIBLE if whole and gpu.hold is Hold.FREE else gpu.hold
    instances = tuple(
        replace(instance, hold=Hold.POSSIBLE)
        if instance.hold is Hold.FREE and (gpu.node, _resource(gpu, instance)) in missing
        else instance
        for instance in gpu.instances
    )
    return replace(gpu, hold=hold, instances=instances)
