"""From what is decided for each GPU to what is offered of each resource. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from partita.agent.look import Look, View
from partita.ports.slice_server import Offer, OfferedSlice

__all__ = ["by_resource", "gone", "offers"]


def offers(
    look: Look,
    views: Mapping[str, View],
    offered: Mapping[str, Sequence[OfferedSlice]],
    gone: frozenset[str],
) -> tuple[Offer, ...]:
    """Return what is offered; what is sick or gone is unusable."""
    slices = []
    for uuid, of_gpu in offered.items():
        sick = uuid in look.verdicts.gpus or (look.seen.gpus is not None and _is_absent(look, uuid))
        for one in of_gpu:
            confined = (uuid, one.slice.instance_id or 0) in look.verdicts.instances
            confined = confined and one.slice.instance_id is not None
            well = not (sick or confined or one.slice.device_id in gone)
            slices.append(one if well else replace(one, usable=False))
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


def gone(views: Mapping[str, View], offered: Mapping[str, Sequence[OfferedSlice]]) -> Iterable[str]:
    """Yield IDs that are still offered although their device has gone."""
    for uuid, view in views.items():
        there = {device.uuid for device in view.devices.standing()}
        for one in offered[uuid]:
            if one.slice.device not in there:
                yield one.slice.device_id


def _is_absent(look: Look, uuid: str) -> bool:
    return all(gpu.uuid != uuid for gpu in look.seen.gpus or ())
