"""What becomes of layouts, names and held slices over time, on a node with a kubelet."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, SHARED_GPU, SMALL, a100, look, phase, slices, usable
from tests.agent.world import NOTHING, World, mig, shared, wants, whole

from partita.agent import machine
from partita.agent.decision import Phase
from partita.agent.memory import Memory
from partita.agent.observation import KubeletEvidence
from partita.config import agent_document
from partita.config.agent_document import AgentDocument
from partita.config.partition_policy import GpuSelector
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import MigDevice
from partita.ports.slice_server import ServingState, Session

HALF = "nvidia.com/mig-3g.20gb"


def board(world: World, number: int = 0) -> str:
    """Return the UUID of a GPU of the node."""
    return list(world.gpus.boards)[number]


def _plugin(strategy: str, replicas: int | None = None) -> AgentDocument:
    text = f"version: v1\nflags:\n  migStrategy: {strategy}\n"
    if replicas is not None:
        text += (
            "sharing:\n  timeSlicing:\n    resources:\n"
            f"    - name: nvidia.com/gpu\n      replicas: {replicas}\n"
        )
    return agent_document.read(text, "config.yaml")


def _then(world: World, document: AgentDocument) -> None:
    """Let another document be wanted, and time pass until the agent has done what it can."""
    world.layouts.document = document
    world.settle()


def _offered(world: World) -> Counter[str]:
    """Return resource → usable slices."""
    offers = world.agent.decision.offers or ()
    found = {one.resource: sum(each.usable for each in one.slices) for one in offers}
    return Counter({name: count for name, count in found.items() if count})


# ---- sharing ----------------------------------------------------------------------------------


def test_more_replicas_come_while_pods_run() -> None:
    """2 become 8: both pods keep their slots and six more are admitted."""
    world = World(document=wants(shared(2)))
    world.settle()
    first = [world.run(GPU), world.run(GPU)]
    _then(world, wants(shared(8)))

    more = [world.run(GPU) for _ in range(6)]

    held = [device for uid in (*first, *more) for device in world.given[uid]]
    assert len(set(held)) == 8
    assert world.free() == {}
    assert phase(world.settle()) == (Phase.READY, None)


def test_fewer_replicas_wait_for_the_pods_that_are_too_many() -> None:
    """8 become 2 while three pods run: they stay, nobody else comes, the last to end leaves two."""
    world = World(document=wants(shared(8)))
    world.settle()
    pods = [world.run(GPU) for _ in range(3)]
    _then(world, wants(shared(2)))
    decision = world.settle()

    assert phase(decision) == (Phase.WAITING, "default/pod-3")
    assert {device for uid in pods for device in world.given[uid]} == set(usable(decision))
    assert world.free() == {}

    world.end(pods[0])
    decision = world.settle()
    assert phase(decision) == (Phase.READY, None)
    assert {device for uid in pods[1:] for device in world.given[uid]} == set(usable(decision))
    assert len(slices(decision)) == 2


def test_a_slot_that_was_offered_a_moment_ago_is_withdrawn_and_not_left_out() -> None:
    """2 became 8, the list was sent but not seen to be read, and 8 become 2 again."""
    document, gpu = wants(shared(8)), replace(a100(), mig_mode=MigMode.OFF)
    listed = KubeletEvidence(allocatable={GPU: frozenset({"GPU-0::0", "GPU-0::1"})})
    session = Session(resource=GPU, connected=True, delivered=True)
    seen = replace(look(gpu, kubelet=listed), serving=ServingState(sessions={GPU: session}))
    memory = Memory(begun=True, quiet_since={"GPU-0": 0.0})
    grown = machine.decide(seen, document, memory)
    shrunk = machine.decide(replace(seen, at=seen.at + 0.05), wants(shared(2)), grown.memory)

    assert len(usable(grown)) == 8
    assert grown.wake_seconds < 0.1  # the list was sent, so that it will be read soon
    assert {one.slice.device_id for one in slices(shrunk)} == {
        one.slice.device_id for one in slices(grown)
    }
    assert len(usable(shrunk)) == 2

    memory, left = shrunk.memory, {}
    for later in (1.0, 1.9, 2.2, 2.4):
        decision = machine.decide(replace(seen, at=seen.at + later), wants(shared(2)), memory)
        memory, left[later] = decision.memory, len(slices(decision))
    assert left == {1.0: 8, 1.9: 8, 2.2: 8, 2.4: 2}  # it may be read up to 2 s after it was sent


def test_a_renamed_resource_comes_when_nobody_holds_the_old_one() -> None:
    """Until then only what is held is offered, under the name it was given."""
    world = World(document=wants(shared(4)))
    world.settle()
    uid = world.run(GPU)
    _then(world, wants(shared(4, renamed=True)))
    decision = world.settle()

    assert phase(decision) == (Phase.WAITING, "default/pod-1")
    assert usable(decision) == list(world.given[uid])
    assert _offered(world) == {GPU: 1}

    world.end(uid)
    world.settle()
    assert _offered(world) == {SHARED_GPU: 4}


@settings(deadline=None, max_examples=25)
@given(
    wishes=st.lists(
        st.tuples(st.integers(1, 6), st.booleans(), st.integers(0, 3)), min_size=1, max_size=4
    )
)
def test_no_edit_of_sharing_touches_a_held_slot(
    wishes: list[tuple[int, bool, int]],
) -> None:
    """All stay usable; what is usable is what is wanted, or what is held if that is more."""
    world = World(document=wants(shared(4)))
    for replicas, renamed, pods in wishes:
        _then(world, wants(shared(replicas, renamed=renamed) if replicas > 1 else whole()))
        for _ in range(pods):
            if free := sorted(world.free()):
                world.run(free[0])
        decision = world.settle()
        held = {device for devices in world.given.values() for device in devices}
        assert held <= set(usable(decision))
        if phase(decision)[0] is Phase.READY:
            assert len(usable(decision)) == max(replicas, len(held))
    for uid in list(world.kubelet.pods):
        world.end(uid)
    world.settle()
    last, renamed, _ = wishes[-1]
    assert _offered(world) == {SHARED_GPU if renamed and last > 1 else GPU: last}


# ---- cutting ----------------------------------------------------------------------------------


def test_a_whole_gpu_is_cut_when_the_pod_that_holds_it_has_ended() -> None:
    """Until then it waits and says for whom."""
    world = World(document=wants(whole()))
    world.settle()
    uid = world.run(GPU)
    _then(world, wants(mig({"1g.5gb": 7})))
    decision = world.settle()

    assert phase(decision) == (Phase.WAITING, "7 x 1g.5gb must wait: default/pod-1")
    assert usable(decision) == list(world.given[uid])
    assert world.steps == []

    world.end(uid)
    assert phase(world.settle()) == (Phase.READY, None)
    assert _offered(world) == {SMALL: 7}


def test_a_process_without_a_pod_keeps_a_gpu_from_being_cut() -> None:
    """It is named; when it has ended the GPU is cut."""
    world = World(document=wants(whole()))
    world.settle()
    world.gpus.add_process(board(world), 4711)
    _then(world, wants(mig({"1g.5gb": 7})))
    state, reason = phase(world.settle())

    assert (state, world.steps) == (Phase.WAITING, [])
    assert "process 4711" in (reason or "")

    world.gpus.end_process(4711)
    world.settle()
    assert _offered(world) == {SMALL: 7}


def test_a_new_layout_is_built_around_what_is_held() -> None:
    """The held instance keeps its MIG device, its place and its name."""
    world = World(document=wants(mig({"1g.5gb": 7})))
    world.settle()
    uid = world.run(SMALL)
    _then(world, wants(mig({"3g.20gb": 1, "1g.5gb": 1})))

    assert phase(world.settle()) == (Phase.READY, None)
    assert _offered(world) == {SMALL: 1, HALF: 1}
    assert world.given[uid][0] in usable(world.agent.decision)


def test_a_gpu_split_by_hand_is_left_alone() -> None:
    """Its compute instances are not served, not destroyed, and it is said why the rest waits."""
    world = World(document=wants(mig({"3g.20gb": 2})))
    world.settle()
    instances = world.gpus.boards[board(world)].instances
    number = min(instances)
    split = (
        MigDevice(uuid="MIG-a", index=0, compute_instance_id=0),
        MigDevice(uuid="MIG-b", index=1, compute_instance_id=1),
    )
    instances[number] = replace(instances[number], mig_devices=split)
    done = list(world.steps)
    _then(world, wants(mig({"7g.40gb": 1})))
    decision = world.settle()

    assert not {"MIG-a", "MIG-b"} & set(usable(decision))
    assert number in instances
    assert world.steps == [*done, "destroy"]  # the other half, which nobody split
    assert phase(decision)[0] is Phase.WAITING
    assert "split into 2 compute instances by hand" in (phase(decision)[1] or "")


def test_a_mig_device_that_vanishes_while_it_is_held_stays_listed_and_is_retired() -> None:
    """It is unusable, it is told of, and it goes when its pod has ended."""
    world = World(document=wants(mig({"3g.20gb": 1, "1g.5gb": 1})))
    world.settle()
    uid = world.run(SMALL)
    (device,) = world.given[uid]
    world.settle()
    instances = world.gpus.boards[board(world)].instances
    (number,) = [i for i, one in instances.items() if one.mig_devices[0].uuid == device]
    del instances[number]
    decision = world.look()

    assert decision.retire == {device}
    assert [one.usable for one in slices(decision) if one.slice.device_id == device] == [False]

    decision = world.settle()
    assert _offered(world) == {SMALL: 1, HALF: 1}  # another stands in its place
    assert device in {one.slice.device_id for one in slices(decision)}
    assert device in (phase(decision)[1] or "")

    world.end(uid)
    assert device not in {one.slice.device_id for one in slices(world.settle())}


def test_a_free_mig_device_that_vanishes_is_withdrawn_before_it_is_left_out() -> None:
    """The kubelet may be giving it away; that pod is to fail alone, not the whole resource."""
    world = World(document=wants(mig({"3g.20gb": 1, "1g.5gb": 1})))
    world.settle()
    instances = world.gpus.boards[board(world)].instances
    number = min(instances)
    (device,) = instances[number].mig_devices
    del instances[number]
    decision = world.look()

    assert [one.usable for one in slices(decision) if one.slice.device_id == device.uuid] == [False]
    assert device.uuid not in decision.retire  # it may only not have been enumerated for once
    assert device.uuid not in {one.slice.device_id for one in slices(world.settle())}


# ---- the strategies of NVIDIA's plugin --------------------------------------------------------


@pytest.fixture
def cut_and_whole() -> World:
    """A node of two GPUs, the second one cut into two halves, without a document."""
    halves = replace(mig({"3g.20gb": 2}), gpu_selector=GpuSelector(indices=(1,)))
    world = World(boards=(("A100-SXM4-40GB", 2),), document=wants(halves))
    _then(world, wants(halves))
    _then(world, NOTHING)
    return world


@pytest.mark.parametrize(
    ("strategy", "offered"),
    [
        ("none", {GPU: 2}),
        ("mixed", {GPU: 1, HALF: 2}),
        ("single", {GPU: 1}),
    ],
)
def test_a_node_of_cut_and_whole_gpus_is_served_as_the_strategy_says(
    cut_and_whole: World, strategy: str, offered: dict[str, int]
) -> None:
    """Nothing is cut; under *single* a slice may not be called what a GPU is called."""
    steps = list(cut_and_whole.steps)
    _then(cut_and_whole, _plugin(strategy))

    assert _offered(cut_and_whole) == offered
    assert cut_and_whole.steps == steps


def test_what_single_cannot_name_is_said() -> None:
    """NVIDIA's plugin refuses such a node as a whole; silence would look like a broken GPU."""
    world = World(document=wants(mig({"3g.20gb": 1, "1g.5gb": 1})))
    world.settle()
    _then(world, _plugin("single"))
    decision = world.settle()

    assert usable(decision) == []
    assert phase(decision)[1] == ("strategy single: more than one profile stands: 1g.5gb, 3g.20gb")


@pytest.mark.parametrize(("replicas", "offered"), [(None, {GPU: 7}), (6, {GPU: 42})])
def test_single_serves_slices_as_gpus_and_replicas_multiply_them(
    replicas: int | None, offered: dict[str, int]
) -> None:
    """Seven slices with six replicas are 42."""
    world = World(document=wants(mig({"1g.5gb": 7})))
    world.settle()
    _then(world, _plugin("single", replicas))

    assert _offered(world) == offered


def test_a_pod_keeps_its_slice_when_the_strategy_changes() -> None:
    """From *mixed* to *single* its resource has another name, which waits for that slice alone."""
    world = World(document=wants(mig({"1g.5gb": 7})))
    world.settle()
    uid = world.run(SMALL)
    _then(world, _plugin("single"))

    assert _offered(world) == {SMALL: 1, GPU: 6}
    assert phase(world.settle()) == (Phase.WAITING, "default/pod-1")

    world.end(uid)
    world.settle()
    assert _offered(world) == {GPU: 7}
