"""What the planner may do with each GPU, from the policies that select it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partita.catalog import library
from partita.config.partition_policy import (
    Follow,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, Sharing
from partita.model.node import Node
from partita.model.resource import WHOLE_GPU, shared

__all__ = ["Permission", "permissions", "selected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What may be done with one GPU.

    Attributes:
        recut: Whether instances may be created and destroyed.
        profiles: Profiles that may be created, None = all.
        layout: Profile → count that it must have, None = as demand wants.
        whole: Whether it may serve as a whole GPU.
        change_mode: Whether its MIG mode may change.
        replicas: Replicas that it is to be served as when whole, 1 = not shared.
        sharing: How they share it, None when not shared.
        resource: Resource name it is served as when whole or shared.
        reset_refused: Whether a mode change is refused only because it needs a reset.
        frozen: Why nothing may be done, None when something may.
    """

    recut: bool = True
    profiles: frozenset[str] | None = None
    layout: Mapping[str, int] | None = None
    whole: bool = True
    change_mode: bool = True
    replicas: int = 1
    sharing: Sharing | None = None
    resource: str = WHOLE_GPU
    reset_refused: bool = False
    frozen: str | None = None


@dataclass(frozen=True, slots=True)
class _Selection:
    """Policies by GPU."""

    policies: Sequence[PartitionPolicy]
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def of(self, gpu: Gpu) -> tuple[PartitionPolicy, ...]:
        return tuple(policy for policy in self.policies if self._selects(policy, gpu))

    def _selects(self, policy: PartitionPolicy, gpu: Gpu) -> bool:
        node = self.nodes.get(gpu.node)
        labels = node.labels if node is not None else {}
        if any(labels.get(key) != value for key, value in policy.node_selector.items()):
            return False
        selector = policy.gpu_selector
        return (
            (not selector.indices or gpu.index in selector.indices)
            and (not selector.uuids or gpu.uuid in selector.uuids)
            and (not selector.models or _is_one_of(gpu, selector.models))
        )


def selected(
    fleet: Fleet, policies: Sequence[PartitionPolicy]
) -> dict[tuple[str, int], tuple[PartitionPolicy, ...]]:
    """Return the policies that select each GPU, by its key."""
    selection = _Selection(policies, {node.name: node for node in fleet.nodes})
    return {gpu.key: selection.of(gpu) for gpu in fleet.gpus}


def permissions(
    fleet: Fleet, policies: Sequence[PartitionPolicy]
) -> dict[tuple[str, int], Permission]:
    """Return the permission of every GPU, by its key.

    Without any policy everything may be re-cut. With policies, a GPU that none selects stays as it
    is, and so does one that two select: which of them is meant is not ours to guess.
    """
    chosen = selected(fleet, policies)
    return {gpu.key: _permission(gpu, policies, chosen[gpu.key]) for gpu in fleet.gpus}


def _permission(
    gpu: Gpu, policies: Sequence[PartitionPolicy], chosen: Sequence[PartitionPolicy]
) -> Permission:
    standing = Permission(
        replicas=gpu.replicas,
        sharing=gpu.sharing,
        resource=gpu.resource,
        change_mode=gpu.replicas == 1,
        recut=gpu.replicas == 1,
    )
    reason = _unfit(gpu) or (_undecided(chosen) if policies else None)
    if reason is not None:
        return _freeze(standing, reason)
    return _by_policy(gpu, chosen[0], standing) if policies else standing


def _unfit(gpu: Gpu) -> str | None:
    """Why the GPU itself cannot be re-cut."""
    if gpu.problem is not None:
        return gpu.problem
    if gpu.model is None:
        return f"{gpu.product} is not in the catalogue"
    if gpu.single_strategy:
        return "its node serves MIG slices under the strategy single"
    return None


def _undecided(chosen: Sequence[PartitionPolicy]) -> str | None:
    """Why the policies do not say what to do with a GPU."""
    if not chosen:
        return "no policy selects it"
    if len(chosen) > 1:
        names = ", ".join(policy.name for policy in chosen)
        return f"more than one policy selects it: {names}"
    return None


def _freeze(permission: Permission, reason: str) -> Permission:
    return Permission(
        replicas=permission.replicas,
        sharing=permission.sharing,
        resource=permission.resource,
        recut=False,
        change_mode=False,
        frozen=reason,
    )


def _by_policy(gpu: Gpu, policy: PartitionPolicy, standing: Permission) -> Permission:
    if policy.config_map_ref is not None:
        ref = policy.config_map_ref
        return _freeze(
            standing, f"policy {policy.name} takes its parameters from ConfigMap {ref.name}"
        )
    missing = _missing_profile(gpu, policy)
    if missing is not None:
        return _freeze(
            standing, f"policy {policy.name} wants {missing}, which {gpu.product} does not have"
        )
    refused = not policy.mig.allow_reset and _needs_reset(gpu)
    profiles = frozenset(policy.mig.profiles) or None
    match policy.strategy:
        case Strategy.WHOLE:
            return Permission(recut=False, change_mode=not refused, reset_refused=refused)
        case Strategy.MIG:
            return Permission(
                profiles=profiles,
                layout=policy.mig.layout if policy.follow is Follow.FIXED else None,
                whole=False,
                change_mode=not refused,
                reset_refused=refused,
            )
        case Strategy.AUTO:
            return Permission(profiles=profiles, change_mode=not refused, reset_refused=refused)
        case Strategy.TIME_SLICING | Strategy.MPS:
            mps = policy.strategy is Strategy.MPS
            parameters = policy.mps if mps else policy.time_slicing
            kind = Sharing.MPS if mps else Sharing.TIME_SLICING
            return _shared(parameters, kind, refused=refused)


def _shared(parameters: SharingParameters | None, kind: Sharing, *, refused: bool) -> Permission:
    resources = parameters.resources if parameters is not None else ()
    whole = next(
        (r for r in resources if r.name == WHOLE_GPU), SharedResource(name=WHOLE_GPU, replicas=1)
    )
    renamed = parameters is not None and parameters.rename_by_default and whole.replicas > 1
    return Permission(
        recut=False,
        change_mode=not refused,
        reset_refused=refused,
        replicas=whole.replicas,
        sharing=kind if whole.replicas > 1 else None,
        resource=shared(WHOLE_GPU) if renamed else WHOLE_GPU,
    )


def _missing_profile(gpu: Gpu, policy: PartitionPolicy) -> str | None:
    """Return the first profile of a fixed layout that the GPU cannot have."""
    model = library.find(gpu.model or "")
    profiles = model.mig.by_name if model is not None and model.mig is not None else {}
    layout = policy.mig.layout if policy.strategy is Strategy.MIG else None
    return next((name for name in layout or () if name not in profiles), None)


def _needs_reset(gpu: Gpu) -> bool:
    model = library.find(gpu.model or "")
    return model is not None and model.mig is not None and model.mig.mode_change_needs_reset


def _is_one_of(gpu: Gpu, names: Sequence[str]) -> bool:
    models = {model.id for model in (library.find(name) for name in names) if model is not None}
    return gpu.model in models or gpu.product in names
