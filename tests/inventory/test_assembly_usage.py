"""What is taken to be in use although nobody is listed as its holder."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from partita.inventory import assembly
from partita.model.fleet import Fleet
from partita.model.gpu import ComputeInstance, Gpu, Hold, MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Phase, Pod
from partita.model.report import DeviceClaim, GpuReport, InstanceReport, NodeReport, Observation

_SMALL = "nvidia.com/mig-1g.5gb"
_GPU = "nvidia.com/gpu"
_FREE, _POSSIBLE, _HELD = Hold.FREE, Hold.POSSIBLE, Hold.HELD
_EVERYWHERE = frozenset({"ml", "kube-system"})
_PLAIN = GpuReport(
    index=0, product="NVIDIA A100-SXM4-40GB", uuid="GPU-0", mig_mode=MigMode.OFF, memory_mib=40960
)
_FIRST = InstanceReport(
    profile="1g.5gb", instance_id=7, placement=Placement(start=0, size=1), memory_mib=4864
)
_SECOND = replace(_FIRST, instance_id=8, placement=Placement(start=1, size=1))


def _cut(*instances: InstanceReport) -> GpuReport:
    return replace(_PLAIN, mig_mode=MigMode.ON, instances=instances)


def _observed(gpu: GpuReport, *, complete: bool = False) -> Observation:
    report = NodeReport(node="n", source="n.xml", gpus=(gpu,), complete=complete)
    return Observation(reports=(report,))


def _assemble(gpu: GpuReport, namespaces: frozenset[str] = _EVERYWHERE) -> Fleet:
    return assembly.assemble([_observed(gpu), Observation(pod_namespaces=namespaces)])


def _said(gpu: Gpu) -> list[tuple[Hold, tuple[str, ...]]]:
    return [(instance.hold, instance.holders) for instance in gpu.instances]


# ---- Memory in use, and readings that failed -----------------------------------------------------


@pytest.mark.parametrize(
    ("used", "hold", "holders"),
    [
        (12, _FREE, ()),
        (64, _FREE, ()),
        (65, _POSSIBLE, ("65 MiB in use, no process listed",)),
        (4000, _POSSIBLE, ("4000 MiB in use, no process listed",)),
    ],
)
def test_memory_in_use_pins_an_instance(used: int, hold: Hold, holders: tuple[str, ...]) -> None:
    """The driver's own share is idle; more is somebody whom the process list does not show."""
    fleet = _assemble(_cut(replace(_FIRST, used_memory_mib=used), _SECOND))
    assert _said(fleet.gpus[0]) == [(hold, holders), (_FREE, ())]
    assert fleet.held == {("n", _SMALL): len(holders)}


def test_the_idle_share_grows_with_the_instance() -> None:
    """An instance that is the whole board shows up to about 100 MiB while idle."""
    whole = InstanceReport(
        profile="7g.40gb", instance_id=0, placement=Placement(start=0, size=8), memory_mib=40192
    )
    holds = [
        _assemble(_cut(replace(whole, used_memory_mib=used))).gpus[0].instances[0].hold
        for used in (100, 401, 402)
    ]
    assert holds == [_FREE, _FREE, _POSSIBLE]


def test_memory_in_use_that_cannot_be_read_pins_an_instance() -> None:
    """A failed reading is not an idle one."""
    fleet = _assemble(_cut(replace(_FIRST, used_unreadable=True), _SECOND))
    assert _said(fleet.gpus[0])[0] == (_POSSIBLE, ("its memory in use cannot be read",))


def test_a_source_without_memory_reading_pins_nothing() -> None:
    """``-L``, ``-lgi``, labels and fleet files never show memory in use."""
    assert _said(_assemble(_cut(_FIRST, _SECOND)).gpus[0]) == [(_FREE, ())] * 2
    assert _assemble(_PLAIN).gpus[0].hold is _FREE


def test_a_listed_process_explains_the_memory() -> None:
    """The process holds the instance; nothing else is said."""
    fleet = _assemble(_cut(replace(_FIRST, used_memory_mib=4000, process_ids=(7,))))
    assert _said(fleet.gpus[0]) == [(_HELD, ("process 7",))]


def test_a_pod_that_holds_the_instance_explains_the_memory() -> None:
    """Only the pod is named then, since ending it is what would free the instance."""
    pod = Pod(namespace="ml", name="a", requests={_SMALL: 1}, node="n", phase=Phase.RUNNING)
    said = Observation(pods=(pod,), pod_namespaces=_EVERYWHERE)
    gpu = _cut(replace(_FIRST, used_memory_mib=4000))
    fleet = assembly.assemble([_observed(gpu), said])
    assert _said(fleet.gpus[0]) == [(_HELD, ("ml/a",))]
    assert fleet.held == {("n", _SMALL): 1}


def test_readings_survive_the_joining_of_sources() -> None:
    """The XML shows the memory in use, ``-lgi`` the placement."""
    xml = _cut(replace(_FIRST, profile=None, placement=None, used_memory_mib=4000))
    lgi = GpuReport(index=0, mig_mode=MigMode.ON, instances=(replace(_FIRST, memory_mib=None),))
    listed = NodeReport(node="n", source="n.lgi", gpus=(lgi,))
    said = Observation(reports=(listed,), pod_namespaces=_EVERYWHERE)
    for observations in ([_observed(xml), said], [said, _observed(xml)]):
        (instance,) = assembly.assemble(observations).gpus[0].instances
        assert (instance.placement, instance.hold) == (Placement(start=0, size=1), _POSSIBLE)


@pytest.mark.parametrize(
    ("used", "total", "hold"),
    [
        (1000, 40960, _FREE),
        (1228, 40960, _FREE),
        (1229, 40960, _POSSIBLE),
        (1024, 15360, _FREE),
        (1025, 15360, _POSSIBLE),
    ],
)
def test_memory_in_use_pins_a_gpu_without_mig(used: int, total: int, hold: Hold) -> None:
    """An idle board shows up to about 1000 MiB, with what older drivers reserve."""
    fleet = _assemble(replace(_PLAIN, used_memory_mib=used, memory_mib=total))
    assert fleet.gpus[0].hold is hold
    assert fleet.held == {("n", _GPU): 0 if hold is _FREE else 1}


def test_failed_readings_pin_a_gpu_without_mig() -> None:
    """Memory that cannot be read, or a process without id."""
    memory = _assemble(replace(_PLAIN, used_unreadable=True)).gpus[0]
    process = _assemble(replace(_PLAIN, processes_unreadable=True)).gpus[0]
    assert (memory.hold, memory.holders) == (_POSSIBLE, ("its memory in use cannot be read",))
    assert (process.hold, process.holders) == (_POSSIBLE, ("a process whose id cannot be read",))


def test_a_process_on_a_cut_gpu_may_be_on_any_instance() -> None:
    """When it is not said which instance it is on, every one may be it."""
    unreadable = _assemble(replace(_cut(_FIRST, _SECOND), processes_unreadable=True))
    known = _assemble(replace(_cut(_FIRST, _SECOND), process_ids=(81,)))
    who = ("a process whose id cannot be read",)
    assert _said(unreadable.gpus[0]) == [(_POSSIBLE, who)] * 2
    assert _said(known.gpus[0]) == [(_POSSIBLE, ("process 81",))] * 2
    assert known.held == {("n", _SMALL): 2}


def test_use_of_a_cut_gpu_without_instances_freezes_it() -> None:
    """Somebody uses what no source lists."""
    (gpu,) = _assemble(replace(_cut(), process_ids=(81,))).gpus
    assert gpu.problem == "in use, but no instance is known: process 81"


def test_memory_of_the_gpu_says_nothing_beside_that_of_its_instances() -> None:
    """What is in use on a cut GPU is told instance by instance, where it is told."""
    read = _cut(replace(_FIRST, used_memory_mib=12), replace(_SECOND, used_memory_mib=12))
    assert _assemble(replace(read, used_memory_mib=9000)).gpus[0].instances[0].hold is _FREE
    unread = replace(_cut(_FIRST, _SECOND), used_memory_mib=9000)
    assert [i.hold for i in _assemble(unread).gpus[0].instances] == [_POSSIBLE] * 2


# ---- Nobody said what pods hold ------------------------------------------------------------------


def _of(*observations: Observation) -> tuple[Sequence[Hold], int, Sequence[str]]:
    fleet = assembly.assemble(observations)
    return [i.hold for i in fleet.gpus[0].instances], fleet.held["n", _SMALL], fleet.notes


def test_without_a_list_of_pods_nothing_is_free() -> None:
    """Every slice may be held, none is offered, and one note says what to add."""
    holds, held, (note,) = _of(_observed(_cut(_FIRST, _SECOND)))
    assert (holds, held) == ([_POSSIBLE, _POSSIBLE], 2)
    assert note.startswith("no pods were given: nothing of node n is known to be free; add")


def test_one_note_names_all_nodes() -> None:
    """Whole and shared GPUs are possibly held too, with all slots."""
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1"}
    shared = {**labels, "nvidia.com/gpu.replicas": "4"}
    nodes = (
        Node(name="b", labels=labels, allocatable={_GPU: 1}),
        Node(name="a", labels=shared, allocatable={_GPU: 4}),
        Node(name="cpu"),
    )
    fleet = assembly.assemble([Observation(nodes=nodes)])
    assert [(gpu.hold, gpu.slots_held) for gpu in fleet.gpus] == [(_POSSIBLE, 4), (_POSSIBLE, 1)]
    assert fleet.held == {("a", _GPU): 4, ("b", _GPU): 1}
    assert [note for note in fleet.notes if "nothing of nodes a, b is known" in note] != []


def test_a_pod_that_waits_is_no_list_of_pods() -> None:
    """A manifest says nothing of who runs."""
    pod = Pod(namespace="ml", name="a", requests={_SMALL: 1})
    assert _of(_observed(_cut(_FIRST, _SECOND)), Observation(pods=(pod,)))[:2] == (
        [_POSSIBLE, _POSSIBLE],
        2,
    )


def test_what_is_known_to_be_held_stays_so() -> None:
    """A pod that is given alone holds its slice; the other slice may be held by another."""
    pod = Pod(
        namespace="ml",
        name="a",
        requests={_SMALL: 1},
        node="n",
        gpu_index=0,
        placement_start=0,
        phase=Phase.RUNNING,
    )
    holds, held, _notes = _of(_observed(_cut(_FIRST, _SECOND)), Observation(pods=(pod,)))
    assert (holds, held) == ([_HELD, _POSSIBLE], 2)


def test_the_checkpoint_of_a_node_speaks_for_it() -> None:
    """The kubelet knows all claims of its node, also when there are none."""
    device = ComputeInstance(instance_id=0, uuid="MIG-0")
    gpu = _cut(replace(_FIRST, compute_instances=(device,)), _SECOND)
    claim = DeviceClaim(
        node="n", pod_uid="u", container="c", resource=_SMALL, device_ids=("MIG-0",)
    )
    own, other = frozenset({"n"}), frozenset({"m"})
    assert _of(_observed(gpu), Observation(claims=(claim,), checkpoints=own))[0] == [_HELD, _FREE]
    assert _of(_observed(gpu), Observation(checkpoints=own))[0] == [_FREE, _FREE]
    assert _of(_observed(gpu), Observation(checkpoints=other))[0] == [_POSSIBLE, _POSSIBLE]


def test_a_fleet_file_speaks_for_its_nodes() -> None:
    """It names the holders itself; beside a file of the driver it does not."""
    gpu = _cut(_FIRST, _SECOND)
    complete = _observed(gpu, complete=True)
    assert _of(complete) == ([_FREE, _FREE], 0, ())
    assert _of(complete, _observed(gpu))[0] == [_POSSIBLE, _POSSIBLE]


def test_pods_of_one_namespace_may_not_be_all() -> None:
    """Whether there are others cannot be known, so it is said; not for a fleet file's nodes."""
    note = "all given pods are of namespace ml; use -A when that is not all"
    one = Observation(pod_namespaces=frozenset({"ml"}))
    assert _of(_observed(_cut(_FIRST)), one)[2] == (note,)
    assert _of(_observed(_cut(_FIRST), complete=True), one)[2] == ()
