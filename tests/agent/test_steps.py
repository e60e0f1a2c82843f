"""One safe step at a time: destroy what is free, change the mode, create; then look what it did."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.agent.examples import a100, instance

from partita.agent import devices
from partita.agent.holders import Holders
from partita.agent.instruction import (
    Announce,
    CreateInstance,
    DestroyInstance,
    Instruction,
    Outcome,
    ResetGpu,
    SetMode,
)
from partita.agent.look import View
from partita.agent.presence import Presence
from partita.agent.serving_rules import ServingRule
from partita.agent.steps import Next, broken_promise, next_step
from partita.agent.target import Target
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.planner.plan import Create
from partita.ports.gpu_driver import DriverGpu, ModeChange

FREE = Presence()
BUSY = Presence(quiet=False, released=False)
ON, OFF = MigMode.ON, MigMode.OFF
TWO = a100(mode=ON, instances=(instance(7, 0), instance(8, 1)))


def _create(profile: str, start: int, size: int = 1) -> Create:
    ids = {"1g.5gb": 19, "2g.10gb": 14, "3g.20gb": 9}
    return Create(
        node="this node",
        index=0,
        profile=profile,
        profile_id=ids.get(profile),
        placement=Placement(start=start, size=size),
    )


def _next(
    gpu: DriverGpu,
    target: Target,
    presences: Mapping[str, Presence] | None = None,
    processes: Mapping[tuple[str, int | None], tuple[str, ...]] | None = None,
) -> Next:
    rule = ServingRule()
    found = devices.of(gpu, target, rule)
    known = {one.uuid: FREE for one in found.all()} | dict(presences or {})
    view = View(gpu=gpu, target=target, rule=rule, devices=found, presences=known)
    return next_step(view, Holders(processes=processes or {}))


def test_what_is_to_go_and_is_released_is_destroyed() -> None:
    """Its IDs are to be retired first."""
    target = Target(mode=ON, surplus=frozenset({8}))
    presence = Presence(foreign=frozenset({"MIG-8::0", "MIG-8::1"}))

    assert _next(TWO, target, {"MIG-8": presence}).step == DestroyInstance(
        uuid="GPU-0",
        instance_id=8,
        profile="1g.5gb",
        placement=Placement(start=1, size=1),
        device_ids=frozenset({"MIG-8", "MIG-8::0", "MIG-8::1"}),
        devices=("MIG-8",),
    )


def test_what_is_not_released_is_not_destroyed() -> None:
    """The next that can be destroyed is."""
    target = Target(mode=ON, surplus=frozenset({7, 8}))
    step = _next(TWO, target, {"MIG-7": BUSY}).step

    assert isinstance(step, DestroyInstance)
    assert step.instance_id == 8
    assert _next(TWO, target, {"MIG-7": BUSY, "MIG-8": BUSY}) == Next(withdrawing=True)


def test_an_instance_with_a_process_on_it_is_not_destroyed() -> None:
    """Even if no pod has it; it is said who is in the way."""
    target = Target(mode=ON, surplus=frozenset({7}))
    found = _next(TWO, target, processes={("GPU-0", 7): ("process 4711 (python3)",)})

    assert found == Next(waits="process 4711 (python3)")


def test_an_instance_without_a_mig_device_is_destroyed() -> None:
    """It is what is left when destroying or creating it ended half-way."""
    gpu = a100(mode=ON, instances=(instance(7, 0, devices=()),))
    step = _next(gpu, Target(mode=ON, create=(_create("1g.5gb", 1),))).step

    assert isinstance(step, DestroyInstance)
    assert (step.instance_id, step.device_ids, step.devices) == (7, frozenset(), ())


def test_a_gpu_split_by_hand_is_left_alone() -> None:
    """Several compute instances are somebody's work."""
    gpu = a100(mode=ON, instances=(instance(7, 0, devices=("MIG-a", "MIG-b")),))

    assert _next(gpu, Target(mode=OFF, surplus=frozenset({7}), may_reset=True)).step is None


def test_a_gpu_that_keeps_what_it_has_is_never_touched() -> None:
    """Neither stumps nor a pending mode."""
    gpu = a100(mode=ON, pending=OFF, instances=(instance(7, 0, devices=()),))

    assert _next(gpu, Target(keeps=True)) == Next()


@pytest.mark.parametrize("may_reset", [True, False])
def test_the_mode_of_an_idle_gpu_is_asked_for_and_then_the_reset_made(*, may_reset: bool) -> None:
    """The reset only if it is allowed."""
    target = Target(mode=ON, may_reset=may_reset)
    ids = frozenset({"GPU-0"})

    assert _next(a100(), target).step == SetMode(uuid="GPU-0", mode=ON, device_ids=ids)
    assert _next(a100(pending=ON), target).step == (
        ResetGpu(uuid="GPU-0", mode=ON, device_ids=ids) if may_reset else None
    )


@pytest.mark.parametrize("gpu", [a100(), a100(pending=ON)])
def test_neither_mode_nor_reset_while_anything_uses_the_gpu(gpu: DriverGpu) -> None:
    """A pod, or a process that belongs to none."""
    target = Target(mode=ON, may_reset=True)

    assert _next(gpu, target, {"GPU-0": BUSY}).step is None
    found = _next(gpu, target, processes={("GPU-0", None): ("process 4711",)})
    assert found == Next(waits="process 4711")


def test_the_mode_is_not_changed_while_an_instance_stands() -> None:
    """One that is held keeps the whole GPU as it is."""
    target = Target(mode=OFF, surplus=frozenset({7, 8}), may_reset=True)

    assert _next(TWO, target, {"MIG-7": BUSY, "MIG-8": BUSY}).step is None


def test_a_pending_mode_that_is_not_wanted_is_taken_back() -> None:
    """Otherwise the next reset would change it, whoever makes it."""
    assert _next(a100(pending=ON), Target(mode=OFF)).step == SetMode(uuid="GPU-0", mode=OFF)


def test_a_board_without_mig_has_no_steps() -> None:
    """Whatever is wanted."""
    assert _next(a100(mode=MigMode.UNSUPPORTED), Target(mode=OFF)) == Next()


def test_instances_are_created_in_the_order_of_the_plan() -> None:
    """At the placement that the planner chose."""
    target = Target(mode=ON, create=(_create("3g.20gb", 4, 4), _create("1g.5gb", 2)))

    assert _next(TWO, target).step == CreateInstance(
        uuid="GPU-0", profile="3g.20gb", profile_id=9, placement=Placement(start=4, size=4)
    )


def test_what_has_no_room_yet_lets_the_next_one_pass() -> None:
    """The first waits for the place at 0, the second does not need it."""
    target = Target(
        mode=ON,
        surplus=frozenset({7}),
        create=(_create("3g.20gb", 0, 4), _create("2g.10gb", 4, 2)),
    )
    step = _next(TWO, target, {"MIG-7": BUSY}).step

    assert isinstance(step, CreateInstance)
    assert step.profile == "2g.10gb"


def test_nothing_is_created_before_mig_is_on() -> None:
    """The mode comes first."""
    step = _next(a100(), Target(mode=ON, create=(_create("1g.5gb", 0),))).step

    assert isinstance(step, SetMode)


PLACE = Placement(start=0, size=1)
MADE = CreateInstance(uuid="GPU-0", profile="1g.5gb", profile_id=19, placement=PLACE)
DESTROYED = DestroyInstance(
    uuid="GPU-0", instance_id=7, profile="1g.5gb", placement=PLACE, devices=("MIG-7",)
)


@pytest.mark.parametrize(
    ("instruction", "change", "gpu", "broken"),
    [
        (MADE, None, TWO, None),
        (MADE, None, a100(mode=ON), "the driver said done, but it does not stand there"),
        (
            MADE,
            None,
            a100(mode=ON, instances=(instance(7, 0, devices=()),)),
            "the driver said done, but it does not stand there",
        ),
        (DESTROYED, None, a100(mode=ON), None),
        (DESTROYED, None, TWO, "the driver said done, but it still stands"),
        (
            DESTROYED,
            None,
            a100(mode=ON, instances=(instance(7, 3, devices=("MIG-new",)),)),
            None,
        ),
        (SetMode(uuid="GPU-0", mode=ON), ModeChange.DONE, a100(mode=ON), None),
        (
            SetMode(uuid="GPU-0", mode=ON),
            ModeChange.DONE,
            a100(),
            "the driver said done, but MIG is off",
        ),
        (SetMode(uuid="GPU-0", mode=ON), ModeChange.RESET_REQUIRED, a100(pending=ON), None),
        (
            SetMode(uuid="GPU-0", mode=ON),
            ModeChange.IN_USE,
            a100(pending=ON),
            "the driver says that somebody uses the GPU",
        ),
        (ResetGpu(uuid="GPU-0", mode=ON), None, a100(mode=ON), None),
        (ResetGpu(uuid="GPU-0", mode=ON), None, a100(), "after the reset MIG is off"),
        (Announce(), None, a100(), None),
    ],
)
def test_what_a_step_should_have_done_is_read_back(
    instruction: Instruction, change: ModeChange | None, gpu: DriverGpu, broken: str | None
) -> None:
    """The driver's word is not enough."""
    assert broken_promise(Outcome(instruction=instruction, change=change), gpu) == broken


def test_an_unknown_model_is_not_cut() -> None:
    """The catalogue does not know its profiles."""
    gpu = replace(a100(mode=ON), product="Unheard-of", pci_device="0x000010DE")

    assert _next(gpu, Target(mode=ON, create=(_create("1g.5gb", 0),))) == Next()
