"""The world that the stub NVML library shows: written from the catalogue, edited by tests.

It is one text file, a row per fact; numbers are decimal, but PCI ids are hexadecimal, and
4294967295 stands for no instance::

    driver VERSION CUDA LAST-SERIAL
    gpu UUID MINOR BUS-ID PCI-DEVICE PCI-SUBSYSTEM MEMORY RESERVED MIG PENDING CHANGE LOST
        MOST-MIG-DEVICES DECODERS ENCODERS JPEG OFA NAME
    profile GPU NVML-INDEX ID SLICES MOST SMS COPY DECODERS ENCODERS JPEG OFA MIB SIZE
        START:INSTANCE-ID,… NAME
    compute-profile GPU PROFILE NVML-INDEX ID SLICES SMS START,…
    instance SERIAL GPU ID PROFILE START SIZE
    compute-instance SERIAL INSTANCE-SERIAL MIG-INDEX ID PROFILE START SIZE UUID
    process GPU INSTANCE COMPUTE-INSTANCE PID BYTES C|G|M
    event NUMBER GPU TYPE DATA INSTANCE COMPUTE-INSTANCE
    reading GPU NAME VALUE
    sample GPU NAME MICROSECONDS VALUE
    process-sample GPU PID MICROSECONDS SMS MEMORY ENCODER DECODER
    error CALL CODE TIMES
    client PID

Each fact is on one row. A call about a reading that is not there is not supported; the names of
readings, and which call tells which, are in ``stub_readings.c``. Every process that reads or writes
the file locks it first.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from partita.catalog import library
from partita.catalog.gpu_model import Engines, GpuModel, MigCapability, Profile

__all__ = ["ALWAYS", "HANG", "STATE_VARIABLE", "World", "gpu_uuid"]

STATE_VARIABLE = "PARTITA_NVML_STATE"
HANG = -1  # the code of a call that never returns
ALWAYS = -1  # how often an error comes
_NONE = 0xFFFFFFFF
_XID = 0x8
_MIB = 1 << 20
_RESERVED_MIB = 500
_NEEDS_REBOOT = {"2", "7"}  # recovery actions of nvml.h

# A GPU that does nothing, in NVML's units: degrees, milliwatts, MHz, bytes. Boards differ in these
# numbers; none of them comes from the catalogue. A fan is for the boards that have one to add.
_IDLE = {
    "recovery": 0,
    "remapped-correctable": 0,
    "remapped-uncorrectable": 0,
    "remap-pending": 0,
    "remap-failed": 0,
    "utilization": 0,
    "memory-utilization": 0,
    "encoder-utilization": 0,
    "decoder-utilization": 0,
    "temperature": 31,
    "memory-temperature": 38,
    "temperature-shutdown": 92,
    "temperature-slowdown": 89,
    "power": 56_000,
    "power-limit": 400_000,
    "energy": 1_000_000,
    "clock-graphics": 210,
    "clock-sm": 210,
    "clock-memory": 1_215,
    "clock-video": 585,
    "most-clock-graphics": 1_410,
    "most-clock-sm": 1_410,
    "most-clock-memory": 1_215,
    "most-clock-video": 1_290,
    "performance-state": 0,
    "persistence": 1,
    "compute-mode": 0,
    "display": 0,
    "ecc": 1,
    "ecc-corrected": 0,
    "ecc-uncorrected": 0,
    "bar1": 64 << 30,
    "bar1-used": 1 << 20,
    "pcie-generation": 4,
    "pcie-width": 16,
    "pcie-sent": 0,
    "pcie-received": 0,
}

# nvml.h numbers GPU-instance profiles by compute slices and kind.
_PLAIN = {1: 0x0, 2: 0x1, 3: 0x2, 4: 0x3, 7: 0x4}
_BY_SUFFIX = {
    "": _PLAIN,
    "+me": {1: 0x7, 2: 0x8},
    "double": {1: 0x9},
    "+gfx": {1: 0xA, 2: 0xB, 4: 0xC},
    "-me": {1: 0xD, 2: 0xE},
    "+me.all": {1: 0xF, 2: 0x10},
}


class _ModeNeeds(Enum):
    """What a change of MIG mode on an idle GPU needs."""

    NOTHING = 0  # Hopper and later
    RESET_BY_DRIVER = 1  # Ampere: the driver resets the GPU by itself when nobody uses it
    RESET_BY_USER = 2  # Ampere in a virtual machine: somebody has to reset it


def gpu_uuid(index: int) -> str:
    """Return the UUID of the GPU at an index."""
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


class World:
    """A node's GPUs as the stub library shows them."""

    def __init__(self, path: Path, *models: str, by_user: bool = False) -> None:
        """Write a new world of these GPU models, all idle and with MIG off.

        Args:
            path: The state file.
            models: Any name that the catalogue knows, one per GPU.
            by_user: Whether a mode change that needs a reset waits for somebody to do it.
        """
        self.path = path
        rows = ["driver 580.95.05 13000 0"]
        for index, name in enumerate(models):
            rows += _board(index, library.get(name), by_user=by_user)
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")

    def turn_mig_on(self, index: int) -> None:
        """Switch MIG on, as if it had been so from the start."""
        self._set(index, {7: "1", 8: "1"})

    def lose(self, index: int, *, lost: bool = True) -> None:
        """Let a GPU fall off the bus, or come back."""
        self._set(index, {10: str(int(lost))})

    def run(self, index: int, process_id: int, *, instance: int = _NONE, kind: str = "C") -> None:
        """Start a process on a GPU or in one of its instances, with 1 GiB in use."""
        compute = 0 if instance != _NONE else _NONE
        self._add(f"process {index} {instance} {compute} {process_id} {1 << 30} {kind}")

    def stop(self, process_id: int) -> None:
        """End a process everywhere."""
        self._drop(lambda row: row[0] == "process" and row[4] == str(process_id))

    def raise_xid(self, index: int, xid: int, *, instance: int = _NONE) -> None:
        """Let a GPU report an XID."""
        with self._edit() as rows:
            number = 1 + sum(row[0] == "event" for row in rows)
            event = f"event {number} {index} {_XID} {xid} {instance} {_NONE}"
            rows.append(event.split(" "))

    def tell(self, index: int, **readings: int | None) -> None:
        """Set readings of a GPU, named as in ``_IDLE`` with underscores; None takes one away."""
        for word, value in readings.items():
            name = word.replace("_", "-")
            self._drop(lambda row, name=name: row[:3] == ["reading", str(index), name])
            if value is not None:
                self._add(f"reading {index} {name} {value}")

    def sample(self, index: int, name: str, value: int, *, at: int) -> None:
        """Add a sample of a reading; ``at`` is in microseconds since 1970, as NVML has it."""
        self._add(f"sample {index} {name} {at} {value}")

    def sample_process(  # noqa: PLR0913 - what NVML tells of a process
        self,
        index: int,
        process_id: int,
        *,
        at: int,
        processors: int,
        memory: int = 0,
        encoder: int = 0,
        decoder: int = 0,
    ) -> None:
        """Add a sample of what a process uses, in percent; ``at`` as for ``sample``."""
        used = f"{processors} {memory} {encoder} {decoder}"
        self._add(f"process-sample {index} {process_id} {at} {used}")

    def fail(self, call: str, code: int, *, times: int = 1) -> None:
        """Let a call of the library return a code, so many times or ``ALWAYS``."""
        self._add(f"error {call} {code} {times}")

    def recover(self) -> None:
        """Take all injected errors away."""
        self._drop(lambda row: row[0] == "error")

    def reset(self, uuid: str) -> None:
        """Reset a GPU as ``nvidia-smi --gpu-reset`` does.

        Raises:
            BlockingIOError: When a process runs on it, or a program has NVML open.
        """
        with self._edit() as rows:
            boards = [row for row in rows if row[0] == "gpu"]
            index = next(i for i, row in enumerate(boards) if row[1] == uuid)
            serials = {row[1] for row in rows if row[0] == "instance" and row[2] == str(index)}
            if any(row[0] == "client" and Path("/proc", row[1]).exists() for row in rows):
                raise BlockingIOError("a program has NVML open")
            if any(row[:2] == ["process", str(index)] for row in rows):
                raise BlockingIOError("a process runs on the GPU")
            boards[index][8] = boards[index][9]
            for row in rows:
                if row[:2] == ["reading", str(index)] and _ends_with_reset(row[2], row[3]):
                    row[3] = "0"
            rows[:] = [
                row
                for row in rows
                if not (row[0] == "instance" and row[1] in serials)
                and not (row[0] == "compute-instance" and row[2] in serials)
            ]

    def index_of(self, uuid: str) -> int:
        """Return the index of a GPU."""
        return [row[0] for row in self.rows("gpu")].index(uuid)

    def rows(self, kind: str) -> Sequence[Sequence[str]]:
        """Return the rows of one kind, without its name."""
        with self._edit() as rows:
            return [row[1:] for row in rows if row[0] == kind]

    def _set(self, index: int, fields: dict[int, str]) -> None:
        with self._edit() as rows:
            board = [row for row in rows if row[0] == "gpu"][index]
            for number, value in fields.items():
                board[number + 1] = value

    def _add(self, row: str) -> None:
        with self._edit() as rows:
            rows.append(row.split(" "))

    def _drop(self, matches: Callable[[list[str]], bool]) -> None:
        with self._edit() as rows:
            rows[:] = [row for row in rows if not matches(row)]

    @contextmanager
    def _edit(self) -> Iterator[list[list[str]]]:
        with self.path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            rows = [line.rstrip("\n").split(" ") for line in file]
            yield rows
            file.seek(0)
            file.truncate()
            file.write("".join(" ".join(row) + "\n" for row in rows))
            file.flush()
            os.fsync(file.fileno())


def _board(index: int, model: GpuModel, *, by_user: bool) -> Iterator[str]:
    assert model.memory_mib is not None
    pool = _engines(model.mig.full_profile.engines) if model.mig else "0 0 0 0"
    mode = "0 0" if model.mig else "-1 -1"
    most = model.mig.max_instances if model.mig else 0
    needs = _mode_needs(model.mig, by_user=by_user)
    yield (
        f"gpu {gpu_uuid(index)} {index} 00000000:{index + 1:02X}:00.0"
        f" {int(model.pci_devices[0], 16):x} 14f710de {model.memory_mib * _MIB}"
        f" {_RESERVED_MIB * _MIB} {mode} {needs.value} 0 {most} {pool} {model.names[0]}"
    )
    for name, value in _readings(model).items():
        yield f"reading {index} {name} {value}"
    for profile in model.mig.profiles if model.mig else ():
        if model.mig is not None and profile.profile_id is not None:
            yield from _profile(index, model.mig, profile)


def _readings(model: GpuModel) -> dict[str, int]:
    major, minor = map(int, model.compute_capability.split("."))
    return _IDLE | {"capability-major": major, "capability-minor": minor}


def _ends_with_reset(name: str, value: str) -> bool:
    if name == "recovery":
        return value not in _NEEDS_REBOOT
    return name in {"remap-pending", "retirement-pending"}


def _mode_needs(mig: MigCapability | None, *, by_user: bool) -> _ModeNeeds:
    if mig is None or not mig.mode_change_needs_reset:
        return _ModeNeeds.NOTHING
    return _ModeNeeds.RESET_BY_USER if by_user else _ModeNeeds.RESET_BY_DRIVER


def _profile(index: int, mig: MigCapability, profile: Profile) -> Iterator[str]:
    places = ",".join(
        f"{place.start}:{_instance_id(mig.memory_slices, place.start, place.size)}"
        for place in profile.placements
    )
    processors, copy_engines = profile.sm_count or 0, profile.engines.copy
    yield (
        f"profile {index} {_nvml_index(mig, profile)} {profile.profile_id}"
        f" {profile.compute_slices} {profile.max_instances} {processors} {copy_engines}"
        f" {_engines(profile.engines)} {profile.memory_mib or 0} {profile.memory_slices}"
        f" {places} {profile.name}"
    )
    for part in profile.compute_instances:
        starts = ",".join(map(str, part.starts))
        share = processors * part.compute_slices // profile.compute_slices
        yield (
            f"compute-profile {index} {profile.profile_id} {part.profile_id} {part.profile_id}"
            f" {part.compute_slices} {share} {starts}"
        )


def _nvml_index(mig: MigCapability, profile: Profile) -> int:
    gigabytes = profile.name.find("gb") + 2
    smallest = min(other.memory_slices for other in mig.profiles)
    double = profile.compute_slices == 1 and profile.memory_slices > smallest
    suffix = "double" if double else profile.name[gigabytes:]
    return _BY_SUFFIX[suffix][profile.compute_slices]


def _instance_id(axis: int, start: int, size: int) -> int:
    """Number a placement as the driver does: 0 whole, 1-2 halves, 3-6 quarters, 7-14 eighths."""
    return axis // size - 1 + start // size


def _engines(engines: Engines) -> str:
    return f"{engines.decoder} {engines.encoder} {engines.jpeg} {engines.ofa}"
