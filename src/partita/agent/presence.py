"""How one device is offered to the kubelet: a whole GPU or a MIG device, shared or not. Pure.

A device is served as one *family* of device IDs: one ID, or a number of slots, under one resource
name. What was served of it before under another name or in another number of ways is *foreign*:

====================================  =============================================================
a foreign ID is                       it is offered
====================================  =============================================================
held, or may be                       as usable: its pod must live through a restart of the kubelet
free, and the kubelet may give it     as unusable, so that it no longer may
free, and the kubelet does not        as unusable, until it has been so for a moment; then it goes
====================================  =============================================================

Only when no foreign ID is left does the family come. Within the family the slots that are held
come first, then the lowest numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from partita.agent.serving_rules import Family
from partita.model.slice import SEPARATOR, Slice, slot_id
from partita.ports.slice_server import OfferedSlice

__all__ = ["Device", "Presence", "Seen", "present"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A whole GPU or a MIG device.

    Attributes:
        pattern: A slice of it; resource, device ID, slot and budget are replaced.
        family: What it is to be served as; None = not at all.
        memory_mib: Its memory, None when unknown.
    """

    pattern: Slice
    family: Family | None
    memory_mib: int | None = None

    @property
    def uuid(self) -> str:
        """UUID of the device."""
        return self.pattern.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is seen of the IDs of one device.

    Attributes:
        held: Device ID → resource, of those that are held or may be.
        allocatable: Device ID → resource, of those that the kubelet may give away.
        offered: Device ID → resource, of those that were last offered, usable or not.
        usable: Device IDs that were last offered as usable: the kubelet may know no better yet.
        rested: Whether what is to go has been free and out of the kubelet's hands long enough.
    """

    held: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    offered: Mapping[str, str] = field(default_factory=dict)
    usable: frozenset[str] = frozenset()
    rested: bool = False

    def is_loose(self, device_id: str) -> bool:
        """Tell whether a pod may have or get an ID."""
        return device_id in self.held or device_id in self.allocatable or device_id in self.usable


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """How a device is offered.

    Attributes:
        slices: What is offered of it.
        quiet: Whether no pod has or may get any ID that is to go; after a rest it goes.
        released: Whether nothing foreign is left: it may be destroyed, or served otherwise.
        foreign: Foreign device IDs that are or were there.
    """

    slices: tuple[OfferedSlice, ...] = ()
    quiet: bool = True
    released: bool = True
    foreign: frozenset[str] = frozenset()


def present(device: Device, seen: Seen) -> Presence:
    """Return how to offer a device."""
    foreign = {
        device_id: resource
        for ids in (seen.offered, seen.allocatable, seen.held)
        for device_id, resource in ids.items()
        if not _is_of(device.family, device_id, resource)
    }
    clear = not any(seen.is_loose(device_id) for device_id in foreign)
    released = clear and (seen.rested or (not foreign and device.family is not None))
    slices = tuple(_family(device, seen)) if released else tuple(_foreign(device, foreign, seen))
    ends = [one.slice.device_id for one in slices if not one.usable]
    return Presence(
        slices=slices,
        quiet=clear and not any(seen.is_loose(device_id) for device_id in ends),
        released=released,
        foreign=frozenset(foreign),
    )


def _is_of(family: Family | None, device_id: str, resource: str) -> bool:
    if family is None:
        return False
    shared = SEPARATOR in device_id
    return resource in (family.resource, "") and shared is (family.replicas > 1)


def _foreign(device: Device, foreign: Mapping[str, str], seen: Seen) -> Iterator[OfferedSlice]:
    """Yield what is to go, and of the family what a pod has or may get: it is never left out."""
    for device_id, resource in sorted(foreign.items()):
        if resource:
            held = device_id in seen.held
            yield OfferedSlice(
                slice=_slice(device, device_id, resource, None), usable=held, leaving=held
            )
    for device_id in sorted({*seen.held, *_kept(seen)}):
        if device_id not in foreign and device.family is not None:
            yield OfferedSlice(
                slice=_slice(device, device_id, device.family.resource, None),
                usable=device_id in seen.held,
            )


def _kept(seen: Seen) -> frozenset[str]:
    """Return the IDs that the kubelet may know as usable, or has not long enough known not to."""
    return frozenset((*seen.allocatable, *seen.usable, *(() if seen.rested else seen.offered)))


def _family(device: Device, seen: Seen) -> Iterator[OfferedSlice]:
    family = device.family
    if family is None:
        return
    if family.replicas == 1:
        yield OfferedSlice(slice=_slice(device, device.uuid, family.resource, 1))
        return
    held = sorted(_slot(device_id) for device_id in seen.held)
    taken = frozenset(held)
    free = (slot for slot in range(family.replicas) if slot not in taken)
    chosen = (*held, *islice(free, max(0, family.replicas - len(held))))
    stays = frozenset(chosen)
    for number, slot in enumerate(chosen):
        one = _slice(device, slot_id(device.uuid, slot), family.resource, family.replicas)
        yield OfferedSlice(slice=one, leaving=number >= family.replicas)
    for device_id in sorted(_kept(seen)):
        if _slot(device_id) not in stays:
            one = _slice(device, device_id, family.resource, family.replicas)
            yield OfferedSlice(slice=one, usable=False)


def _slice(device: Device, device_id: str, resource: str, replicas: int | None) -> Slice:
    pattern, memory = device.pattern, device.memory_mib
    return Slice(
        device_id=device_id,
        resource=resource,
        gpu_uuid=pattern.gpu_uuid,
        gpu_index=pattern.gpu_index,
        minor=pattern.minor,
        instance_id=pattern.instance_id,
        compute_instance_id=pattern.compute_instance_id,
        mig_index=pattern.mig_index,
        slot=_slot(device_id) if SEPARATOR in device_id else None,
        numa_node=pattern.numa_node,
        budget_mib=memory // replicas if memory is not None and replicas else None,
    )


def _slot(device_id: str) -> int:
    _, separator, slot = device_id.partition(SEPARATOR)
    return int(slot) if separator and slot.isascii() and slot.isdigit() else 0
