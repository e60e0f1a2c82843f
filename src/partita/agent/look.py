"""One observation, worked out GPU by GPU: what is wanted, how each device is offered. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from partita.agent import devices, serving_rules
from partita.agent import target as targeting
from partita.agent.devices import GpuDevices
from partita.agent.health import Verdicts
from partita.agent.holders import Holders
from partita.agent.memory import Memory
from partita.agent.observation import Observation
from partita.agent.presence import Device, Presence, Seen, present
from partita.agent.serving_rules import ServingRule
from partita.agent.target import Target
from partita.config.agent_document import AgentDocument
from partita.config.device_plugin import MigStrategy
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverGpu
from partita.ports.slice_server import Offer, OfferedSlice

__all__ = ["REST_SECONDS", "UNSEEN_SECONDS", "Look", "View", "quiet_since", "unseen", "views"]

REST_SECONDS = 0.1
"""How long a slice must have been out of the kubelet's hands before it is destroyed: far longer
than a kubelet takes from picking a device to asking for it."""

UNSEEN_SECONDS = 2.0
"""How long a kubelet may take to read a list: until it was seen to know that a slice is usable, or
this is over, it cannot be believed that it knows that the slice no longer is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One GPU that can be read, with all that was found out about it.

    Attributes:
        gpu: The GPU.
        target: What it is to become.
        rule: How it is served.
        devices: Its devices.
        presences: How each is offered, by UUID.
        nameless: Why its MIG devices have no name under the rule, None when they have.
    """

    gpu: DriverGpu
    target: Target
    rule: ServingRule
    devices: GpuDevices
    presences: Mapping[str, Presence]
    nameless: str | None = None


@dataclass(slots=True, kw_only=True)
class Look:
    """One observation on its way to a decision.

    Attributes:
        seen: The observation.
        document: What is wanted.
        memory: What is kept from before.
        holders: Who holds what.
        verdicts: Who is sick.
    """

    seen: Observation
    document: AgentDocument
    memory: Memory
    holders: Holders = field(default_factory=Holders)
    verdicts: Verdicts = field(default_factory=Verdicts)


def views(look: Look, gpus: Sequence[DriverGpu]) -> Iterable[View]:
    """Yield the GPUs that can be read; none while nobody knows who holds what."""
    if look.holders.blind is not None:
        return
    aims = targeting.targets(gpus, look.document, look.holders)
    readable = [gpu for gpu in gpus if gpu.failure is None]
    by_document = serving_rules.of_document(look.document)
    single = by_document.naming is MigStrategy.SINGLE
    strangers = _strangers(look, readable)
    objection = devices.single_objection(readable) if single else None
    for gpu in readable:
        aim = aims[gpu.uuid]
        rule = serving_rules.of_policy(aim.policies) if aim.policies else by_document
        found = devices.with_vanished(
            devices.of(gpu, aim, rule, named=objection is None),
            look.memory.offered.get(gpu.uuid, ()),
            strangers,
        )
        yield View(
            gpu=gpu,
            target=aim,
            rule=rule,
            devices=found,
            nameless=objection if gpu.mig_mode is MigMode.ON else None,
            presences={one.uuid: present(one, _seen(look, one)) for one in found.all()},
        )


def _strangers(look: Look, gpus: Sequence[DriverGpu]) -> frozenset[str]:
    """Return held MIG devices that no GPU shows, and that this agent never offered."""
    known = {mig.uuid for gpu in gpus for i in gpu.instances for mig in i.mig_devices}
    known.update(one.slice.device for of_gpu in look.memory.offered.values() for one in of_gpu)
    return frozenset(uuid for uuid in look.holders.ids if uuid.startswith("MIG-")) - known


def unseen(look: Look, offers: Iterable[Offer]) -> Mapping[str, float]:
    """Return since when the kubelet has not been seen to know what is offered as usable."""
    before = look.memory.unseen
    hidden = look.seen.serving.undeliverable
    return {
        one.slice.device_id: before.get(one.slice.device_id, look.seen.at)
        for offer in offers
        for one in offer.slices
        if not look.holders.is_listed(one.slice.device_id)
        and one.slice.device not in hidden
        and (one.usable or _is_unseen(look, one))
    }


def quiet_since(look: Look, views: Mapping[str, View]) -> Mapping[str, float]:
    """Return since when nothing of a device that is to go can be in use."""
    known = look.memory.quiet_since
    if not views:
        return known if look.holders.blind is None else {}
    return {
        uuid: known.get(uuid, look.seen.at)
        for view in views.values()
        for uuid, presence in view.presences.items()
        if presence.quiet
    }


def _seen(look: Look, device: Device) -> Seen:
    uuid, gpu = device.uuid, device.pattern.gpu_uuid
    before = [one for one in look.memory.offered.get(gpu, ()) if one.slice.device == uuid]
    sessions = look.seen.serving.sessions
    undelivered = {
        one.slice.device_id: one.slice.resource
        for one in before
        if (session := sessions.get(one.slice.resource)) is not None
        and session.connected
        and not session.delivered
    }
    since = look.memory.quiet_since.get(uuid)
    return Seen(
        held={key: value for key, (value, _) in look.holders.ids.get(uuid, {}).items()},
        allocatable={**undelivered, **look.holders.allocatable.get(uuid, {})},
        offered={one.slice.device_id: one.slice.resource for one in before},
        usable=frozenset(
            one.slice.device_id for one in before if one.usable or _is_unseen(look, one)
        ),
        rested=since is not None and look.seen.at - since >= REST_SECONDS,
    )


def _is_unseen(look: Look, one: OfferedSlice) -> bool:
    """Tell whether the kubelet may still be about to read that a slice is usable."""
    since = look.memory.unseen.get(one.slice.device_id)
    return since is not None and look.seen.at - since < UNSEEN_SECONDS
