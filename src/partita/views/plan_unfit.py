"""Pending pods that do not fit: why, and the nearest change that would make them fit."""

from collections.abc import Mapping, Sequence

from partita.model.pod import Pod
from partita.planner.plan import Plan, Reason, Unfit
from partita.views import gpu_names
from partita.views.gpu_names import count
from partita.views.style import Style, Tone
from partita.views.table import facts, paragraph

__all__ = ["lines", "reason_code", "wish"]

_MOST = 10  # groups of pods before the rest is only counted


def reason_code(reason: Reason) -> str:
    """Return the stable name of a reason: ``no-such-resource``."""
    return reason.name.lower().replace("_", "-")


def wish(requests: Mapping[str, int]) -> str:
    """Return what a pod asks for: ``2 x nvidia.com/mig-1g.10gb``."""
    return " + ".join(f"{number} x {resource}" for resource, number in requests.items())


def lines(plan: Plan, *, width: int, style: Style, every: bool) -> list[str]:
    """Return a paragraph per pod; pods with the same request and the same answer share one.

    Args:
        plan: The plan.
        width: Columns the text may take.
        style: How it is emphasised.
        every: Whether to show all of them, however many.
    """
    groups = _groups(plan.unfit)
    shown = groups if every else groups[:_MOST]
    found = [style.paint(f"Not fitting: {count(len(plan.unfit), 'pod')}", Tone.BAD)]
    for number, group in enumerate(shown):
        found += [""] if number else []
        found += _group(group, width=width, style=style)
    left = sum(len(group) for group in groups[len(shown) :])
    if left:
        found += ["", f"  and {count(left, 'more pod')}, shown with --all"]
    return found


def _groups(unfit: Sequence[Unfit]) -> list[list[Unfit]]:
    groups: dict[tuple[object, ...], list[Unfit]] = {}
    for one in unfit:
        request = tuple(one.pod.requests.items())
        changes = tuple(change.text for change in one.changes)
        key = (request, one.pod.memory_mib, one.reason, one.detail, changes)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _group(group: Sequence[Unfit], *, width: int, style: Style) -> list[str]:
    first = group[0]
    names = gpu_names.names(one.pod.full_name for one in group)
    many = f" ({count(len(group), 'pod')})" if len(group) > 1 else ""
    title = paragraph(f"{names}{many}: {_asks(first.pod)}", width=width, indent=2)
    answers = [("why", first.detail or first.reason.value)]
    for number, change in enumerate(first.changes):
        answers.append(("or" if number else "nearest", change.text))
    if not first.changes:
        answers.append(("nearest", "none known"))
    return [
        *(style.paint(line, Tone.TITLE) for line in title),
        *facts(answers, width=width, style=style, indent=4),
    ]


def _asks(pod: Pod) -> str:
    memory = f", with {pod.memory_mib} MiB each" if pod.memory_mib is not None else ""
    return wish(pod.requests) + memory
