"""What a node object says of its GPUs: labels of GPU feature discovery and resource counts.

Counts are of resources pods may be bound to (``allocatable``). Labels fill in where there are no
counts. Neither says which GPU a slice is on. Under the strategy *single* with MIG on, the labels
``gpu.count`` and ``gpu.product`` and the resource ``nvidia.com/gpu`` speak of slices.
Source: NVIDIA/k8s-device-plugin v0.20.0, GPU feature discovery (``internal/lm``).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from partita.model import resource
from partita.model.gpu import Sharing
from partita.model.node import Node

__all__ = ["Advertisement", "read"]

_LABEL = "nvidia.com/gpu."
_MIG_COUNT = re.compile(r"nvidia\.com/mig-(?P<profile>.+)\.count\Z")
_SHARED, _MIG, _INVALID = "-SHARED", "-MIG-", "-MIG-INVALID"
_STRATEGIES = {"time-slicing": Sharing.TIME_SLICING, "mps": Sharing.MPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """What a node object says of its GPUs. Unknown is None.

    Attributes:
        product: Product without what the labels append to it.
        gpu_count: Physical GPUs, None also where the label counts slices.
        memory_mib: Memory of one GPU, None also where the label is of a slice or a share.
        strategy: MIG strategy: ``none``, ``single`` or ``mixed``.
        single: Whether slices are served as ``nvidia.com/gpu``.
        slices: MIG slices that may be used, by profile; zeros are left out.
        confirmed: Profiles whose label says the same number.
        whole: Whole GPUs or shared slots that may be used.
        replicas: Slots per shared GPU as the labels say.
        slice_replicas: Slots per shared MIG slice, by profile, where more than 1.
        sharing: How GPUs are shared.
        renamed: Whether the shared resource is ``nvidia.com/gpu.shared``.
        mig_on: Whether the labels say that GPUs were switched to MIG.
        counted: Whether resource counts are known.
        notes: What does not agree, in words for the user.
    """

    product: str | None = None
    gpu_count: int | None = None
    memory_mib: int | None = None
    strategy: str | None = None
    single: bool = False
    slices: Mapping[str, int]
    confirmed: frozenset[str] = frozenset()
    whole: int | None = None
    replicas: int | None = None
    slice_replicas: Mapping[str, int]
    sharing: Sharing | None = None
    renamed: bool = False
    mig_on: bool = False
    counted: bool = False
    notes: tuple[str, ...] = ()


def read(node: Node) -> Advertisement:
    """Return what the node object says; nothing when it says nothing of GPUs."""
    labels = node.labels
    product = labels.get(_LABEL + "product")
    strategy = labels.get("nvidia.com/mig.strategy")
    single = product is not None and _MIG in product and strategy in (None, "single")
    replicas = _number(labels, _LABEL + "replicas")
    whole = _whole(node)
    slices = _single_slices(labels, whole) if single else _slices(node)
    memory = _number(labels, _LABEL + "memory")
    return Advertisement(
        product=_plain(product),
        gpu_count=None if single else _number(labels, _LABEL + "count"),
        memory_mib=None if single or (product or "").endswith(_SHARED) else memory,
        strategy=strategy,
        single=single,
        slices=slices,
        confirmed=frozenset(p for p, n in _labelled(labels).items() if slices.get(p) == n),
        whole=None if single else whole,
        replicas=replicas,
        slice_replicas=dict(_slice_replicas(labels)),
        sharing=_sharing(labels, node),
        renamed=_counts(node).get(resource.shared(resource.WHOLE_GPU), 0) > 0,
        mig_on=_mig_on(labels),
        counted=bool(node.allocatable),
        notes=tuple(_notes(node, product)),
    )


def _number(labels: Mapping[str, str], key: str) -> int | None:
    text = labels.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 - digits


def _plain(product: str | None) -> str | None:
    return None if product is None else product.removesuffix(_SHARED).partition(_MIG)[0]


def _counts(node: Node) -> Mapping[str, int]:
    return node.allocatable or node.capacity


def _whole(node: Node) -> int | None:
    """Whole GPUs, or slots of shared ones under either name."""
    counts = _counts(node)
    names = (resource.WHOLE_GPU, resource.shared(resource.WHOLE_GPU))
    return sum(counts.get(name, 0) for name in names) if set(names) & counts.keys() else None


def _single_slices(labels: Mapping[str, str], whole: int | None) -> Mapping[str, int]:
    suffix = labels[_LABEL + "product"].removesuffix(_SHARED).partition(_MIG)[2]
    profile = resource.mig_profile(f"{resource.DOMAIN}mig-{suffix}")
    count = whole if whole is not None else _number(labels, _LABEL + "count")
    return {profile: count} if profile is not None and count else {}


def _slices(node: Node) -> Mapping[str, int]:
    """Slices by profile: the count of the resource where there is one, else the label."""
    shares = dict(_slice_replicas(node.labels))
    found = dict(_labelled(node.labels))
    for name, count in _counts(node).items():
        profile = resource.mig_profile(name)
        if profile is not None:
            other = resource.shared(name) if name == resource.unshared(name) else name
            total = count if other == name else count + _counts(node).get(other, 0)
            found[profile] = -(-total // shares.get(profile, 1))
    return {profile: count for profile, count in sorted(found.items()) if count > 0}


def _labelled(labels: Mapping[str, str]) -> Mapping[str, int]:
    found = {}
    for key in labels:
        match = _MIG_COUNT.match(key)
        profile = resource.mig_profile(f"{resource.DOMAIN}mig-{match[1]}") if match else None
        count = _number(labels, key)
        if profile is not None and count is not None:
            found[profile] = count
    return found


def _slice_replicas(labels: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for profile in _labelled(labels):
        replicas = _number(labels, f"{resource.mig_resource(profile)}.replicas") or 1
        if replicas > 1:
            yield profile, replicas


def _sharing(labels: Mapping[str, str], node: Node) -> Sharing | None:
    written = labels.get(_LABEL + "sharing-strategy")
    if written in _STRATEGIES:
        return _STRATEGIES[written]
    shared = (
        labels.get(_LABEL + "product", "").endswith(_SHARED)
        or (_number(labels, _LABEL + "replicas") or 1) > 1
        or _counts(node).get(resource.shared(resource.WHOLE_GPU), 0) > 0
    )
    return Sharing.TIME_SLICING if shared else None


def _mig_on(labels: Mapping[str, str]) -> bool:
    """Whether GPUs are in MIG mode by the labels, whatever is on them."""
    if _MIG in labels.get(_LABEL + "product", ""):
        return True
    config = labels.get("nvidia.com/mig.config", "all-disabled")
    applied = labels.get("nvidia.com/mig.config.state") == "success"
    return applied and config != "all-disabled" and labels.get("nvidia.com/mig.capable") != "false"


def _notes(node: Node, product: str | None) -> Iterator[str]:
    if product is not None and product.endswith(_INVALID):
        yield (
            f"node {node.name}: label nvidia.com/gpu.product says MIG-INVALID: under strategy"
            " single all GPUs need the same MIG mode and profile"
        )
    for name, count in sorted(node.capacity.items()):
        allocatable = node.allocatable.get(name, 0)
        if node.allocatable and count > allocatable:
            yield (
                f"node {node.name}: {count - allocatable} of {count} {name} are gone or unhealthy,"
                f" only allocatable counts: {allocatable}"
            )
    for profile, count in sorted(_labelled(node.labels).items()):
        name = resource.mig_resource(profile)
        allocatable = node.allocatable.get(name, node.allocatable.get(resource.shared(name), count))
        share = dict(_slice_replicas(node.labels)).get(profile, 1)
        if allocatable not in (count, count * share):
            yield f"node {node.name}: allocatable {name} is {allocatable}, its label says: {count}"
