"""Who holds which slice: exactly where somebody says it, by count elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from partita.inventory import assembly
from partita.model.fleet import Fleet
from partita.model.gpu import ComputeInstance, Hold, MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Phase, Pod
from partita.model.report import (
    DeviceClaim,
    GpuReport,
    InstanceReport,
    NodeReport,
    Observation,
)

_SMALL = "nvidia.com/mig-1g.5gb"
_GPU = "nvidia.com/gpu"
_FREE, _POSSIBLE, _HELD = Hold.FREE, Hold.POSSIBLE, Hold.HELD


def _instance(start: int, *pids: int, profile: str = "1g.5gb", size: int = 1) -> InstanceReport:
    return InstanceReport(
        profile=profile,
        placement=Placement(start=start, size=size),
        compute_instances=(ComputeInstance(instance_id=0, uuid=f"MIG-{start}"),),
        process_ids=pids,
    )


def _cut(*instances: InstanceReport) -> NodeReport:
    """A node ``n`` with one GPU that is cut."""
    gpu = GpuReport(
        index=0,
        product="NVIDIA A100-SXM4-40GB",
        uuid="GPU-0",
        mig_mode=MigMode.ON,
        instances=instances,
    )
    return NodeReport(node="n", source="n.xml", gpus=(gpu,))


def _whole(count: int, *, pids: Mapping[int, tuple[int, ...]] | None = None) -> NodeReport:
    gpus = [
        GpuReport(
            index=index,
            product="Tesla T4",
            uuid=f"GPU-{index}",
            process_ids=(pids or {}).get(index, ()),
        )
        for index in range(count)
    ]
    return NodeReport(node="n", source="n.xml", gpus=tuple(gpus))


def _pod(name: str, request: str, count: int = 1) -> Pod:
    return Pod(
        namespace="ml",
        name=name,
        uid=f"uid-{name}",
        requests={request: count},
        node="n",
        phase=Phase.RUNNING,
    )


def _claim(pod: str, request: str, *devices: str) -> DeviceClaim:
    return DeviceClaim(
        node="n", pod_uid=f"uid-{pod}", container="main", resource=request, device_ids=devices
    )


def _assemble(
    report: NodeReport,
    *pods: Pod,
    claims: Sequence[DeviceClaim] = (),
    nodes: Sequence[Node] = (),
) -> Fleet:
    return assembly.assemble(
        [
            Observation(nodes=tuple(nodes), reports=(report,)),
            Observation(pods=pods, claims=tuple(claims), pod_namespaces=frozenset({"ml", "web"})),
        ]
    )


def _holds(fleet: Fleet) -> list[Hold]:
    """Holds of the first GPU's instances, or of all GPUs when none is cut."""
    cut = [instance.hold for gpu in fleet.gpus for instance in gpu.instances]
    return cut or [gpu.hold for gpu in fleet.gpus]


def test_without_holders_everything_is_free() -> None:
    """Pods that wait hold nothing."""
    waiting = replace(_pod("a", _SMALL), node=None, phase=Phase.PENDING)
    fleet = _assemble(_cut(_instance(0), _instance(1)), waiting)
    assert _holds(fleet) == [_FREE, _FREE]
    assert fleet.held == {("n", _SMALL): 0}
    assert fleet.pods == (waiting,)


def test_as_many_holders_as_slices_hold_all() -> None:
    """Which pod has which slice does not matter then; all are named."""
    fleet = _assemble(_cut(_instance(0), _instance(1)), _pod("b", _SMALL), _pod("a", _SMALL))
    assert _holds(fleet) == [_HELD, _HELD]
    assert fleet.gpus[0].instances[0].holders == ("ml/a", "ml/b")
    assert fleet.held == {("n", _SMALL): 2}


def test_fewer_holders_than_slices_may_hold_any() -> None:
    """Nobody says which slice is in use, so none may be touched."""
    fleet = _assemble(_cut(_instance(0), _instance(1), _instance(2)), _pod("a", _SMALL))
    assert _holds(fleet) == [_POSSIBLE] * 3
    assert {i.holders for i in fleet.gpus[0].instances} == {("ml/a",)}
    assert fleet.held == {("n", _SMALL): 1}


def test_holders_of_other_profiles_do_not_matter() -> None:
    """Each resource is counted for itself."""
    wide = _instance(4, profile="3g.20gb", size=4)
    fleet = _assemble(_cut(_instance(0), wide), _pod("a", "nvidia.com/mig-3g.20gb"))
    assert _holds(fleet) == [_FREE, _HELD]


def test_a_claim_tells_the_slice() -> None:
    """The kubelet's memory names the MIG device; the others are free."""
    report = _cut(_instance(0), _instance(1), _instance(2))
    fleet = _assemble(report, _pod("a", _SMALL), claims=[_claim("a", _SMALL, "MIG-1")])
    assert _holds(fleet) == [_FREE, _HELD, _FREE]
    assert fleet.gpus[0].instances[1].holders == ("ml/a",)
    assert fleet.held == {("n", _SMALL): 1}


def test_old_drivers_name_devices_by_number() -> None:
    """``MIG-<GPU UUID>/<instance>/<compute instance>`` is understood too."""
    listed = replace(_instance(0), instance_id=7)
    claim = _claim("a", _SMALL, "MIG-GPU-0/7/0")
    fleet = _assemble(_cut(listed, replace(_instance(1), instance_id=8)), claims=[claim])
    assert _holds(fleet) == [_HELD, _FREE]


def test_a_claim_of_a_finished_pod_is_a_leftover() -> None:
    """The kubelet forgets only when it allocates again."""
    done = replace(_pod("a", _SMALL), phase=Phase.FINISHED)
    fleet = _assemble(_cut(_instance(0)), done, claims=[_claim("a", _SMALL, "MIG-0")])
    assert (_holds(fleet), fleet.pods) == ([_FREE], ())


def test_a_claim_of_a_pod_that_is_not_given_is_believed() -> None:
    """The pod may run in a namespace that was not read."""
    fleet = _assemble(_cut(_instance(0), _instance(1)), claims=[_claim("x", _SMALL, "MIG-0")])
    assert _holds(fleet) == [_HELD, _FREE]
    assert fleet.held == {("n", _SMALL): 1}
    assert any("uid-x" in note for note in fleet.notes)


def test_what_claims_do_not_explain_is_counted() -> None:
    """One of two pods is placed exactly; the other one is on one of the two slices left."""
    report = _cut(_instance(0), _instance(1), _instance(2))
    pods = [_pod("a", _SMALL), _pod("b", _SMALL)]
    fleet = _assemble(report, *pods, claims=[_claim("a", _SMALL, "MIG-0")])
    assert _holds(fleet) == [_HELD, _POSSIBLE, _POSSIBLE]
    assert [i.holders for i in fleet.gpus[0].instances] == [("ml/a",), ("ml/b",), ("ml/b",)]


def test_a_pod_may_say_its_place_itself() -> None:
    """An annotation or a fleet file names GPU and start."""
    pod = replace(_pod("a", _SMALL), gpu_index=0, placement_start=1)
    fleet = _assemble(_cut(_instance(0), _instance(1)), pod)
    assert _holds(fleet) == [_FREE, _HELD]


def test_a_process_holds_its_slice_in_any_case() -> None:
    """Also where no pod is known, and beside a pod that may be on another slice."""
    alone = _assemble(_cut(_instance(0, 42), _instance(1)))
    assert _holds(alone) == [_HELD, _FREE]
    assert alone.gpus[0].instances[0].holders == ("process 42",)
    assert alone.held == {("n", _SMALL): 1}
    beside = _assemble(_cut(_instance(0, 42), _instance(1)), _pod("a", _SMALL))
    assert _holds(beside) == [_HELD, _POSSIBLE]
    assert beside.held == {("n", _SMALL): 1}


def test_more_holders_than_slices_is_old_input() -> None:
    """Everything is held, and a note says so."""
    fleet = _assemble(_cut(_instance(0)), _pod("a", _SMALL), _pod("b", _SMALL))
    assert (_holds(fleet), fleet.held) == ([_HELD], {("n", _SMALL): 1})
    assert any(f"pods hold 2 of {_SMALL}, but there are only 1" in note for note in fleet.notes)


def test_whole_gpus_are_held_like_slices() -> None:
    """By claim, by process, or by count."""
    by_claim = _assemble(_whole(2), _pod("a", _GPU), claims=[_claim("a", _GPU, "GPU-1")])
    assert _holds(by_claim) == [_FREE, _HELD]
    assert [gpu.slots_held for gpu in by_claim.gpus] == [0, 1]
    by_process = _assemble(_whole(2, pids={0: (7,)}))
    assert (_holds(by_process), by_process.gpus[0].holders) == ([_HELD, _FREE], ("process 7",))
    by_count = _assemble(_whole(3), _pod("a", _GPU, 2))
    assert _holds(by_count) == [_POSSIBLE] * 3
    assert sum(gpu.slots_held for gpu in by_count.gpus) == 2


def _shared(*pods: Pod, claims: Sequence[DeviceClaim] = ()) -> Fleet:
    """Two GPUs with three slots each."""
    node = Node(
        name="n",
        labels={"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "3"},
        allocatable={"nvidia.com/gpu.shared": 6},
    )
    return _assemble(_whole(2), *pods, claims=claims, nodes=[node])


def test_slots_of_shared_gpus_are_counted_over_the_node() -> None:
    """Few holders may be on either GPU; the sum of held slots is right."""
    name = "nvidia.com/gpu.shared"
    fleet = _shared(_pod("a", name), _pod("b", name), _pod("c", name))
    assert _holds(fleet) == [_POSSIBLE, _POSSIBLE]
    assert sum(gpu.slots_held for gpu in fleet.gpus) == 3
    assert fleet.held == {("n", name): 3}


def test_a_gpu_is_held_when_the_others_have_too_few_slots() -> None:
    """Four holders on slots of 3 and 3: each GPU has at least one."""
    pods = [_pod(letter, "nvidia.com/gpu.shared") for letter in "abcd"]
    assert _holds(_shared(*pods)) == [_HELD, _HELD]


def test_replica_ids_name_the_gpu() -> None:
    """``GPU-1::2`` is a slot of GPU-1."""
    name = "nvidia.com/gpu.shared"
    claims = [_claim("a", name, "GPU-1::0"), _claim("b", name, "GPU-1::2")]
    fleet = _shared(_pod("a", name), _pod("b", name), claims=claims)
    assert _holds(fleet) == [_FREE, _HELD]
    assert [gpu.slots_held for gpu in fleet.gpus] == [0, 2]
    assert fleet.gpus[1].holders == ("ml/a", "ml/b")


def test_under_the_single_strategy_pods_hold_slices() -> None:
    """A pod that asked for ``nvidia.com/gpu`` has a MIG slice there."""
    node = Node(
        name="n",
        labels={
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb",
            "nvidia.com/mig.strategy": "single",
        },
        allocatable={_GPU: 2},
    )
    listed = [_instance(start, profile="3g.20gb", size=4) for start in (0, 4)]
    fleet = _assemble(_cut(*listed), _pod("a", _GPU, 2), nodes=[node])
    assert (_holds(fleet), fleet.held) == ([_HELD, _HELD], {("n", _GPU): 2})


def test_aliases_of_profiles_are_the_same_resource() -> None:
    """A pod may ask by the name that another driver has for the profile."""
    gpu = GpuReport(
        index=0,
        product="NVIDIA A100-SXM4-80GB",
        uuid="GPU-0",
        mig_mode=MigMode.ON,
        instances=(InstanceReport(profile="3g.39gb", placement=Placement(start=4, size=4)),),
    )
    report = NodeReport(node="n", source="n.xml", gpus=(gpu,))
    fleet = _assemble(report, _pod("a", "nvidia.com/mig-3g.39gb"))
    assert fleet.held == {("n", "nvidia.com/mig-3g.40gb"): 1}
    assert _holds(fleet) == [_HELD]


def test_pods_on_nodes_that_are_not_given_are_noted() -> None:
    """They stay in the fleet."""
    fleet = assembly.assemble([Observation(pods=(_pod("a", _GPU), _pod("b", _GPU)))])
    assert [pod.name for pod in fleet.pods] == ["a", "b"]
    assert fleet.notes == ("node n: pods are bound to it, but nothing else is given of it: 2",)


def test_a_pod_given_twice_counts_once() -> None:
    """Of two states the one that holds something counts."""
    running = _pod("a", _SMALL)
    waiting = replace(running, node=None, phase=Phase.PENDING)
    fleet = _assemble(_cut(_instance(0), _instance(1)), waiting, running, running)
    assert fleet.pods == (running,)
    assert fleet.held == {("n", _SMALL): 1}
