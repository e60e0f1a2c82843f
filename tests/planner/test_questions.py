"""Questions that operators ask about splitting GPUs, each with the answer that a plan gives."""

import dataclasses

from tests.planner.worlds import board, instance, pod, standing

from partita.config.partition_policy import (
    Follow,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)
from partita.model.gpu import Gpu, Hold, MigMode, Sharing
from partita.model.node import Node, Taint
from partita.model.placement import Placement
from partita.model.resource import WHOLE_GPU
from partita.planner.plan import (
    Assignment,
    Change,
    ChangeKind,
    Create,
    Destroy,
    Plan,
    Reason,
    SetMigMode,
    SetReplicas,
    Unfit,
)
from partita.planner.planning import plan

A30 = "a30"
A100 = "a100-40gb-sxm4"
H100 = "h100-80gb-sxm5"
RTX_PRO = "rtx-pro-6000-se"
L4 = "l4"


def empty(model: str, **where: object) -> Gpu:
    """Return a GPU with MIG on and nothing on it."""
    return board(model, mig_mode=MigMode.ON, **where)


def served(found: Plan) -> dict[str, list[str]]:
    """Return the places that each pod gets, as ``index@placement``, by the pod's name."""
    places: dict[str, list[str]] = {}
    for one in found.assignments:
        places.setdefault(one.pod.removeprefix("lab/"), []).append(place(one))
    return places


def taken(found: Plan) -> list[str]:
    """Return the places that pods get, sorted."""
    return sorted(map(place, found.assignments))


def place(one: Assignment) -> str:
    """Return where an assigned slice is."""
    index = "?" if one.index is None else one.index
    return f"{index}" if one.placement is None else f"{index}@{one.placement}"


def only_unfit(found: Plan) -> Unfit:
    """Return the one pod that gets nothing."""
    (unfit,) = found.unfit
    return unfit


def change(unfit: Unfit, kind: ChangeKind) -> Change:
    """Return the change of a kind that a refusal names."""
    return next(one for one in unfit.changes if one.kind is kind)


# ---- What fits beside what stands ---------------------------------------------------------------


def fragmented() -> Gpu:
    """Return an H100 with three small instances that are in use and five free memory slices."""
    return board(
        H100,
        instance(H100, "1g.10gb", 0, holder="web/search-0"),
        instance(H100, "1g.10gb", 1, holder="web/search-1"),
        instance(H100, "1g.10gb", 5, holder="night/index-build"),
    )


def test_five_free_slices_may_hold_no_half() -> None:
    """Instances at 0, 1 and 5 leave no room for a 3g; ending the one at 5 frees 4:4."""
    unfit = only_unfit(plan(standing(fragmented(), pods=[pod("train", "3g.40gb")])))
    assert unfit.reason is Reason.BLOCKED
    blocker = change(unfit, ChangeKind.END_HOLDERS).blocker
    assert blocker is not None
    assert blocker.placement == Placement(start=4, size=4)
    assert blocker.holders == ("night/index-build",)
    assert "nvidia.com/mig-2g.20gb" in change(unfit, ChangeKind.ASK_OTHER_PROFILE).text


def test_the_advised_end_of_a_holder_makes_room() -> None:
    """Once the holder at 5 has ended, the 3g goes to 4:4 and the other two stay."""
    *others, last = fragmented().instances
    freed = dataclasses.replace(last, hold=Hold.FREE, holders=())
    found = plan(standing(board(H100, *others, freed), pods=[pod("train", "3g.40gb")]))
    assert served(found) == {"train": ["0@4:4"]}
    assert [type(step) for step in found.steps] == [Destroy, Create]


def test_a_fragmented_gpu_still_takes_a_2g() -> None:
    """Beside instances at 0, 1 and 5 a 2g has one place left: 2:2."""
    found = plan(standing(fragmented(), pods=[pod("infer", "2g.20gb")]))
    assert served(found) == {"infer": ["0@2:2"]}


def test_a_fragmented_gpu_still_takes_two_double_memory_slices() -> None:
    """Beside instances at 0, 1 and 5 the double-memory 1g has two places left: 2:2 and 6:2."""
    pods = [pod("a", "1g.20gb"), pod("b", "1g.20gb")]
    found = plan(standing(fragmented(), pods=pods))
    assert taken(found) == ["0@2:2", "0@6:2"]


def test_two_halves_leave_no_slice() -> None:
    """Two 3g take all memory, so a 1g does not fit although a compute slice stays idle."""
    pods = [
        pod("left", "3g.20gb", priority=9),
        pod("right", "3g.20gb", priority=9),
        pod("small", "1g.5gb"),
    ]
    found = plan(standing(empty(A100), pods=pods))
    assert served(found).keys() == {"left", "right"}
    assert only_unfit(found).reason is Reason.OUTRANKED
    unusable = found.gpus[0].unusable
    assert unusable is not None
    assert (unusable.compute_slices, unusable.memory_slices) == (1, 0)


def test_a_half_goes_where_the_other_half_stays_worth_more() -> None:
    """A lone 3g is put at 4:4: that leaves 0:4, the only place of a 4g."""
    found = plan(standing(empty(A100), pods=[pod("train", "3g.20gb")]))
    assert served(found) == {"train": ["0@4:4"]}


def test_one_media_slice_per_gpu() -> None:
    """The media engines of ``+me`` exist once: two such slices need two GPUs."""
    pods = [pod("film", "1g.6gb+me"), pod("clip", "1g.6gb+me")]
    assert len(served(plan(standing(empty(A30), pods=pods)))) == 1
    both = plan(standing(empty(A30), empty(A30, index=1), pods=pods))
    assert taken(both) == ["0@0:1", "1@0:1"]


def test_quarters_in_the_middle_leave_no_half() -> None:
    """On the axis of 12 units 1g at 3 and 6 leave two quarters free, yet no 2g."""
    middle = [
        instance(RTX_PRO, "1g.24gb", 3, holder="studio/render-1"),
        instance(RTX_PRO, "1g.24gb", 6, holder="studio/render-2"),
    ]
    unfit = only_unfit(plan(standing(board(RTX_PRO, *middle), pods=[pod("big", "2g.48gb")])))
    assert unfit.reason is Reason.BLOCKED
    blocker = change(unfit, ChangeKind.END_HOLDERS).blocker
    assert blocker is not None
    assert len(blocker.instances) == 1
    pods = [pod("one", "1g.24gb"), pod("two", "1g.24gb")]
    quarters = plan(standing(board(RTX_PRO, *middle), pods=pods))
    assert taken(quarters) == ["0@0:3", "0@9:3"]


# ---- Names --------------------------------------------------------------------------------------


def test_a_name_of_the_smaller_board_has_a_counterpart() -> None:
    """``1g.5gb`` is of 40 GB boards; on an 80 GB board the same share is called ``1g.10gb``."""
    unfit = only_unfit(plan(standing(empty(H100), pods=[pod("old", "1g.5gb")])))
    assert unfit.reason is Reason.NO_SUCH_RESOURCE
    assert "nvidia.com/mig-1g.10gb" in change(unfit, ChangeKind.ASK_OTHER_PROFILE).text
    assert A100 in change(unfit, ChangeKind.ADD_GPU).text


def test_one_name_is_two_sizes() -> None:
    """``1g.10gb`` takes two memory slices of an A100 40GB and one of an H100 80GB."""
    created = [
        step
        for model in (A100, H100)
        for step in plan(standing(empty(model), pods=[pod("p", "1g.10gb")])).steps
    ]
    assert [(step.profile_id, step.placement.size) for step in created] == [(15, 2), (19, 1)]


def test_no_whole_gpu_is_served_by_an_empty_one() -> None:
    """MIG on without instances is not a whole GPU; it has to be switched off to serve as one."""
    found = plan(standing(empty(H100), pods=[pod("train", "gpu")]))
    assert found.steps == (SetMigMode(node="n1", index=0, enable=False, needs_reset=False),)


# ---- Who holds what -----------------------------------------------------------------------------


def counted(*, held: int) -> tuple[Gpu, dict[tuple[str, str], int]]:
    """Return an A30 in quarters of which so many are held, without it being known which."""
    quarters = [instance(A30, "1g.6gb", start, hold=Hold.POSSIBLE) for start in range(4)]
    return board(A30, *quarters), {("n1", "nvidia.com/mig-1g.6gb"): held}


def test_slices_that_may_be_held_stay_and_the_free_ones_serve() -> None:
    """Three holders on four slices pin all four; one pod can still have the fourth."""
    gpu, held = counted(held=3)
    pods = [pod("first", "1g.6gb", priority=1), pod("second", "1g.6gb")]
    found = plan(standing(gpu, pods=pods, held=held))
    assert found.steps == ()
    assert served(found) == {"first": ["?"]}
    assert only_unfit(found).pod.name == "second"


def test_slices_that_may_be_held_are_not_joined() -> None:
    """One holder somewhere on four slices is enough to keep a 2g from being made of two."""
    gpu, held = counted(held=1)
    found = plan(standing(gpu, pods=[pod("big", "2g.12gb")], held=held))
    assert found.steps == ()
    assert only_unfit(found).reason is Reason.BLOCKED


def test_whole_gpus_of_two_models_share_a_count() -> None:
    """Of two GPUs that may be held and one that is, one is free, whatever their models are."""
    gpus = [
        dataclasses.replace(board(A30), hold=Hold.POSSIBLE, slots_held=1),
        dataclasses.replace(board(A100, index=1), hold=Hold.POSSIBLE),
    ]
    assert served(plan(standing(*gpus, pods=[pod("p", "gpu")]))) == {"p": ["?"]}


# ---- MIG mode -----------------------------------------------------------------------------------


def mig_policy(*, allow_reset: bool = False) -> PartitionPolicy:
    """Return a policy that cuts every GPU as pods ask."""
    return PartitionPolicy(
        name="cut", strategy=Strategy.MIG, mig=MigParameters(allow_reset=allow_reset)
    )


def test_ampere_needs_a_reset() -> None:
    """Switching MIG on resets an A30, and the step says so."""
    found = plan(standing(board(A30), pods=[pod("p", "1g.6gb")]))
    assert found.steps[0] == SetMigMode(node="n1", index=0, enable=True, needs_reset=True)
    assert found.gpus[0].needs_reset


def test_a_reset_has_to_be_allowed() -> None:
    """A policy that does not allow a reset keeps MIG off; the refusal names the field to set."""
    fleet = standing(board(A30), pods=[pod("p", "1g.6gb")])
    refused = plan(fleet, [mig_policy()])
    assert refused.steps == ()
    assert "mig.allowReset" in change(only_unfit(refused), ChangeKind.ALLOW_RESET).text
    assert served(plan(fleet, [mig_policy(allow_reset=True)])) == {"p": ["0@0:1"]}


def test_hopper_needs_no_reset() -> None:
    """An H100 changes its mode without a reset, so no policy has to allow one."""
    found = plan(standing(board(H100), pods=[pod("p", "1g.10gb")]), [mig_policy()])
    assert found.steps[0] == SetMigMode(node="n1", index=0, enable=True, needs_reset=False)
    assert not found.gpus[0].needs_reset


def test_an_empty_gpu_is_cut_before_a_whole_one() -> None:
    """A GPU with MIG on and nothing on it serves without a mode change, so it is taken."""
    found = plan(standing(board(H100), empty(H100, index=1), pods=[pod("p", "2g.20gb")]))
    assert [(type(step), step.index) for step in found.steps] == [(Create, 1)]


# ---- What stands free ---------------------------------------------------------------------------


def test_a_free_instance_is_used_as_it_is() -> None:
    """A pod that asks for what stands free gets it, and nothing is created."""
    half = instance(A30, "2g.12gb", 2)
    found = plan(standing(board(A30, half), pods=[pod("p", "2g.12gb")]))
    assert found.steps == ()
    assert served(found) == {"p": ["0@2:2"]}


def test_a_free_instance_in_the_way_goes() -> None:
    """The full profile needs the whole axis: a free 1g on it is destroyed first."""
    found = plan(standing(board(A30, instance(A30, "1g.6gb", 0)), pods=[pod("p", "4g.24gb")]))
    assert [type(step) for step in found.steps] == [Destroy, Create]


def test_a_free_instance_stays_when_there_is_other_room() -> None:
    """With a second, empty GPU the free 1g is left alone."""
    gpus = [board(A30, instance(A30, "1g.6gb", 0)), empty(A30, index=1)]
    found = plan(standing(*gpus, pods=[pod("p", "4g.24gb")]))
    assert [(type(step), step.index) for step in found.steps] == [(Create, 1)]


def test_a_free_media_slice_goes_for_another_one() -> None:
    """A free ``+me`` instance is in the way of another one even where it does not overlap."""
    media = instance(A30, "1g.6gb+me", 0)
    held = instance(A30, "1g.6gb", 1, holder="live/chat")
    found = plan(standing(board(A30, media, held), pods=[pod("film", "2g.12gb+me")]))
    assert served(found) == {"film": ["0@2:2"]}
    assert [type(step) for step in found.steps] == [Destroy, Create]


# ---- Policies -----------------------------------------------------------------------------------


def sliced(replicas: int, **fields: bool) -> PartitionPolicy:
    """Return a policy that serves each GPU so many times."""
    resource = SharedResource(name=WHOLE_GPU, replicas=replicas)
    return PartitionPolicy(
        name="sliced",
        strategy=Strategy.TIME_SLICING,
        time_slicing=SharingParameters(resources=(resource,), **fields),
    )


def test_time_slicing_divides_the_memory() -> None:
    """Four replicas of an L4 serve four pods, each with a quarter of 23034 MiB as its budget."""
    pods = [pod(f"p{number}", "gpu", created=f"2025-01-0{number}") for number in range(1, 6)]
    found = plan(standing(board(L4), pods=pods), [sliced(4)])
    assert found.steps == (
        SetReplicas(
            node="n1",
            index=0,
            replicas=4,
            sharing=Sharing.TIME_SLICING,
            renamed=False,
            budget_mib=23034 // 4,
            budget_exact=False,
        ),
    )
    assert served(found).keys() == {"p1", "p2", "p3", "p4"}


def test_a_budget_too_small_wants_fewer_replicas() -> None:
    """8000 MiB do not fit a quarter of an L4; they would fit if it had two replicas."""
    fleet = standing(board(L4), pods=[pod("p", "gpu", memory_mib=8000)])
    unfit = only_unfit(plan(fleet, [sliced(4)]))
    assert unfit.reason is Reason.BUDGET
    assert "at most 2 replicas" in change(unfit, ChangeKind.FEWER_REPLICAS).text
    assert served(plan(fleet, [sliced(2)])) == {"p": ["0"]}


def test_a_whole_gpu_too_small_wants_another_gpu() -> None:
    """40000 MiB do not fit an A30 at all, and the refusal says what would help."""
    unfit = only_unfit(plan(standing(board(A30), pods=[pod("p", "gpu", memory_mib=40_000)])))
    assert unfit.reason is Reason.BUDGET
    assert unfit.changes


def test_a_held_gpu_is_not_shared_yet() -> None:
    """A GPU that a pod holds whole stays whole under a policy that shares it."""
    gpus = [board(L4, holder="live/chat"), board(L4, index=1)]
    pods = [pod(name, "gpu") for name in ("a", "b", "c")]
    found = plan(standing(*gpus, pods=pods), [sliced(2)])
    assert [step.index for step in found.steps] == [1]
    assert len(served(found)) == 2


def test_a_pinned_gpu_serves_under_its_present_name() -> None:
    """A held GPU keeps its name, so it adds nothing to the name that a policy gives others."""
    gpus = [
        board(L4, holder="live/chat"),
        board(L4, index=1, holder="live/talk"),
        dataclasses.replace(
            board(L4, index=2, holder="live/tune"),
            replicas=2,
            renamed=True,
            sharing=Sharing.TIME_SLICING,
        ),
    ]
    request = {"nvidia.com/gpu.shared": 1}
    pods = [dataclasses.replace(pod(name), requests=request) for name in ("a", "b")]
    found = plan(standing(*gpus, pods=pods), [sliced(2, rename_by_default=True)])
    assert len(served(found)) == 1


def test_a_shared_gpu_is_cut_in_one_plan() -> None:
    """A time-sliced GPU that nobody holds is cut at once where a policy lets demand decide."""
    shared = dataclasses.replace(board(H100), replicas=2, sharing=Sharing.TIME_SLICING)
    policy = PartitionPolicy(name="as-asked", strategy=Strategy.AUTO)
    found = plan(standing(shared, pods=[pod("p", "3g.40gb")]), [policy])
    assert served(found) == {"p": ["0@4:4"]}


def fixed(**layout: int) -> PartitionPolicy:
    """Return a policy that wants this layout of 10, 20 and 40 GB on every GPU."""
    counts = {f"{name[1:]}g.{name[1:]}0gb": count for name, count in layout.items()}
    return PartitionPolicy(
        name="fixed",
        strategy=Strategy.MIG,
        follow=Follow.FIXED,
        mig=MigParameters(layout=counts),
    )


def made(found: Plan) -> list[str]:
    """Return the profiles that a plan leads to, sorted."""
    return sorted(one.profile for one in found.gpus[0].instances)


def test_a_fixed_layout_needs_no_pods() -> None:
    """Under ``follow: Fixed`` a GPU is cut as written although nobody waits."""
    found = plan(standing(empty(H100)), [fixed(g1=2, g2=1)])
    assert made(found) == ["1g.10gb", "1g.10gb", "2g.20gb"]
    assert [type(step) for step in found.steps] == [Create, Create, Create]


def test_a_fixed_layout_keeps_what_fits_and_replaces_the_rest() -> None:
    """A held 1g counts as one of the written ones; a free 7g that is not written goes."""
    held = instance(H100, "1g.10gb", 3, holder="live/chat")
    found = plan(standing(board(H100, held)), [fixed(g1=1, g2=1)])
    assert [type(step) for step in found.steps] == [Create]
    assert made(found) == ["1g.10gb", "2g.20gb"]
    other = plan(standing(board(H100, instance(H100, "7g.80gb", 0))), [fixed(g1=1, g2=1)])
    assert made(other) == ["1g.10gb", "2g.20gb"]


def test_a_policy_limits_the_profiles() -> None:
    """Profiles that a policy does not list are not created, whatever pods ask for."""
    policy = PartitionPolicy(
        name="small", strategy=Strategy.MIG, mig=MigParameters(profiles=("1g.10gb",))
    )
    pods = [pod("small", "1g.10gb"), pod("large", "3g.40gb")]
    found = plan(standing(empty(H100), pods=pods), [policy])
    assert served(found).keys() == {"small"}
    assert change(only_unfit(found), ChangeKind.CHANGE_POLICY)


# ---- Who goes first -----------------------------------------------------------------------------


def test_priority_comes_before_number() -> None:
    """One pod of a higher priority is served rather than two of a lower one."""
    pods = [pod("whole", "4g.24gb", priority=1), pod("a", "2g.12gb"), pod("b", "2g.12gb")]
    assert served(plan(standing(empty(A30), pods=pods))).keys() == {"whole"}


def test_number_comes_before_age() -> None:
    """Among equals two younger pods are served rather than one older."""
    pods = [
        pod("whole", "4g.24gb", created="2025-01-01T00:00:00Z"),
        pod("a", "2g.12gb", created="2025-02-01T00:00:00Z"),
        pod("b", "2g.12gb", created="2025-02-01T00:00:00Z"),
    ]
    assert served(plan(standing(empty(A30), pods=pods))).keys() == {"a", "b"}


def test_age_decides_among_equals() -> None:
    """Where only one of two equal pods fits, the older one is served."""
    pods = [
        pod("young", "4g.24gb", created="2025-02-01T00:00:00Z"),
        pod("old", "4g.24gb", created="2025-01-01T00:00:00Z"),
    ]
    assert served(plan(standing(empty(A30), pods=pods))).keys() == {"old"}


# ---- Several slices, several nodes --------------------------------------------------------------


def half_held(node: str, holder: str) -> Gpu:
    """Return an A30 whose first half is in use."""
    return board(A30, instance(A30, "2g.12gb", 0, holder=holder), node=node)


def test_a_pod_gets_its_slices_from_one_node() -> None:
    """Half a GPU on each of two nodes is not two halves for one pod."""
    gpus = [half_held("n1", "live/a"), half_held("n2", "live/b")]
    found = plan(standing(*gpus, pods=[pod("pair", "2g.12gb", "2g.12gb")]))
    assert found.assignments == ()
    assert found.steps == ()
    assert only_unfit(found).pod.name == "pair"


def test_two_gpus_of_a_node_serve_one_pod() -> None:
    """The slices of one pod may be on different GPUs as long as the node is the same."""
    gpus = [half_held("n1", "live/a"), dataclasses.replace(half_held("n1", "live/b"), index=1)]
    found = plan(standing(*gpus, pods=[pod("pair", "2g.12gb", "2g.12gb")]))
    assert served(found) == {"pair": ["0@2:2", "1@2:2"]}


def test_two_profiles_of_one_pod_are_told_apart() -> None:
    """A pod that asks for two profiles is assigned each at the place where it is made."""
    found = plan(standing(empty(A100), pods=[pod("p", "1g.5gb", "2g.10gb")]))
    made_at = {step.placement: f"nvidia.com/mig-{step.profile}" for step in found.steps}
    assert {one.placement: one.resource for one in found.assignments} == made_at


def test_a_tainted_node_is_not_cut() -> None:
    """No GPU is cut on a node that the pod does not tolerate; the refusal names the taint."""
    taint = Taint(key="dedicated", value="hpc", effect="NoSchedule")
    node = Node(name="n1", taints=(taint,))
    found = plan(standing(empty(A30), pods=[pod("p", "1g.6gb")], nodes=[node]))
    assert found.steps == ()
    unfit = only_unfit(found)
    assert unfit.reason is Reason.NO_ELIGIBLE_NODE
    assert "dedicated" in change(unfit, ChangeKind.FIX_NODE).text


# ---- Unknown placements -------------------------------------------------------------------------


def test_what_may_be_anywhere_is_kept_clear_of() -> None:
    """A held 1g that is at 1 or at 5 leaves a 2g only at 2; a 3g has to wait for placements."""
    held = instance(H100, "1g.10gb", 1, 5, holder="live/chat")
    found = plan(standing(board(H100, held), pods=[pod("p", "2g.20gb")]))
    assert served(found) == {"p": ["0@2:2"]}
    unfit = only_unfit(plan(standing(board(H100, held), pods=[pod("p", "3g.40gb")])))
    assert "nvidia-smi mig -lgi" in change(unfit, ChangeKind.GIVE_PLACEMENTS).text


def test_slots_of_one_pod_are_on_different_gpus_where_that_is_possible() -> None:
    """A pod that asks for two shared slots gets them on two GPUs; on one GPU it is told."""
    gpus = [
        dataclasses.replace(board(L4, index=n), replicas=2, sharing=Sharing.TIME_SLICING)
        for n in range(2)
    ]
    wish = dataclasses.replace(pod("p"), requests={"nvidia.com/gpu": 2})
    spread = plan(standing(*gpus, pods=[wish]))
    assert sorted(one.index or 0 for one in spread.assignments) == [0, 1]
    assert spread.warnings == ()
    (warning,) = plan(standing(gpus[0], pods=[wish])).warnings
    assert "see one GPU" in warning
