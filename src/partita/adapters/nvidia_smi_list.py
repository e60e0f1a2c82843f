"""What ``nvidia-smi -L`` prints: GPUs, and below each its MIG devices with their UUIDs.

MIG devices come in the order of their device numbers, as in ``nvidia-smi -q -x``. A GPU without
MIG devices may have MIG off, or on without instances: the list does not tell, so the mode is
unknown. Split instances (``1c.3g.40gb``) do not show which devices share one GPU instance, except
with drivers before 470, whose UUIDs say it (``MIG-GPU-…/<instance>/<compute instance>``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from partita.errors import InputError
from partita.model.gpu import ComputeInstance, MigMode
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "write the file anew with `nvidia-smi -L > NODE.list.txt`"

_NO_GPU = "No devices found"
_START = re.compile(r"^GPU \d+: |^No devices found", re.MULTILINE)
_GPU_START = re.compile(r"GPU \d{1,4}(?::|$)", re.ASCII)
_GPU = re.compile(
    r"GPU (?P<index>\d{1,4}): (?P<product>.{1,120}?) \(UUID: (?P<uuid>GPU-[\w-]{1,60})\)", re.ASCII
)
_DEVICE = re.compile(
    r"\s+MIG (?P<split>\d{1,2}c\.)?(?P<profile>\d{1,2}g\.\d{1,4}gb[+.\w-]{0,40})"
    r"\s+Device\s+\d{1,4}: \(UUID: (?P<uuid>MIG-[\w/-]{1,80})\)",
    re.ASCII,
)
_OLD_UUID = re.compile(r"MIG-GPU-[\w-]+/(?P<instance>\d{1,6})/(?P<compute>\d{1,6})\Z", re.ASCII)


@dataclass(kw_only=True)
class _Device:
    profile: str
    split: bool
    uuid: str


@dataclass(kw_only=True)
class _Entry:
    index: int
    product: str | None = None
    uuid: str | None = None
    problem: str | None = None
    devices: list[_Device] = field(default_factory=list)


def recognises(text: str) -> bool:
    """Tell whether a text holds such a list."""
    return _START.search(text) is not None


def read(text: str, *, source: str, node: str) -> Observation:
    """Return the GPUs of one node with the MIG devices as instances without placement.

    Raises:
        InputError: When a line of the list is not as expected, or there is no list.
    """
    if not recognises(text):
        message = "no line `GPU 0: NAME (UUID: …)` in the file"
        raise InputError(message=message, hint=HINT, path=source)
    listing = _Listing(source=source)
    for number, line in enumerate(text.splitlines(), start=1):
        listing.take(line, number)
    gpus = tuple(_report(entry) for entry in listing.ordered())
    report = NodeReport(node=node, source=source, gpus=gpus)
    notes = tuple(f"node {node}: {note}" for note in _notes(listing, gpus))
    return Observation(reports=(report,), notes=notes)


@dataclass(kw_only=True)
class _Listing:
    """What the lines have told so far."""

    source: str
    entries: dict[int, _Entry] = field(default_factory=dict)
    lost: list[_Entry] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    current: _Entry | None = None

    def take(self, line: str, number: int) -> None:
        """Take the next line."""
        if _GPU_START.match(line):
            self.current = _gpu(line, number, self.source)
            if self.current.index in self.entries:
                self.again.append(self.current.index)
            self.entries[self.current.index] = self.current
        elif self.current is not None and line.lstrip().startswith("MIG "):
            self.current.devices.append(_device(line, number, self.source))
        elif line.startswith("Unable to determine the device handle"):
            index = 0 if self.current is None else self.current.index + 1
            self.current = _Entry(index=index, problem=ascii(line[:200])[1:-1])
            self.lost.append(self.current)
        elif line.strip() and not line.startswith(("#", "$", _NO_GPU)):
            self.other.append(line.strip())

    def ordered(self) -> list[_Entry]:
        """Return the GPUs by index; a lost one stands where the numbering leaves room."""
        found = {entry.index: entry for entry in self.lost} | self.entries
        return [found[index] for index in sorted(found)]


def _notes(listing: _Listing, gpus: Sequence[GpuReport]) -> Iterator[str]:
    for index in listing.again:
        yield f"GPU {index} is listed again, the last one counts"
    for entry in listing.lost:
        if entry.index in listing.entries:
            yield f"a GPU without number: {entry.problem}"
    for gpu in gpus:
        if gpu.instances is None and gpu.problem is None:
            yield f"GPU {gpu.index} has split instances; add `nvidia-smi mig -lgi` to know them"
    if listing.other:
        first = ascii(listing.other[0][:80])
        yield f"lines beside the list: {len(listing.other)}, the first: {first}"
    if not gpus:
        yield "no GPU in the list"


def _gpu(line: str, number: int, source: str) -> _Entry:
    match = _GPU.fullmatch(line.rstrip())
    if match is None or not match["product"].isprintable():
        raise _broken("expected `GPU 0: NAME (UUID: GPU-…)`", number, source)
    return _Entry(index=int(match["index"]), product=match["product"], uuid=match["uuid"])


def _device(line: str, number: int, source: str) -> _Device:
    match = _DEVICE.fullmatch(line.rstrip())
    if match is None:
        raise _broken("expected `MIG PROFILE  Device  0: (UUID: MIG-…)`", number, source)
    return _Device(profile=match["profile"], split=match["split"] is not None, uuid=match["uuid"])


def _broken(message: str, line: int, source: str) -> InputError:
    hint = f"the file may be cut off; {HINT}"
    return InputError(message=message, hint=hint, path=source, line=line, column=1)


def _report(entry: _Entry) -> GpuReport:
    return GpuReport(
        index=entry.index,
        product=entry.product,
        uuid=entry.uuid,
        mig_mode=MigMode.ON if entry.devices else None,
        instances=None if entry.problem else _instances(entry.devices),
        problem=entry.problem,
    )


def _instances(devices: Sequence[_Device]) -> tuple[InstanceReport, ...] | None:
    """Return one instance per GPU instance, None when splits hide what belongs together."""
    grouped: dict[int, InstanceReport] = {}
    for number, device in enumerate(devices):
        old = _OLD_UUID.match(device.uuid)
        if old is None and device.split:
            return None
        key = int(old["instance"]) if old else -1 - number
        compute = ComputeInstance(instance_id=int(old["compute"]) if old else 0, uuid=device.uuid)
        before = grouped[key].compute_instances if key in grouped else ()
        grouped[key] = InstanceReport(
            profile=device.profile,
            instance_id=key if old else None,
            compute_instances=(*before, compute),
        )
    return tuple(grouped.values())
