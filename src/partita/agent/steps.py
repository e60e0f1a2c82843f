"""The next step of one GPU towards its target, and whether the last one did what it should. Pure.

Steps come in the planner's order: what is to go is destroyed, then the mode is changed, then
instances are created, the biggest first. A step is taken only when nothing is left that it could
harm; until then the next one that can be taken is, and the rest waits.
"""

from dataclasses import dataclass

from partita.agent.holders import Holders
from partita.agent.instruction import (
    CreateInstance,
    DestroyInstance,
    Instruction,
    Outcome,
    ResetGpu,
    SetMode,
)
from partita.agent.look import View
from partita.agent.target import Target, model_of, profile_of
from partita.catalog import legality
from partita.catalog.legality import Slot
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverGpu, DriverInstance, ModeChange

__all__ = ["Next", "broken_promise", "next_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What comes next for one GPU.

    Attributes:
        step: What to do now, None when nothing can be done now.
        withdrawing: Whether something is about to leave the kubelet's hands, so that a step can
            follow soon.
        waits: For whom the rest waits, None for nobody.
    """

    step: Instruction | None = None
    withdrawing: bool = False
    waits: str | None = None


def next_step(view: View, holders: Holders) -> Next:
    """Return the next step of a GPU that is well and whose processes are known."""
    step = None if view.target.keeps else _step(view, holders)
    return Next(step=step) if step is not None else _waiting(view, holders)


def _step(view: View, holders: Holders) -> Instruction | None:
    """Return the first step that can be taken now."""
    destroys = (_destroy(view, instance, holders) for instance in view.gpu.instances)
    destroy = next((step for step in destroys if step is not None), None)
    return destroy or _mode(view, holders) or _create(view.gpu, view.target)


def broken_promise(outcome: Outcome, gpu: DriverGpu) -> str | None:
    """Return what is not as it should be after a step that the driver called done."""
    match outcome.instruction:
        case CreateInstance(placement=placement, profile=profile):
            there = any(
                one.placement == placement and profile_of(gpu, one) == profile and one.mig_devices
                for one in gpu.instances
            )
            return None if there else "the driver said done, but it does not stand there"
        case DestroyInstance(instance_id=instance_id, devices=uuids):
            stays = any(
                one.instance_id == instance_id
                and tuple(mig.uuid for mig in one.mig_devices) == uuids
                for one in gpu.instances
            )
            return "the driver said done, but it still stands" if stays else None
        case SetMode(mode=mode):
            if outcome.change is ModeChange.IN_USE:
                return "the driver says that somebody uses the GPU"
            now = gpu.mig_mode if outcome.change is ModeChange.DONE else gpu.pending_mig_mode
            return None if now is mode else f"the driver said done, but MIG is {now.value}"
        case ResetGpu(mode=mode):
            stays = gpu.mig_mode is not mode
            return f"after the reset MIG is {gpu.mig_mode.value}" if stays else None
        case _:
            return None


def _destroy(view: View, instance: DriverInstance, holders: Holders) -> DestroyInstance | None:
    """Return the step that destroys an instance, if it is to go and nothing can use it."""
    gpu, devices, presences = view.gpu, view.devices, view.presences
    stump = not instance.mig_devices  # what is left when destroying it failed half-way
    if not (stump or instance.instance_id in view.target.surplus):
        return None
    if holders.users(gpu.uuid, instance.instance_id) or len(instance.mig_devices) > 1:
        return None
    gone = [one for one in devices.vanished if one.pattern.instance_id == instance.instance_id]
    concerned = [devices.mig[instance.instance_id], *gone]
    if any(not presences[one.uuid].released for one in concerned):
        return None
    if stump and devices.strangers:
        return None  # one of them may be what stood here
    foreign = (presences[one.uuid].foreign for one in concerned)
    return DestroyInstance(
        uuid=gpu.uuid,
        instance_id=instance.instance_id,
        profile=profile_of(gpu, instance) or f"profile {instance.profile_id}",
        placement=instance.placement,
        device_ids=frozenset().union(*foreign, (mig.uuid for mig in instance.mig_devices)),
        devices=tuple(mig.uuid for mig in instance.mig_devices),
    )


def _mode(view: View, holders: Holders) -> SetMode | ResetGpu | None:
    gpu, target = view.gpu, view.target
    if target.mode is None or gpu.mig_mode is MigMode.UNSUPPORTED:
        return None
    if gpu.mig_mode is target.mode:
        pending = gpu.pending_mig_mode not in (target.mode, MigMode.UNSUPPORTED)
        return SetMode(uuid=gpu.uuid, mode=target.mode) if pending else None
    whole = view.presences[gpu.uuid]
    busy = gpu.instances or any(
        users for key, users in holders.processes.items() if key[0] == gpu.uuid
    )
    if busy or not whole.released:
        return None
    ids = whole.foreign | {gpu.uuid}
    if gpu.pending_mig_mode is not target.mode:
        return SetMode(uuid=gpu.uuid, mode=target.mode, device_ids=ids)
    if target.may_reset:
        return ResetGpu(uuid=gpu.uuid, mode=target.mode, device_ids=ids)
    return None


def _create(gpu: DriverGpu, target: Target) -> CreateInstance | None:
    """Return the first instance that can be created beside all that stands now."""
    model = model_of(gpu)
    if gpu.mig_mode is not MigMode.ON or model is None or model.mig is None:
        return None
    standing = [
        Slot(placement=one.placement, profile=profile_of(gpu, one) or "") for one in gpu.instances
    ]
    for wanted in target.create:
        slot = Slot(placement=wanted.placement, profile=wanted.profile)
        if wanted.profile_id is None or legality.objection(model.mig, [*standing, slot]):
            continue
        return CreateInstance(
            uuid=gpu.uuid,
            profile=wanted.profile,
            profile_id=wanted.profile_id,
            placement=wanted.placement,
        )
    return None


def _waiting(view: View, holders: Holders) -> Next:
    """Return what keeps a GPU from its target for now."""
    gpu, target, devices = view.gpu, view.target, view.devices
    held, moving = [], False
    for device in devices.all():
        presence = view.presences[device.uuid]
        ending = [one for one in presence.slices if one.leaving or not one.usable]
        names = [name for one in ending for name in holders.of_id(one.slice.device_id)]
        if device in devices.vanished:
            names = [f"{name} holds {device.uuid}, which has gone" for name in names]
        held += names
        moving = moving or any(
            holders.is_listed(one.slice.device_id) for one in ending if not one.usable
        )
        moving = moving or not (presence.released or holders.holders(device.uuid))
    goes = [i for i in gpu.instances if i.instance_id in target.surplus]
    held += [user for one in goes for user in holders.users(gpu.uuid, one.instance_id)]
    if target.mode not in (None, gpu.mig_mode) and not gpu.instances:
        held += holders.users(gpu.uuid)
    return Next(withdrawing=moving, waits=", ".join(dict.fromkeys(held)) or None)
