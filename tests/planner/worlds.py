"""Fleets to try the planner on: small builders for named cases, and hypothesis strategies.

Every generated fleet can exist: instances that stand together may do so, and what ``Fleet.held``
counts agrees with the holds of the slices.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from partita.catalog import legality, library
from partita.catalog.gpu_model import MigCapability
from partita.catalog.legality import Slot
from partita.config.partition_policy import (
    Follow,
    GpuSelector,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode, Sharing
from partita.model.node import Node, Taint
from partita.model.placement import Placement
from partita.model.pod import Phase, Pod, Toleration
from partita.model.resource import WHOLE_GPU, mig_resource

__all__ = [
    "EFFORT",
    "arrangements",
    "board",
    "consistent",
    "examples",
    "fleets",
    "instance",
    "large_fleets",
    "mig_of",
    "orders",
    "pod",
    "policies",
    "standing",
]

EFFORT = int(os.environ.get("PARTITA_TEST_EFFORT", "1"))
"""Factor on the number of generated examples: 1 is the normal run, 20 a thorough one."""

_MODELS = ("a30", "a100-40gb-sxm4", "h100-80gb-sxm5", "rtx-pro-6000-se", "l4")
_DATES = tuple(f"2025-03-0{day}T08:00:00Z" for day in range(1, 6))
_HOLDS = (  # what the input tells of holders: which slices, only how many, or some of both
    (Hold.FREE, Hold.HELD),
    (Hold.FREE, Hold.POSSIBLE),
    (Hold.FREE, Hold.HELD, Hold.POSSIBLE),
)
_NOBODY_HAS = ("nvidia.com/mig-3g.21gb", "nvidia.com/mig-9g.99gb", "nvidia.com/gpu.shared")


def examples(count: int) -> settings:
    """Return the settings of a property test with so many examples in the normal run."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=count * EFFORT, deadline=None, print_blob=True, suppress_health_check=slow
    )


# ---- Builders -----------------------------------------------------------------------------------


def mig_of(gpu: Gpu) -> MigCapability:
    """Return what MIG means on a GPU that has it."""
    mig = library.get(gpu.product).mig
    assert mig is not None
    return mig


def instance(
    model: str, profile: str, *starts: int, hold: Hold = Hold.FREE, holder: str | None = None
) -> GpuInstance:
    """Return an instance at a start, or at one of several; with a holder it is held."""
    size = library.get(model).profile(profile).placements[0].size
    return GpuInstance(
        profile=profile,
        candidates=tuple(Placement(start=start, size=size) for start in starts),
        hold=Hold.HELD if holder is not None else hold,
        holders=(holder,) if holder is not None else (),
    )


def board(
    model: str,
    *instances: GpuInstance,
    node: str = "n1",
    index: int = 0,
    mig_mode: MigMode | None = None,
    holder: str | None = None,
) -> Gpu:
    """Return a GPU: MIG on when it has instances, or as told; with a holder it is held whole."""
    found = library.get(model)
    if mig_mode is None:
        mig_mode = MigMode.ON if instances else MigMode.OFF
    return Gpu(
        node=node,
        index=index,
        product=found.names[0],
        model=found.id,
        mig_mode=mig_mode if found.mig is not None else MigMode.UNSUPPORTED,
        instances=instances,
        hold=Hold.HELD if holder is not None else Hold.FREE,
        holders=(holder,) if holder is not None else (),
        slots_held=int(holder is not None),
        memory_mib=found.memory_mib,
    )


def pod(name: str, *requests: str, **fields: object) -> Pod:
    """Return a pending pod that asks for profiles or ``gpu``, one of each time it is named."""
    counts: dict[str, int] = {}
    for request in requests:
        resource = WHOLE_GPU if request == "gpu" else mig_resource(request)
        counts[resource] = counts.get(resource, 0) + 1
    return Pod(namespace="lab", name=name, requests=counts, **fields)


def standing(
    *gpus: Gpu,
    pods: Sequence[Pod] = (),
    nodes: Sequence[Node] = (),
    held: Mapping[tuple[str, str], int] | None = None,
) -> Fleet:
    """Return a fleet; what is held is counted, except where ``held`` says that it is fewer."""
    names = dict.fromkeys(gpu.node for gpu in gpus)
    return Fleet(
        nodes=tuple(nodes) or tuple(Node(name=name) for name in names),
        gpus=gpus,
        pods=tuple(pods),
        held=_held(gpus) | dict(held or {}),
    )


def _held(gpus: Sequence[Gpu]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}

    def count(node: str, resource: str, number: int) -> None:
        found[node, resource] = found.get((node, resource), 0) + number

    for gpu in gpus:
        if gpu.mig_mode is not MigMode.ON:
            count(gpu.node, gpu.resource, gpu.slots_held)
        for one in gpu.instances:
            count(gpu.node, mig_resource(one.profile), int(one.hold.pinned))
    return found


def arrangements(mig: MigCapability, instances: Sequence[GpuInstance]) -> list[tuple[Slot, ...]]:
    """Return every legal way in which instances may stand, each in the order of the instances."""
    found: list[tuple[Slot, ...]] = [()]
    for one in instances:
        found = [
            (*slots, Slot(placement=placement, profile=one.profile))
            for slots in found
            for placement in one.candidates
            if legality.is_legal(mig, (*slots, Slot(placement=placement, profile=one.profile)))
        ]
    return found


# ---- Strategies ---------------------------------------------------------------------------------


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw a fleet that the oracle can try everything on: placements known, nothing shared."""
    return _fleet(draw, most_gpus=3, most_pods=5, vague=False)


@st.composite
def large_fleets(draw: st.DrawFn) -> Fleet:
    """Draw a fleet of up to six GPUs, some with unknown placements, some shared."""
    return _fleet(draw, most_gpus=6, most_pods=8, vague=True)


@st.composite
def policies(draw: st.DrawFn) -> tuple[PartitionPolicy, ...]:
    """Draw up to two policies, of any strategy, for some nodes, models or indices."""
    return tuple(_policy(draw, number) for number in range(draw(st.integers(0, 2))))


def _fleet(draw: st.DrawFn, *, most_gpus: int, most_pods: int, vague: bool) -> Fleet:
    nodes = tuple(_node(draw, number) for number in range(draw(st.integers(1, 2))))
    models = draw(st.lists(st.sampled_from(_MODELS), min_size=1, max_size=2, unique=True))
    gpus = []
    holds = draw(st.sampled_from(_HOLDS))
    for number in range(_some(draw, 1, most_gpus)):
        node = nodes[draw(st.integers(0, len(nodes) - 1))].name
        model = draw(st.sampled_from(models))
        cut = library.get(model).mig is not None and draw(st.sampled_from([True, True, False]))
        make = _cut if cut else _uncut
        gpus.append(make(draw, (node, number, model), holds, vague=vague))
    gpus.sort(key=lambda gpu: gpu.key)
    for node in nodes:
        gpus = _spread(draw, node.name, gpus)
    held = _held(gpus)
    for node, resource in list(held):
        possible = sum(_possible(gpu, resource) for gpu in gpus if gpu.node == node)
        if possible > 1:  # the input counts holders; at least one of these is held
            held[node, resource] -= draw(st.integers(0, possible - 1))
    menu = _menu(draw, models)
    waiting = [_pod(draw, number, menu) for number in range(_some(draw, 0, most_pods))]
    if vague:
        needs = st.sampled_from([None, None, None, None, 9_000, 15_000, 40_000])
        waiting = [dataclasses.replace(one, memory_mib=draw(needs)) for one in waiting]
    return Fleet(nodes=nodes, gpus=tuple(gpus), pods=(*_holders(gpus), *waiting), held=held)


def _spread(draw: st.DrawFn, node: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Say how many of the slots that may be held are held, spread evenly over their GPUs."""
    slots = [
        gpu.key
        for number in range(4)
        for gpu in gpus
        if gpu.node == node and gpu.hold is Hold.POSSIBLE and number < gpu.replicas
    ]
    taken = slots[: draw(st.integers(1, len(slots)))] if slots else []
    return [
        dataclasses.replace(gpu, slots_held=taken.count(gpu.key)) if gpu.key in slots else gpu
        for gpu in gpus
    ]


def _possible(gpu: Gpu, resource: str) -> int:
    return sum(
        one.hold is Hold.POSSIBLE and mig_resource(one.profile) == resource for one in gpu.instances
    )


def _holders(gpus: Sequence[Gpu]) -> list[Pod]:
    """Return the running pods that the holds name."""
    slices = [
        (gpu.node, resource, names)
        for gpu in gpus
        for resource, names in (
            (gpu.resource, gpu.holders),
            *((mig_resource(one.profile), one.holders) for one in gpu.instances),
        )
    ]
    return [
        Pod(
            namespace="live",
            name=name.removeprefix("live/"),
            requests={resource: 1},
            node=node,
            phase=Phase.RUNNING,
        )
        for node, resource, names in slices
        for name in names
    ]


def _node(draw: st.DrawFn, number: int) -> Node:
    taint = Taint(key="reserved", value="", effect="NoSchedule")
    soft = Taint(key="spot", value="", effect="PreferNoSchedule")
    taints = draw(st.sampled_from([(), (), (), (), (), (soft,), (taint,)]))
    cordoned = draw(st.sampled_from([False] * 9 + [True]))
    return Node(
        name=f"n{number + 1}",
        labels={"pool": "ab"[number]},
        taints=taints,
        schedulable=not cordoned,
        reason="the node is cordoned" if cordoned else None,
    )


def _some(draw: st.DrawFn, least: int, most: int) -> int:
    """Draw a number, all equally often; ``st.integers`` prefers the ends."""
    return draw(st.sampled_from(range(least, most + 1)))


def _cut(
    draw: st.DrawFn, where: tuple[str, int, str], holds: Sequence[Hold], *, vague: bool
) -> Gpu:
    node, index, model = where
    mig = library.get(model).mig
    assert mig is not None
    problem = draw(st.sampled_from([None] * 9 + ["GPU is lost"]))
    slots = _slots(draw, mig, most=_some(draw, 0, 5))
    unknown = vague and len(slots) <= 4 and draw(st.booleans())
    numbered = draw(st.booleans())
    usual = [Hold.FREE] if problem else holds
    alike = {slot.profile: draw(st.sampled_from(usual)) for slot in slots}
    instances = []
    for number, slot in enumerate(slots):
        # Instances that nothing tells apart cannot be known to have different holders.
        told_apart = numbered or not unknown
        hold = draw(st.sampled_from(usual)) if told_apart else alike[slot.profile]
        instances.append(
            GpuInstance(
                profile=slot.profile,
                candidates=(slot.placement,),
                instance_id=number + 3 if numbered else None,
                hold=hold,
                holders=(f"live/g{index}i{number}",) if hold is Hold.HELD else (),
            )
        )
    if unknown:
        instances = _blur(mig, instances)
    return Gpu(
        node=node,
        index=index,
        product=library.get(model).names[0],
        model=model,
        uuid=f"GPU-{index}",
        mig_mode=MigMode.ON,
        instances=tuple(instances),
        memory_mib=library.get(model).memory_mib,
        problem=problem,
    )


def _uncut(
    draw: st.DrawFn, where: tuple[str, int, str], holds: Sequence[Hold], *, vague: bool
) -> Gpu:
    node, index, model = where
    found = library.get(model)
    hold = draw(st.sampled_from(holds))
    replicas = draw(st.sampled_from([1, 1, 1, 2, 3])) if vague else 1
    slots_held = draw(st.integers(1, replicas)) if hold is Hold.HELD else 0
    problem = draw(st.sampled_from([None] * 9 + ["GPU is lost"])) if hold is Hold.FREE else None
    return Gpu(
        node=node,
        index=index,
        product=found.names[0],
        model=model,
        uuid=f"GPU-{index}",
        mig_mode=MigMode.OFF if found.mig is not None else MigMode.UNSUPPORTED,
        hold=hold,
        holders=tuple(f"live/g{index}s{number}" for number in range(slots_held)),
        replicas=replicas,
        sharing=Sharing.TIME_SLICING if replicas > 1 else None,
        renamed=replicas > 1 and draw(st.booleans()),
        slots_held=slots_held,
        memory_mib=found.memory_mib,
        problem=problem,
    )


def _slots(draw: st.DrawFn, mig: MigCapability, *, most: int) -> list[Slot]:
    """Draw instances that may stand together, by placement."""
    every = [Slot(placement=place, profile=p.name) for p in mig.profiles for place in p.placements]
    found: list[Slot] = []
    while len(found) < most:
        possible = [slot for slot in every if legality.is_legal(mig, (*found, slot))]
        if not possible:
            break
        name = draw(st.sampled_from(sorted({slot.profile for slot in possible})))
        places = [slot for slot in possible if slot.profile == name]
        found.append(draw(st.sampled_from(places)))
    return sorted(found)


def _blur(mig: MigCapability, instances: Sequence[GpuInstance]) -> list[GpuInstance]:
    """Forget the placements: each may be where it is in any arrangement of all of them."""
    anywhere = [_at(one, mig.by_name[one.profile].placements, one.hold) for one in instances]
    found = arrangements(mig, anywhere)
    return [
        _at(one, sorted({slots[number].placement for slots in found}), one.hold)
        for number, one in enumerate(instances)
    ]


def _at(one: GpuInstance, placements: Sequence[Placement], hold: Hold) -> GpuInstance:
    return GpuInstance(
        profile=one.profile,
        candidates=tuple(placements),
        instance_id=one.instance_id,
        hold=hold,
        holders=one.holders,
    )


def _menu(draw: st.DrawFn, models: Sequence[str]) -> list[str]:
    """Draw the few resources that the pods of a fleet ask for, so that they are rivals."""
    offered = [WHOLE_GPU]
    for model in models:
        mig = library.get(model).mig
        offered += [mig_resource(profile.name) for profile in mig.profiles] if mig else []
    return draw(st.lists(st.sampled_from(offered), min_size=1, max_size=4, unique=True))


def _pod(draw: st.DrawFn, number: int, menu: Sequence[str]) -> Pod:
    resources = st.sampled_from(menu)
    single = st.builds(lambda name: {name: 1}, resources)
    several = st.builds(lambda name, count: {name: count}, resources, st.integers(2, 3))
    mixed = st.dictionaries(resources, st.integers(1, 2), min_size=1, max_size=2)
    odd = st.builds(lambda name: {name: 1}, st.sampled_from(_NOBODY_HAS))
    shape = draw(st.sampled_from([single] * 6 + [several, mixed, odd]))
    tolerations = (Toleration(key="reserved", operator="Exists"),)
    return Pod(
        namespace="lab",
        name=f"p{number}",
        requests=draw(shape),
        priority=draw(st.sampled_from([0, 0, 1, 5])),
        created=draw(st.sampled_from([None, *_DATES])),
        node_selector=draw(st.sampled_from([{}] * 6 + [{"pool": "a"}, {"pool": "b"}])),
        tolerations=draw(st.sampled_from([(), tolerations])),
    )


def _policy(draw: st.DrawFn, number: int) -> PartitionPolicy:
    strategy = draw(st.sampled_from(Strategy))
    model = draw(st.sampled_from(_MODELS[:-1]))
    mig = library.get(model).mig
    assert mig is not None
    names = [profile.name for profile in mig.profiles]
    follow = draw(st.sampled_from(Follow)) if strategy is Strategy.MIG else Follow.DEMAND
    layout: dict[str, int] = {}
    for slot in _slots(draw, mig, most=draw(st.integers(0, 4))):
        layout[slot.profile] = layout.get(slot.profile, 0) + 1
    sharing = SharingParameters(
        resources=(SharedResource(name=WHOLE_GPU, replicas=draw(st.integers(2, 4))),),
        rename_by_default=draw(st.booleans()),
    )
    return PartitionPolicy(
        name=f"policy-{number}",
        strategy=strategy,
        node_selector=draw(st.sampled_from([{}, {"pool": "a"}, {"pool": "b"}])),
        gpu_selector=draw(
            st.sampled_from(
                [GpuSelector(), GpuSelector(models=(model,)), GpuSelector(indices=(0, 2, 4))]
            )
        ),
        follow=follow,
        mig=MigParameters(
            layout=layout if follow is Follow.FIXED else None,
            profiles=tuple(draw(st.lists(st.sampled_from(names), max_size=3, unique=True))),
            allow_reset=draw(st.booleans()),
        ),
        time_slicing=sharing if strategy is Strategy.TIME_SLICING else None,
        mps=sharing if strategy is Strategy.MPS else None,
    )


def consistent(gpu: Gpu) -> list[tuple[Slot, ...]]:
    """Return every way in which the instances of a GPU may stand, each in their order."""
    return arrangements(mig_of(gpu), gpu.instances) if gpu.instances else [()]


def orders(pods: Sequence[Pod]) -> st.SearchStrategy[tuple[Pod, ...]]:
    """Draw the same pods in another order."""
    return st.permutations(list(pods)).map(tuple)
