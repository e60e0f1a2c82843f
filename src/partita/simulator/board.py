"""One simulated GPU: its MIG state, and the rules by which it changes.

Rules and their sources are those of the catalogue (``catalog.legality``, ``MigCapability``); the
failures are NVML's (``nvml.h``, and published logs where the header is silent). Sources of the ids:
NVIDIA open-gpu-kernel-modules, ``kmigmgrSwizzIdToSpan``; of the mirrored numbering, ``-lgi`` logs.

Uncertain, or simpler than some machines:

- A mode change that needs a reset waits for ``reset``, as in a virtual machine that was handed the
  board. On bare metal the driver may try the reset by itself and be done at once.
- A board that must be in display mode *compute* is taken to be.
- Of a few boards no source shows the profile ids. MIG can be switched on there, nothing created.
"""

import itertools
import uuid as uuids
from dataclasses import dataclass, field

from partita.catalog import legality
from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.catalog.legality import Slot
from partita.errors import DriverError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import (
    DriverFailure,
    DriverGpu,
    DriverInstance,
    DriverProcess,
    MigDevice,
    ModeChange,
    Recovery,
)

__all__ = ["Board", "refusal"]

_MEBIBYTE = 1 << 20
_HINTS = {
    DriverFailure.NOT_SUPPORTED: "switch MIG on first, or use a board that has it",
    DriverFailure.NO_PERMISSION: "run as root",
    DriverFailure.INVALID_ARGUMENT: "`partita gpus` lists profiles and where they may start",
    DriverFailure.NOT_FOUND: "read again what stands",
    DriverFailure.IN_USE: "end what runs there first",
    DriverFailure.INSUFFICIENT_RESOURCES: "destroy what is in the way first",
    DriverFailure.GPU_IS_LOST: "the GPU comes back with a reset or a reboot, if at all",
    DriverFailure.RESET_REQUIRED: "reset the GPU",
    DriverFailure.TIMEOUT: "try again",
    DriverFailure.UNKNOWN: "look into the kernel log",
}


def refusal(failure: DriverFailure, *, uuid: str | None, why: str) -> DriverError:
    """Return the error with which the driver refuses."""
    return DriverError(
        message=f"{uuid or 'the GPU driver'} refuses, {failure.value}: {why}",
        hint=_HINTS[failure],
        failure=failure.value,
        uuid=uuid,
    )


@dataclass(slots=True, kw_only=True)
class Board:
    """A GPU in a slot of a simulated node.

    Attributes:
        model: What it is.
        uuid: ``GPU-…``.
        index: NVML index.
        pci_bus_id: Where it is plugged in.
        numa_node: NUMA node of the slot.
        mirrored: Which of the two numberings of instance ids it has.
        mode: Current MIG mode.
        pending: MIG mode after the next reset.
        instances: GPU instances by id.
        processes: Processes by PID.
        lost: Whether it fell off the bus.
        recovery: What it needs before it is well again.
        created: How many instances it ever had; every MIG device has a UUID of its own.
    """

    model: GpuModel
    uuid: str
    index: int
    pci_bus_id: str
    numa_node: int | None
    mirrored: bool
    mode: MigMode
    pending: MigMode
    instances: dict[int, DriverInstance] = field(default_factory=dict)
    processes: dict[int, DriverProcess] = field(default_factory=dict)
    lost: bool = False
    recovery: Recovery = Recovery.NONE
    created: int = 0

    def view(self, failure: DriverFailure | None) -> DriverGpu:
        """Return what a driver shows: with a failure only what the board is, not how it stands."""
        memory = self.model.memory_mib
        readable = failure is None
        return DriverGpu(
            uuid=self.uuid,
            index=self.index,
            minor=self.index,
            product=self.model.names[0],
            pci_device=self.model.pci_devices[0],
            pci_bus_id=self.pci_bus_id,
            numa_node=self.numa_node,
            memory_bytes=memory * _MEBIBYTE if memory is not None and readable else None,
            mig_mode=self.mode if readable else MigMode.UNSUPPORTED,
            pending_mig_mode=self.pending if readable else MigMode.UNSUPPORTED,
            instances=self._standing() if readable else (),
            recovery=self.recovery if readable else None,
            failure=failure,
        )

    def set_mode(self, mode: MigMode) -> ModeChange:
        """Change the MIG mode, or leave it pending."""
        mig = self._mig()
        if mode is MigMode.UNSUPPORTED:
            raise self._refusal(DriverFailure.INVALID_ARGUMENT, f"no mode to set: {mode.value}")
        self.pending = mode
        if mode is self.mode:
            return ModeChange.DONE
        if self.processes or self.instances:
            return ModeChange.IN_USE
        if mig.mode_change_needs_reset:
            return ModeChange.RESET_REQUIRED
        self.mode = mode
        return ModeChange.DONE

    def reset(self) -> None:
        """Drop the instances, put the pending mode in force, and end a need of a reset."""
        if self.processes:
            pids = ", ".join(map(str, sorted(self.processes)))
            raise self._refusal(DriverFailure.IN_USE, f"processes run on it: {pids}")
        self.instances.clear()
        self.mode = self.pending
        if self.recovery is not Recovery.REBOOT:
            self.recovery = Recovery.NONE

    def reboot(self) -> None:
        """Lose what a reboot loses: processes, instances and, from Hopper on, the MIG mode."""
        self.processes.clear()
        self.instances.clear()
        self.recovery = Recovery.NONE
        mig = self.model.mig
        if mig is not None and not mig.mode_survives_reboot:
            self.pending = MigMode.OFF
        self.mode = self.pending

    def create(self, profile_id: int, placement: Placement) -> DriverInstance:
        """Create an instance with one compute instance over all of it."""
        mig = self._partitioned()
        profile = mig.by_id.get(profile_id)
        if profile is None:
            raise self._refusal(DriverFailure.INVALID_ARGUMENT, f"no profile has id: {profile_id}")
        slot = Slot(placement=placement, profile=profile.name)
        why = legality.objection(mig, [slot])
        if why is not None:
            raise self._refusal(DriverFailure.INVALID_ARGUMENT, why)
        why = self._no_room(mig, slot)
        if why is not None:
            raise self._refusal(DriverFailure.INSUFFICIENT_RESOURCES, why)
        if not self.instances and self.processes:
            raise self._refusal(DriverFailure.IN_USE, "processes use the GPU as a whole")
        return self._add(mig, profile_id, placement)

    def destroy(self, instance_id: int) -> None:
        """Destroy an instance on which nothing runs."""
        self._partitioned()
        if instance_id not in self.instances:
            raise self._refusal(DriverFailure.NOT_FOUND, f"no instance has id: {instance_id}")
        for process in self.processes.values():
            if process.instance_id == instance_id:
                why = f"on instance {instance_id} runs process: {process.process_id}"
                raise self._refusal(DriverFailure.IN_USE, why)
        del self.instances[instance_id]

    def _mig(self) -> MigCapability:
        if self.model.mig is None:
            raise self._refusal(DriverFailure.NOT_SUPPORTED, f"no MIG on a {self.model.names[0]}")
        return self.model.mig

    def _partitioned(self) -> MigCapability:
        mig = self._mig()
        if self.mode is not MigMode.ON:
            raise self._refusal(DriverFailure.NOT_SUPPORTED, f"MIG mode is: {self.mode.value}")
        return mig

    def _standing(self) -> tuple[DriverInstance, ...]:
        return tuple(sorted(self.instances.values(), key=lambda instance: instance.placement))

    def _no_room(self, mig: MigCapability, slot: Slot) -> str | None:
        names = {profile.profile_id: profile.name for profile in mig.profiles}
        slots = [
            Slot(placement=instance.placement, profile=names[instance.profile_id])
            for instance in self.instances.values()
        ]
        return legality.objection(mig, [*slots, slot])

    def _add(self, mig: MigCapability, profile_id: int, placement: Placement) -> DriverInstance:
        self.created += 1
        mig_uuid = uuids.uuid5(uuids.NAMESPACE_OID, f"{self.uuid}/{self.created}")
        instance = DriverInstance(
            instance_id=_instance_id(mig, placement, mirrored=self.mirrored),
            profile_id=profile_id,
            placement=placement,
            mig_devices=(
                MigDevice(
                    uuid=f"MIG-{mig_uuid}", index=self._free_mig_index(), compute_instance_id=0
                ),
            ),
        )
        self.instances[instance.instance_id] = instance
        return instance

    def _free_mig_index(self) -> int:
        taken = {mig.index for found in self.instances.values() for mig in found.mig_devices}
        return next(index for index in itertools.count() if index not in taken)

    def _refusal(self, failure: DriverFailure, why: str) -> DriverError:
        return refusal(failure, uuid=self.uuid, why=why)


def _instance_id(mig: MigCapability, placement: Placement, *, mirrored: bool) -> int:
    """0 is the whole, 1 and 2 the halves, 3 to 6 the quarters, 7 to 14 the eighths."""
    parts = mig.memory_slices // placement.size
    number = placement.start // placement.size
    if mirrored and parts > 1:
        number ^= parts // 2
    return parts - 1 + number
