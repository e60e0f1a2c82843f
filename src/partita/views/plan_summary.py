"""What matters of a plan in a few lines: who fits, what is done, what it takes and costs."""

from collections.abc import Iterator, Sequence

from partita.planner.plan import Create, Destroy, Plan, SetMigMode, SetReplicas, Unusable
from partita.views import gpu_names, step_words
from partita.views.gpu_names import count
from partita.views.style import Style, Tone
from partita.views.table import facts

__all__ = ["fitting_pods", "headline", "lines", "waste"]


def fitting_pods(plan: Plan) -> tuple[str, ...]:
    """Return the pending pods that get all they ask for, each once."""
    return tuple(dict.fromkeys(assignment.pod for assignment in plan.assignments))


def headline(plan: Plan) -> str:
    """Return the answer in one line."""
    fit, unfit = len(fitting_pods(plan)), len(plan.unfit)
    if not fit + unfit:
        return "No pod is pending" + (", policies ask for these steps" if plan.steps else "")
    if not unfit:
        pods = "The pending pod fits" if fit == 1 else f"All {fit:,} pending pods fit"
        return pods if plan.steps else f"{pods}, nothing has to change"
    verb = "does" if unfit == 1 else "do"
    return f"{fit:,} of {count(fit + unfit, 'pending pod')} fit, {unfit:,} {verb} not"


def lines(plan: Plan, *, width: int, style: Style) -> list[str]:
    """Return the headline and the facts below it."""
    title = style.paint(headline(plan), Tone.BAD if plan.unfit else Tone.TITLE)
    return [title, *facts(list(_facts(plan)), width=width, style=style)]


def waste(found: Sequence[Unusable]) -> str:
    """Return unusable capacity in words, summed over GPUs."""
    slices = sum(one.memory_slices for one in found)
    compute = sum(one.compute_slices for one in found)
    known = [one.memory_mib for one in found if one.memory_mib is not None]
    memory = ""
    if slices:
        wasteful = [one for one in found if one.memory_slices]
        partly = any(one.memory_mib is None for one in wasteful)
        amount = step_words.gib(sum(known)) if known else "unknown memory"
        memory = f" ({'at least ' if partly and known else ''}{amount})"
    return (
        f"{slices:,} of {sum(one.memory_slices_total for one in found):,} memory slices{memory}, "
        f"{compute:,} of {sum(one.compute_slices_total for one in found):,} compute slices"
    )


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "Steps", _steps(plan)
    switches = [step for step in plan.steps if isinstance(step, SetMigMode)]
    if switches:
        yield "MIG mode", _switches(switches)
        yield "Resets", _resets(switches)
    pinned = sum(i.hold.pinned for gpu in plan.gpus for i in gpu.gpu.instances)
    whole = sum(gpu.gpu.hold.pinned for gpu in plan.gpus)
    if pinned or whole:
        held = [count(pinned, "held instance")] if pinned else []
        held += [f"{count(whole, 'GPU')} held as a whole"] if whole else []
        yield "Untouched", " and ".join(held)
    cut = [gpu.unusable for gpu in plan.gpus if gpu.unusable is not None]
    if cut:
        yield "Unusable", f"{waste(cut)}, after the plan"
    yield "Optimal", _proof(plan)


def _steps(plan: Plan) -> str:
    if not plan.steps:
        return "none, everything stays as it is"
    touched = len({(step.node, step.index) for step in plan.steps})
    kinds = (
        (Destroy, "free instance", "destroyed"),
        (Create, "instance", "created"),
        (SetMigMode, "MIG mode", "switched"),
        (SetReplicas, "GPU", "shared anew"),
    )
    counts = ((sum(isinstance(s, kind) for s in plan.steps), n, verb) for kind, n, verb in kinds)
    parts = [f"{count(number, noun)} {verb}" for number, noun, verb in counts if number]
    where = f"{touched:,} of {count(len(plan.gpus), 'GPU')}"
    return f"{len(plan.steps):,} on {where}: {', '.join(parts)}"


def _switches(switches: Sequence[SetMigMode]) -> str:
    parts = []
    for enable, word in ((True, "on"), (False, "off")):
        keys = [(step.node, step.index) for step in switches if step.enable is enable]
        if keys:
            parts.append(f"switched {word}: {gpu_names.gpus(keys)}")
    return "; ".join(parts)


def _resets(switches: Sequence[SetMigMode]) -> str:
    keys = [(step.node, step.index) for step in switches if step.needs_reset]
    if not keys:
        return "none"
    return f"{count(len(keys), 'GPU')}, nothing may run there meanwhile: {gpu_names.gpus(keys)}"


def _proof(plan: Plan) -> str:
    if plan.proven:
        return "proven, no better plan exists"
    return "not proven, the best plan found before the search was cut off"
