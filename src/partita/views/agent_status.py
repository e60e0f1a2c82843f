"""What the agent of a node says of itself: as plain data, and as text for people.

The text leads with what is wrong. ``schema`` names the form of the data; keys may be added to it,
never renamed; unknown is null.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime

from partita.model import resource
from partita.model.agent_status import (
    SCHEMA,
    AgentStatus,
    Condition,
    ResourceStatus,
    SliceStatus,
)
from partita.views import agent_slices, gpu_names
from partita.views.style import Style, Tone
from partita.views.table import Align, Cell, Column, Table, paragraph

__all__ = ["document", "text"]

_TONES = {
    "Ready": Tone.GOOD,
    "Kept": None,
    "Sick": Tone.BAD,
    "Failed": Tone.BAD,
}
_TROUBLES = {
    "SoleOwner": "somebody else has the GPUs of this node",
    "DriverAnswers": "the GPU driver gives no answer",
    "KubeletAnswers": "the kubelet gives no answer",
    "LayoutsFollowed": "the layouts are not followed",
}
_URGENT = ("Sick", "Failed")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MARK = "- "
_LEAST = 20  # columns that slices get in any case


def document(status: AgentStatus) -> dict[str, object]:
    """Return the whole of it."""
    return {"schema": SCHEMA, **asdict(status)}


def text(
    status: AgentStatus,
    *,
    width: int,
    style: Style,
    now: datetime,
    slices: bool = False,
    silent: str | None = None,
) -> str:
    """Return it for people.

    Args:
        status: The status.
        width: Columns there are.
        style: How text is emphasised.
        now: The time of day, for ages.
        slices: Whether every slice is listed.
        silent: Why the agent will say nothing newer, None when it may.
    """
    lines = [*_headline(status, width, style, now, silent)]
    for condition in status.conditions:
        lines += _trouble(condition, status, width, style, now)
    lines += _unheard(status, width)
    lines += _reasons(status, width)
    if status.resources:
        lines += ["", *_resources(status).lines(width=width, style=style)]
    if status.gpus:
        lines += ["", *_gpus(status, now, width).lines(width=width, style=style)]
    if slices and any(gpu.slices for gpu in status.gpus):
        lines += ["", *agent_slices.table(status).lines(width=width, style=style)]
    return "\n".join(lines)


# ---- What matters, and what is wrong ------------------------------------------------------------


def _headline(
    status: AgentStatus, width: int, style: Style, now: datetime, silent: str | None
) -> Iterator[str]:
    """Yield the node and how it goes, and what to do when it does not."""
    ready = status.condition("Ready")
    word, tone = _standing(ready)
    since = _for(ready.since if ready is not None else "", now)
    if silent is not None:
        then = f"when the agent last wrote, {_age(status.at, now) or 'it is not said how long'} ago"
        yield from _titled(status.node, "unknown", f", {silent}", Tone.BAD, width, style)
        yield from paragraph(f"{then}, it was {word}: {_counts(status)}", width=width, indent=2)
    elif status.is_ready:
        yield from _titled(status.node, word, f"{since}; {_counts(status)}", tone, width, style)
    else:
        why = (ready.message or ready.reason) if ready is not None else ""
        said = f"{since}{f': {why}' if why else ''}"
        yield from _titled(status.node, word, said, tone, width, style)
    if ready is not None and not status.is_ready:
        if silent is not None and ready.message:
            yield from paragraph(f"it said: {ready.message}", width=width, indent=2)
        yield from _hint(ready.hint, 2, width, style)


def _standing(ready: Condition | None) -> tuple[str, Tone]:
    if ready is None or ready.holds is None:
        return "not known to be ready", Tone.WARNING
    return ("ready", Tone.GOOD) if ready.holds else ("not ready", Tone.BAD)


def _titled(node: str, word: str, said: str, tone: Tone, width: int, style: Style) -> Iterator[str]:
    """Yield a text that begins with a node and a word about it, both emphasised."""
    first, *others = paragraph(f"{node}: {word}{said}", width=width)
    plain = f"{node}: {word}"
    painted = f"{style.paint(node, Tone.TITLE)}: {style.paint(word, tone)}"
    yield painted + first.removeprefix(plain) if first.startswith(plain) else first
    yield from others


def _counts(status: AgentStatus) -> str:
    gpus = gpu_names.count(len(status.gpus), "GPU") if status.gpus else "no GPUs"
    sick = sum(gpu.phase == "Sick" for gpu in status.gpus)
    held = sum(one.held for one in status.resources)
    total = sum(one.slices for one in status.resources)
    gpus += f", {sick} sick" if sick else ""
    return f"{gpus}; {held} of {total} slices held" if total else gpus


def _trouble(
    condition: Condition, status: AgentStatus, width: int, style: Style, now: datetime
) -> Iterator[str]:
    """Yield what a condition that does not hold says, if nothing else here says the same."""
    ready = status.condition("Ready")
    if condition.holds is not False or condition.type == "Ready":
        return
    if condition.type.startswith("Gpus") and status.gpus:  # they speak for themselves below
        return
    if ready is not None and ready.holds is False and ready.message == condition.message:
        return
    what = _TROUBLES.get(condition.type, f"{condition.type} is false")
    said = condition.message or condition.reason
    text = f"{what}{_for(condition.since, now)}: {said}"
    yield from paragraph(text, width=width, indent=2, mark=_MARK)
    yield from _hint(condition.hint, 4, width, style)


def _hint(hint: str | None, indent: int, width: int, style: Style) -> Iterator[str]:
    if hint is not None:
        lines = paragraph(f"hint: {hint}", width=width, indent=indent)
        yield from (style.paint(line, Tone.FAINT) for line in lines)


def _unheard(status: AgentStatus, width: int) -> Iterator[str]:
    """Yield why the kubelet does not listen; resources with the same problem together."""
    ready = status.condition("Ready")
    said = ready.message if ready is not None and ready.holds is False else ""
    groups: dict[str, list[str]] = {}
    for one in status.resources:
        if one.problem and not one.connected:
            groups.setdefault(one.problem, []).append(one.name)
    for problem, names in groups.items():
        if len(names) == 1 and names[0] in said and problem in said:
            continue
        text = f"the kubelet does not listen to {', '.join(names)}: {problem}"
        yield from paragraph(text, width=width, indent=2, mark=_MARK)


def _reasons(status: AgentStatus, width: int) -> Iterator[str]:
    """Yield why GPUs are as they are, the worst first; those with the same reason together."""
    groups: dict[tuple[str, str], list[int]] = {}
    for gpu in sorted(status.gpus, key=lambda gpu: gpu.phase not in _URGENT):
        if gpu.reason and all(gpu.reason != one.message for one in status.conditions):
            groups.setdefault((gpu.phase, gpu.reason), []).append(gpu.index)
    for (phase, reason), indices in groups.items():
        noun = "GPU" if len(indices) == 1 else "GPUs"
        text = f"{noun} {gpu_names.numbers(indices)} {phase}: {reason}"
        yield from paragraph(text, width=width, indent=2, mark=_MARK)


# ---- Tables -------------------------------------------------------------------------------------


def _resources(status: AgentStatus) -> Table:
    return Table(
        columns=[
            Column(title="RESOURCE", flexible=True),
            Column(title="SLICES", align=Align.RIGHT),
            Column(title="USABLE", align=Align.RIGHT),
            Column(title="HELD", align=Align.RIGHT),
            Column(title="KUBELET"),
        ],
        rows=[
            [
                one.name,
                str(one.slices),
                Cell(text=str(one.usable), tone=Tone.WARNING if one.usable < one.slices else None),
                str(one.held),
                _hearing(one),
            ]
            for one in status.resources
        ],
    )


def _hearing(one: ResourceStatus) -> Cell:
    if one.connected:
        return Cell(text="listens")
    text = "does not listen" if one.problem else "does not listen yet"
    return Cell(text=text, tone=Tone.WARNING)


def _gpus(status: AgentStatus, now: datetime, width: int) -> Table:
    """Return the table of GPUs; slices that do not fit beside one go on in the rows below it."""
    parts = [_summary(gpu.slices) for gpu in status.gpus]
    room = width - _gpu_table(status, now, [[""] for _ in parts]).natural_width
    room = max(room + len("SLICES"), _LEAST)
    return _gpu_table(status, now, [_packed(one, room) for one in parts])


def _gpu_table(status: AgentStatus, now: datetime, summaries: Sequence[Sequence[str]]) -> Table:
    rows: list[Sequence[str | Cell]] = []
    for gpu, (first, *others) in zip(status.gpus, summaries, strict=True):
        rows.append(
            [
                str(gpu.index),
                gpu.product.removeprefix("NVIDIA ") or "unknown",
                "-" if gpu.mig_mode == "unsupported" else gpu.mig_mode or "?",
                Cell(text=gpu.phase, tone=_TONES.get(gpu.phase, Tone.WARNING)),
                _age(gpu.since, now) or "?",
                first,
            ]
        )
        rows += [["", "", "", "", "", line] for line in others]
    return Table(
        columns=[
            Column(title="GPU", align=Align.RIGHT),
            Column(title="MODEL", flexible=True),
            Column(title="MIG"),
            Column(title="STATE"),
            Column(title="FOR", align=Align.RIGHT),
            Column(title="SLICES", flexible=True),
        ],
        rows=rows,
    )


def _summary(slices: Sequence[SliceStatus]) -> Sequence[str]:
    """Return slices in short: ``7 x mig-1g.5gb``, ``3 held``."""
    counts = Counter(one.resource.removeprefix(resource.DOMAIN) for one in slices)
    held = sum(bool(one.holders) for one in slices)
    unusable = sum(not one.usable for one in slices)
    leaving = sum(one.leaving for one in slices)
    parts = [f"{count} x {name}" for name, count in counts.items()]
    numbers = ((held, "held"), (leaving, "leaving"), (unusable, "unusable"))
    parts += [f"{count} {what}" for count, what in numbers if count]
    return parts or ["none"]


def _packed(parts: Sequence[str], room: int) -> Sequence[str]:
    """Return the parts on as few lines as they need, with commas between them."""
    lines = [""]
    for number, part in enumerate(parts):
        piece = part if number == len(parts) - 1 else f"{part},"
        joined = f"{lines[-1]} {piece}".lstrip()
        if len(joined) <= room or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines


def _for(since: str, now: datetime) -> str:
    age = _age(since, now)
    return f" for {age}" if age else ""


def _age(since: str, now: datetime) -> str:
    """Return how long ago something was, in kubectl's manner; empty when it is not known."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= 2 * unit:
            return f"{seconds // unit}{name}"
    return f"{max(seconds, 0)}s"
