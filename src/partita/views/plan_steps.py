"""The steps of a plan in order; GPUs on which the same is done share one list.

Steps on different GPUs do not depend on each other, so that order between GPUs is free.
"""

from collections.abc import Sequence

from partita.planner.plan import Create, Plan, Step
from partita.views import gpu_names, step_words
from partita.views.axis_map import Mark
from partita.views.gpu_names import count
from partita.views.style import Style, Tone
from partita.views.table import paragraph

__all__ = ["by_gpu", "lines"]

Key = tuple[str, int]

_TONES = {Mark.CREATED: Tone.GOOD, Mark.DESTROYED: Tone.BAD}


def by_gpu(steps: Sequence[Step]) -> dict[Key, list[Step]]:
    """Return the steps of each GPU, GPUs in the order of their first step."""
    found: dict[Key, list[Step]] = {}
    for step in steps:
        found.setdefault((step.node, step.index), []).append(step)
    return found


def lines(plan: Plan, *, width: int, style: Style) -> list[str]:
    """Return the steps, one list per GPU or group of like GPUs."""
    receivers = _receivers(plan)
    groups: dict[tuple[str, ...], list[Key]] = {}
    steps = by_gpu(plan.steps)
    for key, found in steps.items():
        signature = tuple(step_words.text(step, identity=False) for step in found)
        groups.setdefault(signature, []).append(key)
    title = style.paint(f"Steps: {len(plan.steps):,}, in this order on each GPU", Tone.TITLE)
    out = [title]
    for keys in groups.values():
        out += _titled(keys, width)
        for number, step in enumerate(steps[keys[0]], start=1):
            out += _step(number, step, keys, receivers, width=width, style=style)
    return out


def _titled(keys: Sequence[Key], width: int) -> list[str]:
    if len(keys) == 1:
        return paragraph(gpu_names.gpu(*keys[0]), width=width, indent=2)
    text = f"each of {count(len(keys), 'GPU')}: {gpu_names.gpus(keys)}"
    return paragraph(text, width=width, indent=2)


def _step(
    number: int,
    step: Step,
    keys: Sequence[Key],
    receivers: dict[tuple[Key, str], str],
    *,
    width: int,
    style: Style,
) -> list[str]:
    alone = len(keys) == 1
    text = step_words.text(step, identity=alone)
    if alone and isinstance(step, Create):
        pods = receivers.get((keys[0], str(step.placement)))
        text += f", for {pods}" if pods else ""
    mark = step_words.mark(step)
    sign = mark.value if mark is not None else "~"
    tone = _TONES.get(mark) if mark is not None else Tone.WARNING
    wrapped = paragraph(text, width=width, indent=4, mark=f"{number:>2}. {sign} ")
    return [style.paint(line, tone) for line in wrapped]


def _receivers(plan: Plan) -> dict[tuple[Key, str], str]:
    """Return the pods that are to get each created instance, by GPU and placement."""
    return {
        (gpu.gpu.key, str(instance.candidates[0])): gpu_names.names(instance.pods)
        for gpu in plan.gpus
        for instance in gpu.instances
        if instance.standing is None and instance.pods
    }
