"""From what is decided for each GPU to what is offered of each resource. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from partita.agent.look import Look, View
from partita.ports.slice_server import Offer, OfferedSlice

__all__ = ["by_resource", "offers"]


def offers(
    look: Look,
    views: Mapping[str, View],
    offered: Mapping[str, Sequence[OfferedSlice]],
    vanished: frozenset[str],
) -> tuple[Offer, ...]:
    """Return what is offered; what is sick or gone is unusable."""
    sick = look.verdicts
    there = {gpu.uuid for gpu in look.seen.gpus or ()}
    slices = [
        one
        if uuid in there
        and uuid not in sick.gpus
        and (uuid, one.slice.instance_id) not in sick.instances
        and one.slice.device not in vanished
        else replace(one, usable=False)
        for uuid, of_gpu in offered.items()
        for one in of_gpu
    ]
    one_each = {
        one.slice.resource
        for uuid, view in views.items()
        if view.rule.one_each
        for one in offered[uuid]
        if one.slice.slot is not None
    }
    out_of_sight = {one.slice.resource for u in offered if u not in views for one in offered[u]}
    return by_resource(slices, frozenset(one_each | (out_of_sight & look.memory.one_each)))


def by_resource(slices: Iterable[OfferedSlice], one_each: frozenset[str]) -> tuple[Offer, ...]:
    """Return slices by resource; those in ``one_each`` go to a container one at a time."""
    found: dict[str, list[OfferedSlice]] = {}
    for one in slices:
        found.setdefault(one.slice.resource, []).append(one)
    return tuple(
        Offer(resource=name, slices=tuple(of_it), one_each=name in one_each)
        for name, of_it in sorted(found.items())
    )
