"""Plans made by hand, so that what is shown does not depend on what the planner finds."""

from collections.abc import Sequence

from partita.model.fleet import Fleet
from partita.model.gpu import ComputeInstance, Gpu, GpuInstance, Hold, MigMode, Sharing
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Pod
from partita.planner.plan import (
    Assignment,
    Blocker,
    Change,
    ChangeKind,
    Cost,
    Create,
    Destroy,
    GpuPlan,
    Plan,
    PlannedInstance,
    Reason,
    SetMigMode,
    SetReplicas,
    Step,
    Unfit,
    Unusable,
)

H100 = ("NVIDIA H100 80GB HBM3", "h100-80gb-sxm5", 81559)
A100 = ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm4", 81920)
A30 = ("NVIDIA A30", "a30", 24576)
RTX = ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-se", 97887)
L40S = ("NVIDIA L40S", "l40s", 46068)
MYSTERY = ("NVIDIA X-Board 9000", None, None)


def at(start: int, size: int) -> Placement:
    """Return a placement."""
    return Placement(start=start, size=size)


def gpu(
    board: tuple[str, str | None, int | None],
    node: str,
    index: int,
    *instances: GpuInstance,
    mode: MigMode = MigMode.ON,
    **more: object,
) -> Gpu:
    """Return a GPU of a board."""
    product, model, memory_mib = board
    return Gpu(
        node=node,
        index=index,
        product=product,
        model=model,
        memory_mib=memory_mib,
        mig_mode=mode,
        instances=instances,
        **more,  # type: ignore[arg-type]
    )


def held(profile: str, where: Placement, pod: str, number: int | None = None) -> GpuInstance:
    """Return an instance that a pod holds."""
    return GpuInstance(
        profile=profile,
        candidates=(where,),
        instance_id=number,
        hold=Hold.HELD,
        holders=(pod,),
        compute_instances=(ComputeInstance(instance_id=0, uuid="MIG-1", sm_count=16),),
    )


def free(profile: str, where: Placement, number: int | None = None) -> GpuInstance:
    """Return an instance that nobody holds."""
    return GpuInstance(profile=profile, candidates=(where,), instance_id=number)


def kept(instance: GpuInstance, *pods: str) -> PlannedInstance:
    """Return an instance that stays."""
    return PlannedInstance(
        profile=instance.profile, candidates=instance.candidates, standing=instance, pods=pods
    )


def new(profile: str, where: Placement, *pods: str) -> PlannedInstance:
    """Return an instance that is created."""
    return PlannedInstance(profile=profile, candidates=(where,), pods=pods)


def pod(name: str, resource: str = "nvidia.com/mig-3g.40gb", count: int = 1) -> Pod:
    """Return a pending pod."""
    return Pod(namespace="ml", name=name, requests={resource: count}, uid=f"uid-{name}")


def plan(  # noqa: PLR0913 - one parameter per part of a plan
    gpus: Sequence[GpuPlan],
    steps: Sequence[Step] = (),
    *,
    assignments: Sequence[Assignment] = (),
    unfit: Sequence[Unfit] = (),
    cost: Cost | None = None,
    notes: Sequence[str] = (),
    proven: bool = True,
) -> Plan:
    """Return a plan whose fleet is what its GPUs stand on."""
    nodes = tuple(Node(name=name) for name in dict.fromkeys(one.gpu.node for one in gpus))
    pods = tuple(one.pod for one in unfit)
    return Plan(
        fleet=Fleet(nodes=nodes, gpus=tuple(g.gpu for g in gpus), pods=pods, notes=tuple(notes)),
        gpus=tuple(gpus),
        steps=tuple(steps),
        assignments=tuple(assignments),
        unfit=tuple(unfit),
        cost=cost or Cost(),
        proven=proven,
    )


def destroy(node: str, index: int, instance: GpuInstance) -> Destroy:
    """Return the step that destroys an instance."""
    return Destroy(
        node=node,
        index=index,
        profile=instance.profile,
        placement=instance.placement,
        instance_id=instance.instance_id,
    )


def create(node: str, index: int, profile: str, where: Placement, number: int | None) -> Create:
    """Return the step that creates an instance."""
    return Create(node=node, index=index, profile=profile, profile_id=number, placement=where)


def waste(memory: int, total: int, compute: int, all_compute: int, mib: int | None) -> Unusable:
    """Return unusable capacity."""
    return Unusable(
        memory_slices=memory,
        memory_slices_total=total,
        compute_slices=compute,
        compute_slices_total=all_compute,
        memory_mib=mib,
    )


FIRST = held("1g.10gb", at(0, 1), "ml/notebook-a", 9)
SECOND = held("1g.10gb", at(1, 1), "ml/notebook-b", 10)
IDLE = free("1g.10gb", at(5, 1), 12)


def fragmented() -> Plan:
    """Return the plan for one H100 with three small instances, one of them free, and two pods."""
    board = gpu(H100, "gpu-a1", 3, FIRST, SECOND, IDLE, uuid="GPU-5a1d22e0")
    blocker = Blocker(
        node="gpu-a1", index=3, placement=at(0, 4), instances=(FIRST, SECOND), holders=("ml/a",)
    )
    refused = Unfit(
        pod=pod("evaluation-large-model-with-a-long-name", count=1),
        reason=Reason.BLOCKED,
        detail="every place for nvidia.com/mig-3g.40gb is held: gpu-a1/3 0:4 by ml/notebook-a and "
        "ml/notebook-b",
        changes=(
            Change(kind=ChangeKind.ASK_OTHER_PROFILE, text="ask for nvidia.com/mig-2g.20gb"),
            Change(
                kind=ChangeKind.END_HOLDERS,
                text="end ml/notebook-a and ml/notebook-b: frees 0:4 of gpu-a1/3 for "
                "nvidia.com/mig-3g.40gb",
                blocker=blocker,
            ),
        ),
    )
    after = GpuPlan(
        gpu=board,
        mig_mode=MigMode.ON,
        instances=(kept(FIRST), kept(SECOND), new("3g.40gb", at(4, 4), "ml/train-0")),
        unusable=waste(0, 8, 0, 7, 0),
    )
    assignment = Assignment(
        pod="ml/train-0",
        resource="nvidia.com/mig-3g.40gb",
        node="gpu-a1",
        index=3,
        placement=at(4, 4),
    )
    steps = (
        destroy("gpu-a1", 3, IDLE),
        create("gpu-a1", 3, "3g.40gb", at(4, 4), 9),
    )
    cost = Cost(destroyed=1, created=1, future_lost=9, gpus_touched=1)
    return plan([after], steps, assignments=[assignment], unfit=[refused], cost=cost)


def resets() -> Plan:
    """Return a plan that switches MIG on on an A100, and off on an A30 with a free instance."""
    idle = free("1g.6gb", at(2, 1))
    off = gpu(A100, "gpu-b1", 0, mode=MigMode.OFF)
    on = gpu(A30, "gpu-b2", 1, idle)
    gpus = [
        GpuPlan(
            gpu=off,
            mig_mode=MigMode.ON,
            instances=(
                new("4g.40gb", at(0, 4), "ml/a"),
                new("2g.20gb", at(4, 2), "ml/b"),
                new("1g.10gb", at(6, 1), "ml/c"),
            ),
            needs_reset=True,
            unusable=waste(1, 8, 0, 7, 10240),
        ),
        GpuPlan(gpu=on, mig_mode=MigMode.OFF, pods=("ml/d",), needs_reset=True),
    ]
    steps = (
        SetMigMode(node="gpu-b1", index=0, enable=True, needs_reset=True),
        create("gpu-b1", 0, "4g.40gb", at(0, 4), 5),
        create("gpu-b1", 0, "2g.20gb", at(4, 2), 14),
        create("gpu-b1", 0, "1g.10gb", at(6, 1), 19),
        destroy("gpu-b2", 1, idle),
        SetMigMode(node="gpu-b2", index=1, enable=False, needs_reset=True),
    )
    where = (("a", "4g.40gb", at(0, 4)), ("b", "2g.20gb", at(4, 2)), ("c", "1g.10gb", at(6, 1)))
    assignments = [
        Assignment(
            pod=f"ml/{name}",
            resource=f"nvidia.com/mig-{profile}",
            node="gpu-b1",
            index=0,
            placement=placement,
        )
        for name, profile, placement in where
    ]
    assignments.append(
        Assignment(pod="ml/d", resource="nvidia.com/gpu", node="gpu-b2", index=1, placement=None)
    )
    cost = Cost(destroyed=1, created=3, mode_changes=2, gpus_touched=2)
    return plan(gpus, steps, assignments=assignments, cost=cost, proven=False)


def twelve_units() -> Plan:
    """Return a plan for an RTX PRO 6000, whose axis has 12 units, with graphics profiles."""
    pinned = held("1g.24gb+me", at(3, 3), "ml/render", 4)
    after = GpuPlan(
        gpu=gpu(RTX, "rtx-1", 0, pinned),
        mig_mode=MigMode.ON,
        instances=(kept(pinned), new("2g.48gb+gfx", at(6, 6), "ml/viewer")),
        unusable=waste(0, 12, 0, 4, 0),
    )
    steps = (create("rtx-1", 0, "2g.48gb+gfx", at(6, 6), None),)
    cost = Cost(created=1, gpus_touched=1)
    return plan([after], steps, cost=cost)


def unknown_placements() -> Plan:
    """Return a plan beside an instance of which only the profile is known, and with notes."""
    places = tuple(at(start, 1) for start in range(4))
    unsure = GpuInstance(
        profile="1g.10gb", candidates=places, hold=Hold.POSSIBLE, holders=("ml/x", "ml/y")
    )
    board = gpu(H100, "gpu-c1", 0, unsure, notes=("placements are not in the input",))
    after = GpuPlan(
        gpu=board,
        mig_mode=MigMode.ON,
        instances=(kept(unsure), new("3g.40gb", at(4, 4), "ml/train-0")),
        unusable=waste(0, 8, 0, 7, 0),
    )
    somewhere = Assignment(
        pod="ml/late", resource="nvidia.com/mig-1g.10gb", node="gpu-c1", index=None, placement=None
    )
    steps = (create("gpu-c1", 0, "3g.40gb", at(4, 4), 9),)
    notes = ("node gpu-c1: no file shows where instances stand",)
    return plan([after], steps, assignments=[somewhere], notes=notes)


def shared() -> Plan:
    """Return a plan that shares one of two L40S of a node, and leaves an unknown board alone."""
    board = gpu(L40S, "gpu-d1", 0, mode=MigMode.UNSUPPORTED)
    taken = gpu(
        L40S, "gpu-d1", 1, mode=MigMode.UNSUPPORTED, hold=Hold.HELD, holders=("ml/serving",)
    )
    other = gpu(MYSTERY, "gpu-d2", 0, mode=MigMode.UNSUPPORTED)
    gpus = [
        GpuPlan(
            gpu=board,
            mig_mode=MigMode.UNSUPPORTED,
            replicas=4,
            sharing=Sharing.TIME_SLICING,
            budget_mib=11517,
        ),
        GpuPlan(gpu=taken, mig_mode=MigMode.UNSUPPORTED),
        GpuPlan(gpu=other, mig_mode=MigMode.UNSUPPORTED, frozen="it is not in the catalogue"),
    ]
    slot = Assignment(
        pod="ml/api", resource="nvidia.com/gpu", node="gpu-d1", index=0, placement=None
    )
    steps = (
        SetReplicas(
            node="gpu-d1",
            index=0,
            replicas=4,
            sharing=Sharing.TIME_SLICING,
            renamed=False,
            budget_mib=11517,
        ),
    )
    return plan(gpus, steps, assignments=[slot])


def thousand() -> Plan:
    """Return a plan for 1,000 GPUs on 125 nodes of which 248 are cut in one of two ways."""
    gpus, steps, assignments = [], [], []
    for number in range(1000):
        node, index = f"gpu-{number // 8 + 1:03d}", number % 8
        first = held("3g.40gb", at(0, 4), f"ml/serving-{number}", 2)
        board = gpu(H100, node, index, first, uuid=f"GPU-{number:08x}")
        if number >= 248:
            gpus.append(GpuPlan(gpu=board, mig_mode=MigMode.ON, instances=(kept(first),)))
            continue
        profile, size, number_ = ("3g.40gb", 4, 9) if number < 240 else ("2g.20gb", 2, 14)
        name = f"ml/train-{number}"
        made = new(profile, at(4, size), name)
        steps.append(create(node, index, profile, at(4, size), number_))
        assignments.append(
            Assignment(
                pod=name,
                resource=f"nvidia.com/mig-{profile}",
                node=node,
                index=index,
                placement=at(4, size),
            )
        )
        gpus.append(GpuPlan(gpu=board, mig_mode=MigMode.ON, instances=(kept(first), made)))
    refused = [
        Unfit(
            pod=pod(f"sweep-{number}", "nvidia.com/mig-7g.80gb"),
            reason=Reason.BLOCKED,
            detail="every place for nvidia.com/mig-7g.80gb is held",
            changes=(Change(kind=ChangeKind.ADD_GPU, text="add one more NVIDIA H100 80GB HBM3"),),
        )
        for number in range(40)
    ]
    cost = Cost(created=248, gpus_touched=248)
    return plan(gpus, steps, assignments=assignments, unfit=refused, cost=cost)


ALL = (fragmented, resets, twelve_units, unknown_placements, shared, thousand)
