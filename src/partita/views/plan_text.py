"""A plan for people: the answer first, then who does not fit, what to do, and how it looks.

It fits in the given width and stays short for a large fleet: what is alike is shown once.
"""

from collections.abc import Sequence

from partita.planner.plan import Plan
from partita.views import plan_assignments, plan_layouts, plan_steps, plan_summary, plan_unfit
from partita.views.axis_map import BOXES, Frame
from partita.views.style import Style, Tone
from partita.views.table import paragraph

__all__ = ["text"]

_MOST_NOTES = 10


def text(plan: Plan, *, width: int, style: Style, frame: Frame = BOXES, every: bool = False) -> str:
    """Return a plan as text.

    Args:
        plan: The plan.
        width: Columns the text may take.
        style: How it is emphasised.
        frame: Characters of the lines around boxes.
        every: Whether to show every GPU, pod and note by itself, however many.
    """
    blocks = [plan_summary.lines(plan, width=width, style=style)]
    if plan.unfit:
        blocks.append(plan_unfit.lines(plan, width=width, style=style, every=every))
    if plan.steps:
        blocks.append(plan_steps.lines(plan, width=width, style=style))
    blocks.append(plan_layouts.lines(plan, width=width, style=style, frame=frame, every=every))
    blocks.append(plan_layouts.unchanged(plan, width=width, every=every))
    if plan.assignments:
        blocks.append(plan_assignments.lines(plan, width=width, style=style, every=every))
    for title, told in (("Mind", plan.warnings), ("What is not known", plan.fleet.notes)):
        blocks.append(_told(title, told, width=width, style=style, every=every))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _told(title: str, told: Sequence[str], *, width: int, style: Style, every: bool) -> list[str]:
    if not told:
        return []
    shown = told if every else told[:_MOST_NOTES]
    found = [style.paint(title, Tone.TITLE)]
    for note in shown:
        found += paragraph(note, width=width, indent=2, mark="- ")
    if len(told) > len(shown):
        found.append(f"  and {len(told) - len(shown)} more, shown with --all")
    return found
