"""Every slice that the agent of a node offers, as a table: where it is and who holds it."""

from collections.abc import Iterable

from partita.model import resource
from partita.model.agent_status import AgentStatus, SliceStatus
from partita.views.style import Tone
from partita.views.table import Align, Cell, Column, Table

__all__ = ["table"]

_SHORT = 8  # characters of a UUID, if they tell the devices of a node apart
_GIBIBYTE = 1024  # in MiB


def table(status: AgentStatus) -> Table:
    """Return a row per slice, and below it one per further holder."""
    length = _length(one.device_id for gpu in status.gpus for one in gpu.slices)
    rows: list[list[str | Cell]] = []
    for gpu in status.gpus:
        for one in gpu.slices:
            first, *others = one.holders or ("-",)
            rows.append([str(gpu.index), *_facts(one, length), first])
            rows += [["", "", "", "", "", "", holder] for holder in others]
    return Table(
        columns=[
            Column(title="GPU", align=Align.RIGHT),
            Column(title="DEVICE"),
            Column(title="RESOURCE", flexible=True),
            Column(title="AT"),
            Column(title="BUDGET", align=Align.RIGHT),
            Column(title="STATE"),
            Column(title="HOLDER", flexible=True),
        ],
        rows=rows,
    )


def _facts(one: SliceStatus, length: int) -> list[str | Cell]:
    kind, rest, slot = _parts(one.device_id)
    return [
        f"{kind}{rest[:length]}{slot}",
        one.resource.removeprefix(resource.DOMAIN),
        one.placement or "-",
        f"{one.budget_mib / _GIBIBYTE:.1f}Gi" if one.budget_mib is not None else "?",
        _state(one),
    ]


def _state(one: SliceStatus) -> Cell:
    if not one.usable:
        return Cell(text="unusable", tone=Tone.WARNING)
    if one.leaving:
        return Cell(text="leaving", tone=Tone.WARNING)
    return Cell(text="held" if one.holders else "free")


def _parts(device_id: str) -> tuple[str, str, str]:
    """Return ``GPU-`` or ``MIG-``, what identifies the device, and its slot with the colons."""
    device, separator, slot = device_id.partition("::")
    kind, dash, rest = device.partition("-")
    return kind + dash, rest, separator + slot


def _length(device_ids: Iterable[str]) -> int:
    """Return how many characters of the devices' names tell them apart."""
    devices = {_parts(device_id)[:2] for device_id in device_ids}
    length = _SHORT
    while len({(kind, rest[:length]) for kind, rest in devices}) < len(devices):
        length += 1
    return length
