"""What the agent says of itself is what it saw and decided."""

from dataclasses import replace

import pytest
from tests.agent.examples import GPU
from tests.agent.world import World, mig, shared, wants

from partita.agent.decision import Decision, GpuState, Phase
from partita.agent.observation import Observation
from partita.agent.status import Identity, Wish, status
from partita.model.agent_status import AgentStatus, Condition
from partita.ports.gpu_driver import DriverFailure, Recovery
from partita.ports.neighbours import Signs
from partita.ports.slice_server import Offer, ServingState, Session

WHO = Identity(node="node-1", version="1.0", process_id=7)


def _of(world: World, decision: Decision, *, before: AgentStatus | None = None) -> AgentStatus:
    assert world.agent.seen is not None
    wish = Wish(document=world.layouts.document)
    now = world.clock.now().isoformat()
    return status(WHO, world.agent.seen, decision, wish, before=before, now=now)


def _condition(found: AgentStatus, kind: str) -> Condition:
    one = found.condition(kind)
    assert one is not None
    return one


def test_an_agent_at_work_is_ready_and_says_who_holds_what() -> None:
    """GPU by GPU and resource by resource."""
    world = World(document=replace(wants(shared(2)), path="policy.yaml"))
    world.settle()
    uid = world.run(GPU)
    found = _of(world, world.settle())
    (gpu,) = found.gpus
    (resource,) = found.resources

    assert (found.node, found.source, found.is_ready) == ("node-1", "policy.yaml", True)
    assert {one.type: one.holds for one in found.conditions} == dict.fromkeys(
        (
            "Ready",
            "SoleOwner",
            "DriverAnswers",
            "KubeletAnswers",
            "LayoutsFollowed",
            "GpusHealthy",
            "GpusAsWanted",
        ),
        True,
    ) | {"BudgetsWatched": False}
    assert (gpu.phase, gpu.reason, gpu.mig_mode) == ("Ready", None, "off")
    assert {one.device_id: one.holders for one in gpu.slices if one.holders} == {
        world.given[uid][0]: ("default/pod-1",)
    }
    assert (resource.name, resource.slices, resource.usable, resource.held) == (GPU, 2, 2, 1)
    assert resource.connected


def test_mig_slices_tell_profile_placement_and_budget() -> None:
    """By instance."""
    world = World(document=wants(mig({"3g.20gb": 1, "1g.5gb": 1})))
    (gpu,) = _of(world, world.settle()).gpus

    assert {(one.profile, one.placement) for one in gpu.slices} == {
        ("3g.20gb", "4:4"),
        ("1g.5gb", "0:1"),
    }
    assert all((one.budget_mib or 0) > 4096 for one in gpu.slices)


def test_a_sick_gpu_is_counted_and_the_rest_is_as_wanted() -> None:
    """A lost GPU has no known mode."""
    world = World(boards=(("T4", 3),), document=wants(shared(2)))
    world.settle()
    first = next(iter(world.gpus.boards))
    world.gpus.lose(first)
    world.gpus.need(list(world.gpus.boards)[1], Recovery.REBOOT)
    found = _of(world, world.look())

    assert _condition(found, "GpusHealthy").message == "2 of 3 GPUs"
    assert _condition(found, "GpusAsWanted").holds is True
    assert found.gpus[0].mig_mode is None
    assert (found.gpus[0].phase, found.gpus[0].reason) == (
        "Sick",
        "the driver says: GPU is lost",
    )
    assert [one.usable for gpu in found.gpus[:2] for one in gpu.slices] == [False] * 4


def test_a_rival_is_named_and_nothing_is_ready() -> None:
    """With the way to hand over."""
    world = World()
    world.neighbours.signs = Signs(programs={"nvidia-mig-manager": 9})
    found = _of(world, world.look())

    for kind in ("Ready", "SoleOwner"):
        one = _condition(found, kind)
        assert (one.holds, one.reason) == (False, "OtherOwner")
        assert one.message == "nvidia-mig-manager runs on this node as process 9"
        assert one.hint == "label the node nvidia.com/gpu.deploy.mig-manager=false"
    assert _condition(found, "GpusHealthy").holds is None
    assert not found.is_ready


def test_a_silent_kubelet_and_a_silent_driver_are_conditions() -> None:
    """What is not known is said to be unknown."""
    world = World()
    world.stop_kubelet()
    found = _of(world, world.look())

    assert (found.is_ready, _condition(found, "KubeletAnswers").holds) == (False, False)
    assert _condition(found, "Ready").reason == "HoldersUnknown"

    world.gpus.fail_next(None, "gpus", DriverFailure.TIMEOUT)
    found = _of(world, world.look())

    assert _condition(found, "DriverAnswers").holds is False
    assert _condition(found, "Ready").reason == "DriverSilent"
    assert _condition(found, "GpusAsWanted").holds is None


def test_an_edit_that_is_not_understood_is_a_condition() -> None:
    """What stood there before is followed."""
    wish = Wish(document=wants(shared(2)), problem="config.yaml:3:5: replicas is empty")
    found = status(WHO, Observation(at=0.0), Decision(), wish, before=None, now="t0")
    one = _condition(found, "LayoutsFollowed")

    assert (one.holds, one.reason, one.message) == (False, "NotUnderstood", wish.problem)
    assert one.hint == "what stood in the file before is followed"


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (Session(resource=GPU, problem="connection refused"), "NotConnected"),
        (Session(resource=GPU), "Connecting"),
        (Session(resource=GPU, connected=True), "Serving"),
    ],
)
def test_an_agent_is_ready_when_the_kubelet_listens(session: Session, reason: str) -> None:
    """Why it is not is said in one word, and in words."""
    seen = Observation(at=0.0, gpus=(), serving=ServingState(sessions={GPU: session}))
    decision = Decision(offers=(Offer(resource=GPU),))
    found = status(WHO, seen, decision, Wish(document=wants()), before=None, now="t0")

    assert _condition(found, "Ready").reason == reason
    assert (session.problem or "") in _condition(found, "Ready").message


@pytest.mark.parametrize(
    ("state", "as_wanted"),
    [
        (GpuState(phase=Phase.READY), True),
        (GpuState(phase=Phase.KEPT), True),
        (GpuState(phase=Phase.KEPT, reason="two policies select it"), False),
        (GpuState(phase=Phase.SICK, reason="it reported XID 79"), True),
        (GpuState(phase=Phase.WAITING, reason="lab/train"), False),
        (GpuState(phase=Phase.FAILED, reason="create: in use"), False),
        (GpuState(phase=Phase.CHANGING, reason="create"), False),
        (GpuState(phase=Phase.OFFERING, reason="the kubelet has yet to list it"), False),
    ],
)
def test_a_gpu_is_as_wanted_when_it_rests_without_a_reason(
    state: GpuState, *, as_wanted: bool
) -> None:
    """A sick GPU is told of elsewhere."""
    decision = Decision(states={"GPU-0": state})
    found = status(
        WHO, Observation(at=0.0), decision, Wish(document=wants()), before=None, now="t0"
    )

    assert _condition(found, "GpusAsWanted").holds is as_wanted


def test_a_time_is_kept_as_long_as_nothing_changes() -> None:
    """For each condition and each GPU on its own."""
    world = World(boards=(("T4", 2),), document=wants(shared(2)))
    before = _of(world, world.settle())
    world.clock.advance(100)
    same = _of(world, world.look(), before=before)

    assert [one.since for one in same.conditions] == [one.since for one in before.conditions]
    assert same.at > before.at

    world.gpus.lose(next(iter(world.gpus.boards)))
    after = _of(world, world.look(), before=same)

    assert _condition(after, "GpusHealthy").since == after.at
    assert _condition(after, "Ready").since == _condition(before, "Ready").since
    assert [gpu.since == after.at for gpu in after.gpus] == [True, False]
