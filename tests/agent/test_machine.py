"""The table of the machine, row by row: what is seen, the phase, and what is done.

The node and the kubelet are those of the histories. What happens over time to a layout is in
``test_machine_changes``.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, a100, holding, look, offered, phase, slices, usable
from tests.agent.world import NOTHING, World, drive, mig, shared, wants, whole

from partita.agent import machine
from partita.agent.decision import Phase
from partita.agent.instruction import CreateInstance, DestroyInstance, Outcome
from partita.agent.memory import Failure, Memory
from partita.agent.observation import KubeletEvidence, Observation
from partita.config.agent_document import AgentDocument
from partita.config.partition_policy import GpuSelector
from partita.model.placement import Placement
from partita.ports.gpu_driver import DriverFailure, HealthEvent, Recovery
from partita.ports.neighbours import Signs
from partita.ports.slice_server import Offer
from partita.simulator.kubelet.in_memory_server import InMemorySliceServer

PLACE = Placement(start=0, size=1)
EIGHT = (("T4", 8),)


def board(world: World, number: int = 0) -> str:
    """Return the UUID of a GPU of the node."""
    return list(world.gpus.boards)[number]


# ---- Sick -------------------------------------------------------------------------------------


def _lose(world: World) -> None:
    world.gpus.lose(board(world))


def _need(world: World) -> None:
    world.gpus.need(board(world), Recovery.RESET)


def _xid(world: World) -> None:
    world.gpus.emit(HealthEvent(uuid=board(world), xid=79))


def _well(world: World) -> None:
    world.gpus.recover(board(world))
    world.gpus.need(board(world), Recovery.NONE)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (_lose, "the driver says: GPU is lost"),
        (_need, "it needs a reset"),
        (_xid, "it reported XID 79"),
    ],
)
@pytest.mark.parametrize("begin", [wants(shared(4)), NOTHING, wants(mig({"1g.5gb": 7}))])
def test_all_slices_of_a_sick_gpu_are_unusable_until_it_is_well(
    harm: object, reason: str, begin: AgentDocument
) -> None:
    """None is left out, held or not; with the cause the sickness ends."""
    assert callable(harm)
    world = World(document=begin)
    before = slices(world.settle())
    world.run(before[0].slice.resource)
    world.settle()
    harm(world)
    decision = world.look()

    assert phase(decision) == (Phase.SICK, reason)
    assert {one.slice.device_id for one in slices(decision)} == {
        one.slice.device_id for one in before
    }
    assert usable(decision) == []

    _well(world)
    world.clock.advance(301)
    assert len(usable(world.settle())) == len(before)


def test_a_sick_gpu_is_not_cut() -> None:
    """Whatever is wanted of it."""
    world = World(document=wants(mig({"1g.5gb": 7})))
    _need(world)
    for _ in range(20):
        decision = world.look()
        world.clock.advance(0.2)

    assert (phase(decision)[0], world.steps) == (Phase.SICK, [])


def test_an_xid_of_one_instance_makes_its_slice_unusable_and_says_so() -> None:
    """The other slices go on; while it lasts the agent does not look for a change all the time."""
    world = World(document=wants(mig({"3g.20gb": 1, "1g.5gb": 1})))
    world.settle()
    instances = world.gpus.boards[board(world)].instances
    sick, well = sorted(instances)
    world.gpus.emit(HealthEvent(uuid=board(world), xid=94, instance_id=sick))
    for _ in range(4):
        decision = world.look()
        world.clock.advance(decision.wake_seconds)

    assert usable(decision) == [instances[well].mig_devices[0].uuid]
    assert "XID 94" in (phase(decision)[1] or "")
    assert decision.wake_seconds >= 1.0


@settings(deadline=None, max_examples=15)
@given(lost=st.sets(st.integers(0, 7), min_size=1), held=st.integers(0, 8))
def test_a_lost_gpu_changes_nothing_of_another(lost: set[int], held: int) -> None:
    """Neither what is offered of it nor its phase."""
    world = World(boards=EIGHT, document=wants(shared(2)))
    world.settle()
    for _ in range(held):
        world.run(GPU)
    before = world.settle()
    for number in lost:
        world.gpus.lose(board(world, number))
    after = world.settle(looks=5)

    for number in set(range(8)) - lost:
        gpu = board(world, number)
        assert slices(after, gpu) == slices(before, gpu)
        assert after.states[gpu] == before.states[gpu]
    for number in lost:
        assert usable(after, board(world, number)) == []


# ---- Unknown ----------------------------------------------------------------------------------


def test_while_the_kubelet_is_silent_nothing_changes() -> None:
    """What was offered stays as it was, and no edit is carried out."""
    world = World(document=wants(shared(4)))
    before = slices(world.settle())
    world.stop_kubelet()
    world.layouts.document = wants(mig({"1g.5gb": 7}))
    for _ in range(20):
        decision = world.look()
        world.clock.advance(1.0)

    assert slices(decision) == before
    assert decision.instructions == ()
    assert phase(decision)[0] is Phase.UNKNOWN
    assert decision.problem == phase(decision)[1]
    assert world.steps == []


def test_an_agent_begins_nothing_before_the_kubelet_has_answered() -> None:
    """Not even to offer: it does not know what pods hold."""
    world = World(document=wants(shared(4)))
    world.stop_kubelet()
    decision = world.look()

    assert (decision.offers, decision.instructions) == (None, ())
    assert decision.problem


def test_a_gpu_whose_processes_are_unknown_is_served_and_not_cut() -> None:
    """The other one is cut."""
    gpus = (a100(0), a100(1))
    seen = replace(look(*gpus), processes={"GPU-1": ()})
    memory = Memory(begun=True, quiet_since={"GPU-0": 0.0, "GPU-1": 0.0})
    decision = machine.decide(seen, wants(mig({"1g.5gb": 7})), memory)

    assert phase(decision) == (Phase.UNKNOWN, "the driver does not tell its processes")
    assert phase(decision, 1)[0] is Phase.CHANGING


# ---- Kept -------------------------------------------------------------------------------------


def test_a_gpu_that_no_policy_selects_is_served_as_it_stands() -> None:
    """It says why nothing is done with it."""
    policy = replace(shared(4), gpu_selector=GpuSelector(indices=(1,)))
    world = World(boards=(("T4", 2),), document=wants(policy))
    decision = world.settle()

    assert phase(decision)[0] is Phase.KEPT
    assert phase(decision)[1]
    assert usable(decision, board(world)) == [board(world)]
    assert len(usable(decision, board(world, 1))) == 4


def test_two_policies_for_one_gpu_are_named_and_neither_is_followed() -> None:
    """Nothing is cut."""
    world = World(document=wants(shared(4), mig({"1g.5gb": 7})))
    decision = world.settle()
    state, reason = phase(decision)

    assert state is Phase.KEPT
    assert reason is not None
    assert "share" in reason
    assert "cut" in reason
    assert world.steps == []


def test_a_reset_that_is_not_allowed_is_a_condition_with_the_policys_name() -> None:
    """Meanwhile the GPU is served whole."""
    world = World(document=wants(mig({"1g.5gb": 7}, may_reset=False, name="lab")))
    decision = world.settle()

    assert phase(decision)[0] is Phase.KEPT
    assert phase(decision)[1] == (
        "to switch MIG on this GPU must be reset, which policy lab does not allow"
        " (spec.mig.allowReset; for a mig-parted config --allow-reset)"
    )
    assert world.steps == []


# ---- Failed -----------------------------------------------------------------------------------


def test_a_step_that_fails_is_tried_later_and_later() -> None:
    """After 1, 2, 4, ... seconds, never more than a minute; then it is done."""
    world = World(document=wants(mig({"7g.40gb": 1})))
    for _ in range(9):
        world.gpus.fail_next(board(world), "create_instance", DriverFailure.UNKNOWN)
    tried: list[float] = []
    while len(tried) < 10:
        decision = world.look()
        if any(isinstance(one, CreateInstance) for one in decision.instructions):
            tried.append(world.clock.monotonic())
        world.clock.advance(max(decision.wake_seconds, 0.01))
    waits = [round(later - sooner) for sooner, later in pairwise(tried)]

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert phase(world.settle()) == (Phase.READY, None)


def test_a_failed_step_says_what_was_tried_and_what_the_driver_said() -> None:
    """And wakes the agent in time for the next try."""
    world = World(document=wants(mig({"7g.40gb": 1})))
    for _ in range(5):
        world.gpus.fail_next(board(world), "create_instance", DriverFailure.UNKNOWN)
    while phase(decision := world.look())[0] is not Phase.FAILED:
        world.clock.advance(0.05)

    assert (phase(decision)[1] or "").startswith("create 7g.40gb at 0:8: ")
    assert 0 < decision.wake_seconds <= 1.0


@pytest.mark.parametrize("count", [1, 1_025, 100_000])
def test_a_step_may_fail_for_weeks(count: int) -> None:
    """A minute apart a thousand failures are less than a day."""
    step = CreateInstance(uuid="GPU-0", profile="1g.5gb", profile_id=19, placement=PLACE)
    failed = Failure(step=str(step), reason="unknown", count=count, retry_at=100.0)
    seen = replace(look(a100()), outcomes=(Outcome(instruction=step, error="unknown"),))
    decision = machine.decide(
        seen, wants(mig({"1g.5gb": 7})), Memory(begun=True, failures={"GPU-0": failed})
    )

    assert phase(decision)[0] is Phase.FAILED
    assert decision.memory.failures["GPU-0"].retry_at <= 160.0


# ---- Changing, Withdrawing, Offering, Ready ---------------------------------------------------


def test_every_gpu_takes_its_own_step_at_once_and_never_two() -> None:
    """One GPU never keeps another from its next step."""
    world = World(boards=(("A100-SXM4-40GB", 2),), document=wants(mig({"1g.5gb": 7})))
    for _ in range(40):
        decision = world.look()
        world.clock.advance(0.05)
        gpus = [getattr(one, "uuid", None) for one in decision.instructions]
        assert len(gpus) == len(set(gpus))

    assert len(world.steps) == 2 * (2 + 7)
    assert len(usable(decision)) == 14


def test_what_is_to_go_is_withdrawn_before_it_is_destroyed() -> None:
    """It is listed as unusable, the kubelet is seen to agree, and only then it goes."""
    world = World(document=wants(mig({"1g.5gb": 7})))
    world.settle()
    world.layouts.document = wants(mig({"3g.20gb": 2}))
    world.kubelet.reads_at_once = False
    for _ in range(20):
        decision = world.look()
        world.clock.advance(1.0)

    assert phase(decision)[0] is Phase.WITHDRAWING
    assert (len(slices(decision)), usable(decision)) == (7, [])
    assert "destroy" not in world.steps

    world.kubelet.reads_at_once = True
    world.kubelet.read()
    world.settle()
    assert world.steps[-9:] == ["destroy"] * 7 + ["create"] * 2


def test_what_is_to_go_rests_before_it_is_destroyed() -> None:
    """The kubelet may have picked it just before: it asks for what it picked within a moment."""
    world = World(document=wants(mig({"1g.5gb": 1})))
    world.settle()
    world.layouts.document = wants(mig({"7g.40gb": 1}))
    decision, since = world.look(), world.clock.monotonic()
    while not decision.instructions:
        if drive(world.kubelet.allocatable()):
            since = world.clock.monotonic()
        world.clock.advance(0.01)
        decision = world.look()

    assert isinstance(decision.instructions[0], DestroyInstance)
    assert 0.1 <= world.clock.monotonic() - since < 0.5


def test_what_is_destroyed_is_retired_in_the_same_instant() -> None:
    """The instruction names the IDs that nobody may be given any more."""
    world = World(document=wants(mig({"1g.5gb": 1})))
    world.settle()
    (device,) = usable(world.agent.decision)
    world.layouts.document = wants(mig({"7g.40gb": 1}))
    destroyed = []
    for _ in range(60):
        decision = world.look()
        world.clock.advance(0.05)
        destroyed += [one for one in decision.instructions if isinstance(one, DestroyInstance)]

    assert [one.device_ids for one in destroyed] == [frozenset({device})]


def test_what_the_kubelet_has_not_listed_is_still_being_offered() -> None:
    """Ready is when the kubelet can give it away."""
    world = World(document=wants(shared(4)))
    world.kubelet.reads_at_once = False
    for _ in range(3):
        decision = world.look()
        world.clock.advance(0.1)

    assert phase(decision) == (Phase.OFFERING, "the kubelet has yet to list 4 of its slices")

    world.kubelet.read()
    decision = world.look()
    assert (phase(decision), decision.wake_seconds) == ((Phase.READY, None), 5.0)


# ---- before any GPU ---------------------------------------------------------------------------


def test_beside_a_rival_nothing_is_done_and_it_is_named() -> None:
    """As soon as it has gone the agent begins."""
    world = World(document=wants(whole()))
    world.neighbours.signs = Signs(programs={"nvidia-device-plugin": 7})
    decision = world.look()

    assert decision.rival is not None
    assert (decision.offers, decision.instructions, decision.states) == (None, (), {})

    world.neighbours.signs = Signs()
    world.clock.advance(60)
    assert usable(world.settle()) == [board(world)]


def test_without_the_driver_nothing_new_goes_to_anybody() -> None:
    """After a minute what nobody holds is unusable; what is held stays as its pod needs it."""
    before = tuple(slices(World(document=wants(shared(2))).settle()))
    memory = Memory(begun=True, offered={"GPU-0": before}, seen_at=0.0)
    held = holding(before[0].slice.device_id, resource=GPU)
    evidence = KubeletEvidence(holdings=(held,))
    seen = Observation(at=59.0, driver_problem="no answer within 10 s", kubelet=evidence)
    decision = machine.decide(seen, NOTHING, memory)

    assert decision.problem == "no answer within 10 s"
    assert decision.offers is None
    decision = machine.decide(replace(seen, at=61.0), NOTHING, memory)
    assert [one.usable for one in slices(decision)] == [True, False]
    assert machine.decide(seen, NOTHING, Memory()).offers is None


def test_a_pod_of_another_plugin_that_has_ended_does_not_keep_the_agent_waiting_for_ever() -> None:
    """The checkpoint names it until somebody makes the kubelet write it again."""
    world = World(document=wants(whole()))
    other = InMemorySliceServer(world.kubelet, world.clock, name="other")
    drive(other.offer([Offer(resource=GPU, slices=(offered("nvidia0"),))]))
    uid = world.bind(GPU)
    while world.kubelet.question is not None:
        world.kubelet.answer(other.answer(world.kubelet.question))
    other.vanish()
    decision = world.settle()

    assert decision.problem == "default/pod-1 holds a device of another plugin: nvidia0"

    world.end(uid)
    assert usable(world.settle()) == [board(world)]
