"""The devices of a GPU that can be served: the GPU itself and its MIG devices. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from partita.agent.presence import Device
from partita.agent.serving_rules import ServingRule
from partita.agent.target import Target, model_of, profile_of
from partita.catalog import library
from partita.config.device_plugin import MigStrategy
from partita.model.gpu import MigMode
from partita.model.slice import Slice
from partita.ports.gpu_driver import DriverGpu, DriverInstance
from partita.ports.slice_server import OfferedSlice

__all__ = ["GpuDevices", "of", "single_objection", "with_vanished"]

_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDevices:
    """The devices of one GPU.

    Attributes:
        whole: The GPU itself.
        mig: Instance id → its MIG device, of instances that have exactly one; of one without any
            a stand-in that nobody can be given, so that it too must rest before it is destroyed.
        vanished: MIG devices that were offered and are no longer there.
        strangers: Held MIG devices of which nobody knows where they were.
    """

    whole: Device
    mig: dict[int, Device]
    vanished: tuple[Device, ...] = ()
    strangers: frozenset[str] = frozenset()

    def standing(self) -> tuple[Device, ...]:
        """Return the GPU and its MIG devices."""
        return (self.whole, *self.mig.values())

    def all(self) -> tuple[Device, ...]:
        """Return them with those that have vanished."""
        return (*self.standing(), *self.vanished)


def of(gpu: DriverGpu, target: Target, rule: ServingRule, *, named: bool = True) -> GpuDevices:
    """Return the devices of a GPU, each with what it is to be served as.

    Args:
        gpu: A GPU that can be read.
        target: What it is to become.
        rule: How it is served.
        named: Whether MIG devices can be given a name under the rule.
    """
    return GpuDevices(
        whole=_whole(gpu, target, rule),
        mig={
            instance.instance_id: _mig_device(gpu, instance, target, rule, named=named)
            for instance in gpu.instances
            if len(instance.mig_devices) == 1
        }
        | {
            instance.instance_id: _stand_in(gpu, instance)
            for instance in gpu.instances
            if not instance.mig_devices
        },
    )


def _stand_in(gpu: DriverGpu, instance: DriverInstance) -> Device:
    pattern = replace(
        _pattern(gpu, f"{gpu.uuid}/{instance.instance_id}"), instance_id=instance.instance_id
    )
    return Device(pattern=pattern, family=None)


def with_vanished(
    devices: GpuDevices, offered: Sequence[OfferedSlice], strangers: frozenset[str]
) -> GpuDevices:
    """Return the devices together with those of an offer that are no longer there."""
    there = {device.uuid for device in devices.standing()}
    vanished = {
        one.slice.device: Device(pattern=one.slice, family=None)
        for one in offered
        if one.slice.device not in there
    }
    return replace(devices, vanished=tuple(vanished.values()), strangers=strangers)


def single_objection(gpus: Sequence[DriverGpu]) -> str | None:
    """Return why the strategy *single* has no name for these MIG devices, None when it has.

    Under it all of ``nvidia.com/gpu`` is the same: every GPU cut into the same profile, or none.
    Source: k8s-device-plugin v0.20.0, ``internal/rm``.
    """
    cut = [gpu for gpu in gpus if gpu.mig_mode is MigMode.ON]
    profiles = {profile_of(gpu, instance) for gpu in cut for instance in gpu.instances}
    if cut and len(cut) < len(gpus):
        return "strategy single: MIG is on for some GPUs of the node and off for others"
    if len(profiles) > 1:
        return f"strategy single: more than one profile stands: {', '.join(_names(profiles))}"
    return None


def _names(profiles: set[str | None]) -> Iterator[str]:
    yield from sorted(profile or "unknown" for profile in profiles)


def _whole(gpu: DriverGpu, target: Target, rule: ServingRule) -> Device:
    cut = gpu.mig_mode is MigMode.ON and rule.naming is not MigStrategy.NONE
    served = not cut and target.mode is not MigMode.ON and (rule.whole or target.keeps)
    used = (gpu.reserved_memory_bytes or 0) if gpu.memory_bytes is not None else 0
    memory = (gpu.memory_bytes - used) // _MEBIBYTE if gpu.memory_bytes is not None else None
    return Device(
        pattern=_pattern(gpu, gpu.uuid),
        family=rule.gpu() if served else None,
        memory_mib=memory,
    )


def _mig_device(
    gpu: DriverGpu, instance: DriverInstance, target: Target, rule: ServingRule, *, named: bool
) -> Device:
    (mig,) = instance.mig_devices
    profile = profile_of(gpu, instance)
    served = named and rule.naming is not MigStrategy.NONE and profile is not None
    stays = target.mode is not MigMode.OFF and not _goes(instance, target)
    model = model_of(gpu)
    known = library.profile(model.id, profile) if model is not None and profile else None
    pattern = _pattern(gpu, mig.uuid)
    return Device(
        pattern=Slice(
            device_id=mig.uuid,
            resource="",
            gpu_uuid=gpu.uuid,
            gpu_index=gpu.index,
            minor=gpu.minor,
            instance_id=instance.instance_id,
            compute_instance_id=mig.compute_instance_id,
            mig_index=mig.index,
            numa_node=pattern.numa_node,
        ),
        family=rule.mig_device(profile) if served and stays and profile is not None else None,
        memory_mib=known.memory_mib if known is not None else None,
    )


def _goes(instance: DriverInstance, target: Target) -> bool:
    return instance.instance_id in target.surplus


def _pattern(gpu: DriverGpu, uuid: str) -> Slice:
    return Slice(
        device_id=uuid,
        resource="",
        gpu_uuid=gpu.uuid,
        gpu_index=gpu.index,
        minor=gpu.minor,
        numa_node=gpu.numa_node,
    )
