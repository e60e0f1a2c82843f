"""What the loop does around the machine."""

import asyncio

from tests.agent.world import World, drive, mig, shared, wants

from partita.ports.gpu_driver import DriverFailure


def test_a_device_that_is_given_away_twice_is_refused() -> None:
    """Whoever was last seen to hold it is asked for again; who has ended does not count."""
    world = World(document=wants(shared(2)))
    world.settle()
    uid = world.run("nvidia.com/gpu")
    world.settle()
    (device,) = world.given[uid]
    other = next(
        one.slice.device_id
        for offer in world.agent.decision.offers or ()
        for one in offer.slices
        if one.slice.device_id != device
    )

    assert drive(world.agent.objection([device])) == (
        f"the kubelet gives it away a second time, default/pod-1 holds it: {device}"
    )
    assert drive(world.agent.objection([other])) is None

    world.end(uid)

    assert drive(world.agent.objection([device])) is None


def test_nothing_speaks_against_a_device_while_the_kubelet_is_silent() -> None:
    """Who cannot be asked is not believed to hold anything: the kubelet is asking just now."""
    world = World(document=wants(shared(2)))
    world.settle()
    uid = world.run("nvidia.com/gpu")
    world.settle()
    world.stop_kubelet()

    assert drive(world.agent.objection(world.given[uid])) is None


def test_a_step_that_fails_on_one_gpu_does_not_keep_the_others_back() -> None:
    """Every GPU has its own steps and its own failures."""
    world = World(boards=(("A100-SXM4-40GB", 3),), document=wants(mig({"1g.5gb": 7})))
    first, *others = world.gpus.boards
    for _ in range(20):
        world.gpus.fail_next(first, "create_instance", DriverFailure.UNKNOWN)
    for _ in range(40):
        decision = world.look()
        world.clock.advance(0.05)

    assert decision.states[first].phase.value == "Failed"
    assert [decision.states[uuid].phase.value for uuid in others] == ["Ready", "Ready"]


def test_what_a_hanging_driver_leaves_is_still_served() -> None:
    """Without an answer of the driver no slice is given away, and none is forgotten."""
    world = World(document=wants(shared(2)))
    world.settle()
    world.gpus.fail_next(None, "gpus", DriverFailure.TIMEOUT)
    assert world.look().offers is None  # one slow call changes nothing

    world.clock.advance(61.0)
    world.gpus.fail_next(None, "gpus", DriverFailure.TIMEOUT)
    decision = world.look()

    assert decision.problem is not None
    assert [one.usable for offer in decision.offers or () for one in offer.slices] == [False] * 2
    assert world.settle().states[next(iter(world.gpus.boards))].phase.value == "Ready"


def test_an_edit_ends_the_rest() -> None:
    """The loop rests for seconds when nothing is to be done, but looks at the file meanwhile."""
    world = World(document=wants(shared(2)))
    world.settle()
    before = world.layouts.document

    async def rest() -> None:
        resting = asyncio.create_task(world.agent._rest(3600.0, (before, None)))  # noqa: SLF001 - the wait itself
        await asyncio.sleep(0)
        world.layouts.document = wants(shared(4))
        await asyncio.wait_for(resting, 5)

    asyncio.run(rest())
