"""What ``nvidia-smi -q -x`` prints, of any DTD version from v10 to v13, as a node report.

The XML lists MIG *devices* (compute instances), in the order of their device numbers; they are
grouped into GPU instances, in the order in which these first appear. It names no profile, no
placement and, so far, no MIG UUID. A GPU instance without compute instance is not in it at all.
Where there are none, ``mig_devices`` says ``None`` or is empty; any other word is a failed reading.
Source: files of drivers 450 to 595 and ``nvsmi_device_v*.dtd``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.etree import ElementTree as ET

from partita.errors import InputError
from partita.model.gpu import ComputeInstance, MigMode
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "write the file anew with `nvidia-smi -q -x > NODE.xml`"

_ROOT = "nvidia_smi_log"
_START = re.compile(r"^\s*(?:<\?xml\b|<!DOCTYPE\b|<[A-Za-z])", re.MULTILINE)
_FIRST_LINE = re.compile(rf"^<(?:\?xml\b|{_ROOT}>)", re.MULTILINE)
_END = f"</{_ROOT}>"
_UNKNOWN = frozenset(
    {
        "",
        "err!",
        "gpu is lost",
        "gpu requires reset",
        "insufficient permissions",
        "n/a",
        "none",
        "not supported",
        "requested functionality has been deprecated",
        "unknown",
        "unknown error",
    }
)
_BROKEN = ("err!", "unknown error", "gpu is lost", "gpu requires reset", "unable to determine")
_ESSENTIAL = ("product_name", "uuid", "mig_mode/current_mig", "fb_memory_usage/total")
_RESETS = {"reset": "reset required", "reboot": "reboot required"}
_MIG_MODES = {"enabled": MigMode.ON, "disabled": MigMode.OFF, "n/a": MigMode.UNSUPPORTED}
_MEMORY = re.compile(r"(\d{1,12}) MiB\Z")
_NUMBER = re.compile(r"\d{1,12}\Z")
_PCI = re.compile(r"(?:0x)?([0-9A-Fa-f]{8})\Z")
_SHOWN = 60


def recognises(text: str) -> bool:
    """Tell whether a text is XML, perhaps after a line that ``nvidia-smi`` printed first."""
    head = text[:65536]
    return head.lstrip().startswith("<") or _FIRST_LINE.search(head) is not None


def read(text: str, *, source: str, node: str) -> Observation:
    """Return the GPUs of one node.

    Raises:
        InputError: When the text is no such XML, declares entities, or a number is none.
    """
    start = _START.search(text)
    begin, end = start.start() if start else 0, text.rfind(_END)
    end = end + len(_END) if end >= 0 else len(text)
    root = _parsed(text[begin:end], source, lines_before=text.count("\n", 0, begin))
    reader = _Reader(source=source)
    gpus = tuple(reader.gpu(element, index) for index, element in enumerate(root.findall("gpu")))
    notes = [*_stray(text[:begin]), *_stray(text[end:]), *reader.notes]
    attached = (root.findtext("attached_gpus") or "").strip()
    if not gpus:
        notes.append("no GPU in the file")
    elif attached.isdecimal() and attached != str(len(gpus)):
        notes.append(f"{attached[:9]} GPUs attached, in the file: {len(gpus)}")
    driver = (root.findtext("driver_version") or "").strip()
    report = NodeReport(
        node=node,
        source=source,
        gpus=gpus,
        driver_version=driver if re.fullmatch(r"[\d.]{1,20}", driver) else None,
    )
    return Observation(reports=(report,), notes=tuple(f"node {node}: {note}" for note in notes))


def _parsed(text: str, source: str, *, lines_before: int) -> ET.Element:
    if "<!ENTITY" in text:
        message = "the XML declares entities, which nvidia-smi never does"
        raise InputError(message=message, hint=HINT, path=source)
    try:
        root = ET.fromstring(text)  # noqa: S314 - entity declarations were refused
    except ET.ParseError as error:
        line, column = error.position
        reason = _shown(str(error).partition(":")[0])[1:-1]
        raise InputError(
            message=f"broken XML: {reason}",
            hint=f"the file may be cut off; {HINT}",
            path=source,
            line=line + lines_before,
            column=column + 1,
        ) from error
    except ValueError as error:  # an encoding declaration of more than one byte a character
        raise InputError(message=f"broken XML: {error}", hint=HINT, path=source) from error
    if root.tag != _ROOT:
        message = f"expected an nvidia_smi_log element, got: {_shown(root.tag)}"
        raise InputError(message=message, hint=HINT, path=source)
    return root


def _stray(text: str) -> Iterator[str]:
    """Yield the lines around the XML; the driver tells of lost GPUs there."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    yield from (f"beside the XML: {_shown(line, most=200)}" for line in lines[:8])
    if len(lines) > 8:  # noqa: PLR2004 - enough to understand
        yield f"beside the XML: further lines: {len(lines) - 8}"


def _shown(text: str, *, most: int = _SHOWN) -> str:
    return ascii(text if len(text) <= most else text[:most] + "...")


@dataclass(kw_only=True)
class _Processes:
    """Process ids by GPU instance; None is an instance that is not said, an id not readable."""

    by_instance: dict[int | None, list[int | None]] = field(default_factory=dict)

    def add(self, instance: int | None, pid: int | None) -> None:
        self.by_instance.setdefault(instance, []).append(pid)

    def readable(self, instance: int | None) -> tuple[int, ...]:
        return tuple(pid for pid in self.by_instance.get(instance, ()) if pid is not None)

    def unreadable(self, instance: int | None) -> bool:
        return None in self.by_instance.get(instance, ())


@dataclass(kw_only=True)
class _Reader:
    """Reads values of one file and collects the notes."""

    source: str
    notes: list[str] = field(default_factory=list)

    def gpu(self, element: ET.Element, index: int) -> GpuReport:
        where = f"gpu[{index}]"
        processes = self._processes(element, where)
        mode = element.find("mig_mode")
        memory_mib = self._memory(element, "fb_memory_usage/total", where)
        used_mib = self._memory(element, "fb_memory_usage/used", where)
        return GpuReport(
            index=index,
            product=self._text(element, "product_name"),
            pci_device=self._pci_device(element, where),
            uuid=self._text(element, "uuid"),
            mig_mode=self._mig_mode(mode, "current_mig", where),
            pending_mig_mode=self._mig_mode(mode, "pending_mig", where),
            instances=self._instances(element, processes, where),
            process_ids=processes.readable(None),
            used_memory_mib=used_mib,
            used_unreadable=used_mib is None and memory_mib is not None,
            processes_unreadable=processes.unreadable(None),
            memory_mib=memory_mib,
            reserved_memory_mib=self._memory(element, "fb_memory_usage/reserved", where),
            problem=self._problem(element, where) or self._hidden_instances(element, where),
        )

    def _instances(
        self, gpu: ET.Element, processes: _Processes, where: str
    ) -> tuple[InstanceReport, ...] | None:
        listed = gpu.find("mig_devices")
        grouped: dict[int, list[ET.Element]] = {}
        for number, device in enumerate(listed.iter("mig_device") if listed is not None else ()):
            place = f"{where}.mig_device[{number}]"
            instance = self._number(device, "gpu_instance_id", place)
            if instance is None:
                self.notes.append(f"{place}: its GPU instance cannot be read")
            else:
                grouped.setdefault(instance, []).append(device)
        known = [number for number in processes.by_instance if number is not None]
        if listed is None and not known:
            return None
        for instance in known:
            grouped.setdefault(instance, [])
        return tuple(
            self._instance(instance, devices, processes, where)
            for instance, devices in grouped.items()
        )

    def _hidden_instances(self, gpu: ET.Element, where: str) -> str | None:
        """Return a problem when MIG is on, or may be, and what stands cannot be read."""
        mode, listed = gpu.find("mig_mode"), gpu.find("mig_devices")
        off = (MigMode.OFF, MigMode.UNSUPPORTED)
        if mode is None or self._mig_mode(mode, "current_mig", where) in off:
            return None
        devices = list(listed.iter("mig_device")) if listed is not None else []
        told = listed is not None and (devices or _raw(gpu, "mig_devices").lower() in ("", "none"))
        if told and all(self._number(d, "gpu_instance_id", where) is not None for d in devices):
            return None
        return "its MIG instances cannot be read"

    def _instance(
        self, instance: int, devices: list[ET.Element], processes: _Processes, where: str
    ) -> InstanceReport:
        """Return one GPU instance; memory and engines are its own, whatever it is split into."""
        place = f"{where}.gpu_instance[{instance}]"
        shared = "device_attributes/shared/"
        used_mib = self._most(devices, "fb_memory_usage/used", place, memory=True)
        return InstanceReport(
            instance_id=instance,
            memory_mib=self._most(devices, "fb_memory_usage/total", place, memory=True),
            decoder_count=self._most(devices, shared + "decoder_count", place),
            copy_engine_count=self._most(devices, shared + "copy_engine_count", place),
            jpeg_count=self._most(devices, shared + "jpg_count", place),
            ofa_count=self._most(devices, shared + "ofa_count", place),
            compute_instances=tuple(
                ComputeInstance(
                    instance_id=number,
                    uuid=self._text(device, "uuid"),
                    sm_count=self._number(device, shared + "multiprocessor_count", place),
                )
                for device in devices
                if (number := self._number(device, "compute_instance_id", place)) is not None
            ),
            process_ids=processes.readable(instance),
            used_memory_mib=used_mib,
            used_unreadable=bool(devices) and used_mib is None,
            processes_unreadable=processes.unreadable(instance),
        )

    def _most(
        self, devices: list[ET.Element], path: str, where: str, *, memory: bool = False
    ) -> int | None:
        read = self._memory if memory else self._number
        return max(
            (value for device in devices if (value := read(device, path, where)) is not None),
            default=None,
        )

    def _processes(self, gpu: ET.Element, where: str) -> _Processes:
        found = _Processes()
        listed = gpu.find("processes")
        if listed is None or _is_unknown((listed.text or "").strip() or "-"):
            self.notes.append(f"{where}: its processes are not known")
            found.add(None, None)
        for number, process in enumerate(listed.iter("process_info") if listed is not None else ()):
            place = f"{where}.process_info[{number}]"
            pid = self._number(process, "pid", place)
            instance = self._number(process, "gpu_instance_id", place)
            if pid is None:
                self.notes.append(f"{place}: the id of the process cannot be read")
            found.add(instance, pid)
        return found

    def _problem(self, gpu: ET.Element, where: str) -> str | None:
        for path in _ESSENTIAL:
            text = _raw(gpu, path)
            if text.lower().startswith(_BROKEN):
                return f"{path.rpartition('/')[2]}: {_shown(text)[1:-1]}"
        action = _raw(gpu, "gpu_recovery_action").lower()
        drain = _raw(gpu, "gpu_reset_status/drain_and_reset_recommended").lower()
        if drain == "yes" or action.startswith("drain"):
            self.notes.append(f"{where}: the driver advises to drain the GPU and reset it")
        if _raw(gpu, "gpu_reset_status/reset_required").lower() == "yes":
            return _RESETS["reset"]
        return _RESETS.get(action)

    def _mig_mode(self, mode: ET.Element | None, path: str, where: str) -> MigMode | None:
        if mode is None:
            return None
        text = _raw(mode, path)
        found = _MIG_MODES.get(text.lower())
        if found is None and not _is_unknown(text):
            self._fail(f"{where}.mig_mode.{path}", "Enabled, Disabled or N/A", text)
        return found

    def _text(self, element: ET.Element, path: str) -> str | None:
        text = _raw(element, path)
        return None if _is_unknown(text) or len(text) > 200 or not text.isprintable() else text  # noqa: PLR2004

    def _pci_device(self, gpu: ET.Element, where: str) -> str | None:
        text = _raw(gpu, "pci/pci_device_id")
        match = _PCI.match(text)
        if match is None and not _is_unknown(text):
            self._fail(f"{where}.pci.pci_device_id", "eight hexadecimal digits", text)
        return f"0x{match[1].upper()}" if match else None

    def _number(self, element: ET.Element, path: str, where: str) -> int | None:
        text = _raw(element, path)
        if _is_unknown(text):
            return None
        if not _NUMBER.match(text):
            self._fail(f"{where}.{path.replace('/', '.')}", "a whole number", text)
        return int(text)

    def _memory(self, element: ET.Element, path: str, where: str) -> int | None:
        text = _raw(element, path)
        match = _MEMORY.match(text)
        if match is None and not _is_unknown(text):
            self._fail(f"{where}.{path.replace('/', '.')}", "an amount like 40960 MiB", text)
        return int(match[1]) if match else None

    def _fail(self, where: str, expected: str, text: str) -> NoReturn:
        message = f"{where}: expected {expected}, got: {_shown(text)}"
        raise InputError(message=message, hint=HINT, path=self.source)


def _is_unknown(text: str) -> bool:
    return text.lower() in _UNKNOWN or text.lower().startswith(_BROKEN)


def _raw(element: ET.Element, path: str) -> str:
    """Return the text of a descendant without the brackets that nvidia-smi puts around words."""
    text = (element.findtext(path) or "").strip()
    return text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text
