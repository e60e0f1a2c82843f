"""A plan as a mig-parted configuration, with what applying it would break said in its head.

mig-parted compares a GPU's instances with the wanted ones by number. Where they differ it destroys
every instance on that GPU, held or not, and lets the driver choose the places of the new ones. So
the document says less than the plan, and the comments say what is lost.
Source: NVIDIA/mig-parted, ``pkg/mig/config``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from partita.catalog import library
from partita.config import mig_parted, yaml_text
from partita.config.mig_parted import MigEntry, NamedMigConfig
from partita.config.yaml_nodes import Position
from partita.model.gpu import MigMode
from partita.planner.plan import GpuPlan, Plan
from partita.views import gpu_cells, gpu_names, yaml_comments
from partita.views.gpu_names import count
from partita.views.table import paragraph

__all__ = ["text"]

_LABEL = "nvidia.com/mig.config"
_MOST_LABEL = 63  # characters of a label value
_NOWHERE = Position(line=1, column=1)
_MOST_LOSSES = 40
_WIDTH = 98
_WARNING = (
    "CAUTION: applying this is not the plan. On every GPU whose instances differ from the wanted "
    "ones, mig-parted destroys all instances, held or not, and the driver chooses the places of "
    "the new ones. `partita plan --to nvidia-smi` keeps what is held."
)
_RESET = (
    "A mode change that needs a reset makes mig-parted reset every GPU of the node, not only those "
    "that change."
)

Layout = tuple[tuple[str, int], ...]  # profile and count, sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """GPUs of one node that get the same: an entry of a configuration, comparable.

    Attributes:
        filters: PCI device ids, empty where the node has one model only.
        enabled: Whether MIG is on.
        layout: What each of them is cut into.
        indices: NVML indices.
    """

    filters: tuple[str, ...]
    enabled: bool
    layout: Layout
    indices: tuple[int, ...]

    def entry(self) -> MigEntry:
        """Return it as an entry of a mig-parted file."""
        return MigEntry(
            devices=self.indices,
            device_filters=self.filters,
            mig_enabled=self.enabled,
            mig_devices=dict(self.layout),
            at=_NOWHERE,
            devices_at=_NOWHERE,
            mig_devices_at=_NOWHERE,
            filter_at=_NOWHERE,
        )


def text(plan: Plan) -> str:
    """Return the configuration as YAML with comments; nodes with the same layout share one."""
    nodes = _nodes_by_shares(plan)
    named = {_name(number, of): shares for number, (shares, of) in enumerate(nodes.items(), 1)}
    configs = [
        NamedMigConfig(name=name, entries=tuple(s.entry() for s in shares), at=_NOWHERE)
        for name, shares in named.items()
    ]
    head = list(_introduction(plan))
    if configs:
        labels = {name: nodes[shares] for name, shares in named.items()}
        head += ["", "mig-manager starts as soon as the label is set. It drains nothing:"]
        head += yaml_comments.label_commands(_LABEL, labels)
    else:
        head += ["", "No GPU here can be cut by MIG; a file without configs would be refused."]
        configs = [NamedMigConfig(name="all-disabled", entries=(_all_off(),), at=_NOWHERE)]
    return f"{yaml_comments.block(head)}\n{yaml_text.dump(mig_parted.encode(configs))}".rstrip("\n")


# ---- The configurations -------------------------------------------------------------------------


def _nodes_by_shares(plan: Plan) -> dict[tuple[_Share, ...], list[str]]:
    """Return the distinct node layouts, each with its nodes."""
    gpus: dict[str, list[GpuPlan]] = {}
    for gpu in plan.gpus:
        gpus.setdefault(gpu.gpu.node, []).append(gpu)
    found: dict[tuple[_Share, ...], list[str]] = {}
    for node, on_node in gpus.items():
        shares = _shares(on_node)
        if shares:
            found.setdefault(shares, []).append(node)
    return found


def _shares(gpus: Sequence[GpuPlan]) -> tuple[_Share, ...]:
    """Group the GPUs of a node; those that cannot be cut are left out, so they stay as they are."""
    mixed = len({gpu.gpu.model for gpu in gpus}) > 1
    found: dict[tuple[tuple[str, ...], bool, Layout], list[int]] = {}
    for gpu in gpus:
        if not _is_listed(gpu):
            continue
        model = library.find(gpu.gpu.model or "")
        filters = model.pci_devices if mixed and model is not None else ()
        enabled = gpu.mig_mode is MigMode.ON
        key = (filters, enabled, _planned(gpu) if enabled else ())
        found.setdefault(key, []).append(gpu.gpu.index)
    return tuple(
        _Share(filters=filters, enabled=enabled, layout=layout, indices=tuple(indices))
        for (filters, enabled, layout), indices in found.items()
    )


def _is_listed(gpu: GpuPlan) -> bool:
    """Tell whether a GPU can be cut and is known; mig-parted leaves the others as they are."""
    can = gpu.mig_mode is not MigMode.UNSUPPORTED and gpu_cells.capability(gpu.gpu) is not None
    return can and gpu.gpu.problem is None and not gpu_cells.is_obscure(gpu.gpu)


def _name(number: int, nodes: Sequence[str]) -> str:
    """Return a name that is a label value; no node is called such that two names meet."""
    name = f"partita-{nodes[0]}"
    if len(nodes) == 1 and len(name) <= _MOST_LABEL:
        return name
    return f"partita.layout-{number}"


def _all_off() -> MigEntry:
    entry = _Share(filters=(), enabled=False, layout=(), indices=()).entry()
    return MigEntry(
        devices=None,
        mig_enabled=False,
        at=entry.at,
        devices_at=entry.at,
        mig_devices_at=entry.at,
        filter_at=entry.at,
    )


# ---- What is lost -------------------------------------------------------------------------------


def _introduction(plan: Plan) -> Iterator[str]:
    yield "mig-parted configuration with the layouts of a partita plan"
    yield ""
    yield from paragraph(_WARNING, width=_WIDTH)
    if any(gpu.needs_reset for gpu in plan.gpus):
        yield from paragraph(_RESET, width=_WIDTH)
    cleared = [gpu for gpu in plan.gpus if _is_cleared(gpu)]
    losses = list(_losses(cleared))
    yield ""
    if losses:
        yield "It would destroy these held instances, which the plan keeps:"
        for loss in losses[:_MOST_LOSSES]:
            yield from yaml_comments.bullet(loss)
        if len(losses) > _MOST_LOSSES:
            yield f"  and {count(len(losses) - _MOST_LOSSES, 'more instance')}"
    else:
        yield "No held instance is on a GPU that it would clear."
    elsewhere = list(_elsewhere(plan.gpus))
    if elsewhere:
        yield ""
        yield "The driver may choose other places than these planned ones:"
        for line in elsewhere:
            yield from yaml_comments.bullet(line)


def _is_cleared(gpu: GpuPlan) -> bool:
    """Tell whether mig-parted would destroy what stands on the GPU."""
    if gpu.gpu.mig_mode is not MigMode.ON:
        return False
    differs = gpu.mig_mode is not MigMode.ON or _planned(gpu) != _standing(gpu)
    return _is_listed(gpu) and differs


def _losses(cleared: Sequence[GpuPlan]) -> Iterator[str]:
    for gpu in cleared:
        for instance in gpu.gpu.instances:
            if instance.hold.pinned:
                where = str(instance.placement or "an unknown place")
                by = gpu_names.names(instance.holders) or "unknown holders"
                name = gpu_names.gpu(*gpu.gpu.key)
                yield f"{name} {instance.profile} at {where}, held by {by}"


def _elsewhere(gpus: Sequence[GpuPlan]) -> Iterator[str]:
    """Yield the layouts that have to be made and fit on their GPUs in more than one way."""
    found: dict[tuple[Layout, str], list[tuple[str, int]]] = {}
    for gpu in gpus:
        made = gpu.mig_mode is MigMode.ON and _planned(gpu) != _standing(gpu)
        if made and not _is_forced(gpu.gpu.model or "", _planned(gpu)):
            places = ", ".join(f"{i.profile} at {i.candidates[0]}" for i in gpu.instances)
            found.setdefault((_planned(gpu), places), []).append(gpu.gpu.key)
    for (_, places), keys in found.items():
        yield f"{gpu_names.gpus(keys)}: {places}"


@cache
def _is_forced(model: str, layout: Layout) -> bool:
    """Tell whether a layout fits on a GPU model in exactly one way."""
    found = library.find(model)
    if found is None or found.mig is None:
        return False
    profiles = [found.mig.by_name[name] for name, times in layout for _ in range(times)]
    ways = {(0, frozenset[tuple[str, int]]())}
    for profile in profiles:
        ways = {
            (taken | place.mask, where | {(profile.name, place.start)})
            for taken, where in ways
            for place in profile.placements
            if not taken & place.mask
        }
    return len(ways) == 1


def _planned(gpu: GpuPlan) -> Layout:
    return _layout(gpu, [instance.profile for instance in gpu.instances])


def _standing(gpu: GpuPlan) -> Layout:
    return _layout(gpu, [instance.profile for instance in gpu.gpu.instances])


def _layout(gpu: GpuPlan, profiles: Sequence[str]) -> Layout:
    """Count profiles under the names of the catalogue."""
    mig = gpu_cells.capability(gpu.gpu)
    known = mig.by_name if mig is not None else {}
    names = (known[name].name if name in known else name for name in profiles)
    return tuple(sorted(Counter(names).items()))
