"""Which pending pod gets which slice."""

from dataclasses import dataclass

from partita.model import resource
from partita.model.placement import Placement
from partita.planner.plan import Assignment, Plan
from partita.views import gpu_names
from partita.views.gpu_names import count
from partita.views.style import Style, Tone
from partita.views.table import Column, Table

__all__ = ["lines"]

_MOST = 25  # rows before the rest is only counted


def lines(plan: Plan, *, width: int, style: Style, every: bool) -> list[str]:
    """Return a table of pods and their slices.

    Args:
        plan: The plan.
        width: Columns the text may take.
        style: How it is emphasised.
        every: Whether to show all rows, however many.
    """
    slices = _Slices.of(plan)
    rows = [slices.row(one) for one in plan.assignments]
    shown = rows if every else rows[:_MOST]
    titles = ("POD", "RESOURCE", "GPU", "SLICE")
    columns = [Column(title=title, flexible=title in ("POD", "GPU")) for title in titles]
    table = Table(columns=columns, rows=shown, indent=2).lines(width=width, style=style)
    found = [style.paint("Pods and their slices", Tone.TITLE), *table]
    if len(rows) > len(shown):
        found.append(f"  and {count(len(rows) - len(shown), 'more slice')}, shown with --all")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slices:
    """What kinds of slices a plan has.

    Attributes:
        created: Node, index and placement of each instance that is created.
        shared: Node and index of each GPU that is served several times over.
    """

    created: frozenset[tuple[str, int, Placement]]
    shared: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, plan: Plan) -> "_Slices":
        created = frozenset(
            (*gpu.gpu.key, instance.candidates[0])
            for gpu in plan.gpus
            for instance in gpu.instances
            if instance.standing is None
        )
        shared = frozenset(gpu.gpu.key for gpu in plan.gpus if gpu.replicas > 1)
        return cls(created=created, shared=shared)

    def row(self, one: Assignment) -> tuple[str, str, str, str]:
        if one.index is None:
            return (one.pod, one.resource, f"{one.node}/?", "stands already, on one of the GPUs")
        gpu = gpu_names.gpu(one.node, one.index)
        return (one.pod, one.resource, gpu, self._where(one, one.index))

    def _where(self, one: Assignment, index: int) -> str:
        if one.placement is not None:
            new = (one.node, index, one.placement) in self.created
            return f"{one.placement}, {'new' if new else 'stands already'}"
        if resource.mig_profile(one.resource) is not None:
            return "stands already, placement unknown"
        return "shared slot" if (one.node, index) in self.shared else "whole GPU"
