"""Steps of a plan in words, without the GPU that they concern."""

from partita.model.gpu import Sharing
from partita.planner.plan import Create, Destroy, SetMigMode, SetReplicas, Step
from partita.views.axis_map import Mark
from partita.views.gpu_names import count

__all__ = ["gib", "kind", "mark", "text"]

_MIB_PER_GIB = 1024


def kind(step: Step) -> str:
    """Return the stable name of the kind of a step."""
    match step:
        case SetMigMode():
            return "set-mig-mode"
        case Destroy():
            return "destroy"
        case Create():
            return "create"
        case SetReplicas():
            return "set-replicas"


def mark(step: Step) -> Mark | None:
    """Return the mark that the map shows for it, None when it changes no instance."""
    match step:
        case Destroy():
            return Mark.DESTROYED
        case Create():
            return Mark.CREATED
        case SetMigMode() | SetReplicas():
            return None


def text(step: Step, *, identity: bool = True) -> str:
    """Return a step in words: ``create 3g.40gb at 4:4``.

    Args:
        step: The step.
        identity: Whether to name the driver's instance id, which differs between like GPUs.
    """
    match step:
        case SetMigMode():
            words = f"switch MIG {'on' if step.enable else 'off'}"
            return words + (", which takes a reset of this GPU" if step.needs_reset else "")
        case Destroy():
            known = identity and step.instance_id is not None
            which = f" (instance {step.instance_id})" if known else ""
            where = f"at {step.placement}" if step.placement is not None else "placement unknown"
            return f"destroy {step.profile} {where}{which}"
        case Create():
            return f"create {step.profile} at {step.placement}"
        case SetReplicas():
            return _replicas(step)


def gib(memory_mib: int | None) -> str:
    """Return an amount of memory as GiB: ``19.5 GiB``, ``unknown``."""
    return "unknown" if memory_mib is None else f"{memory_mib / _MIB_PER_GIB:,.1f} GiB"


def _replicas(step: SetReplicas) -> str:
    if step.replicas == 1:
        return "serve the whole GPU once, not shared"
    budget = gib(step.budget_mib) if step.budget_mib is not None else "a share of unknown memory"
    if step.budget_mib is not None and not step.budget_exact:
        budget = f"at most {budget}"
    by = " by MPS" if step.sharing is Sharing.MPS else " by time-slicing"
    slots = count(step.replicas, "shared slot")
    return f"serve the whole GPU as {slots} of {budget} each{by}"
