"""The table that ``nvidia-smi mig -lgi`` prints, as GPU reports that hold instances only.

It is the one public source of placements. The table may stand anywhere in a recorded session; when
a GPU is in several tables, the last one counts, because a session goes forward in time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from partita.errors import InputError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "write the file anew with `nvidia-smi mig -lgi > NODE.lgi.txt`"

_HEADER = re.compile(r"^\|\s*GPU instances:", re.MULTILINE)
_NONE = re.compile(r"^No GPU instances found", re.MULTILINE)
_NO_MIG = re.compile(r"^No MIG-enabled devices found", re.MULTILINE)
_CANDIDATE = re.compile(r"\|\s*\d")
_ROW = re.compile(
    r"\|\s*(?P<gpu>\d{1,4})\s+MIG\s+(?P<profile>\d{1,2}g\.\d{1,4}gb[+.\w-]{0,40})\s+(?P<profile_id>\d{1,4})"
    r"\s+(?P<instance>\d{1,6})\s+(?P<start>\d{1,3}):(?P<size>[1-9]\d{0,2})\s*\|",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    table: int
    gpu: int
    instance: InstanceReport


def recognises(text: str) -> bool:
    """Tell whether a text holds the table, or the sentence that stands for an empty one."""
    return any(pattern.search(text) for pattern in (_HEADER, _NONE, _NO_MIG))


def read(text: str, *, source: str, node: str) -> Observation:
    """Return the GPU instances of one node, by GPU.

    Raises:
        InputError: When a row of the table is not as expected, or there is no table.
    """
    if not recognises(text):
        message = "no table of GPU instances in the file"
        raise InputError(message=message, hint=HINT, path=source)
    rows = tuple(_rows(text, source))
    if _HEADER.search(text) and not rows:
        message = "the table of GPU instances has no row"
        raise InputError(message=message, hint=f"the file looks cut off; {HINT}", path=source)
    last = {row.gpu: row.table for row in rows}
    gpus = tuple(
        GpuReport(
            index=index,
            mig_mode=MigMode.ON,
            instances=tuple(r.instance for r in rows if (r.gpu, r.table) == (index, last[index])),
        )
        for index in sorted(last)
    )
    report = NodeReport(node=node, source=source, gpus=gpus)
    return Observation(reports=(report,), notes=tuple(_notes(text, rows, node)))


def _rows(text: str, source: str) -> Iterator[_Row]:
    table, inside = 0, False
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if _HEADER.match(stripped):
            table, inside = table + 1, True
        elif not stripped.startswith(("|", "+")):
            inside = False
        elif inside and _CANDIDATE.match(stripped):
            yield _row(line, number, table, source)


def _row(line: str, number: int, table: int, source: str) -> _Row:
    match = _ROW.fullmatch(line.strip())
    if match is None:
        raise InputError(
            message="expected GPU, profile, profile id, instance id and placement in a row",
            hint=HINT,
            path=source,
            line=number,
            column=len(line) - len(line.lstrip()) + 1,
        )
    return _Row(
        table=table,
        gpu=int(match["gpu"]),
        instance=InstanceReport(
            profile=match["profile"],
            profile_id=int(match["profile_id"]),
            instance_id=int(match["instance"]),
            placement=Placement(start=int(match["start"]), size=int(match["size"])),
        ),
    )


def _notes(text: str, rows: tuple[_Row, ...], node: str) -> Iterator[str]:
    if not rows:
        known = "no GPU has MIG on" if _NO_MIG.search(text) else "no GPU with MIG on has instances"
        yield f"node {node}: {known}; which GPUs there are is not in the file"
    for gpu in sorted({row.gpu for row in rows}):
        if len({row.table for row in rows if row.gpu == gpu}) > 1:
            yield f"node {node}: GPU {gpu} is in several tables, the last one counts"
    if rows and _NONE.search(text):
        yield f"node {node}: another listing in the file found no instances, the table counts"
