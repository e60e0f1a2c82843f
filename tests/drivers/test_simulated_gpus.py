"""What only simulated GPUs can be asked: reboots, numberings, seeds, and worlds that cannot be."""

import threading
from collections.abc import Callable

import pytest
from tests.drivers.driver_under_test import create, only, partitioned, refused

from partita.catalog import library
from partita.errors import ImpossibleWorldError, UnknownModelError
from partita.inventory import numbering
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, GpuDriver, HealthEvent, Recovery
from partita.simulator import gpus
from partita.simulator.gpu_driver import SimulatedGpuDriver
from partita.simulator.gpus import SimulatedGpus


def _node(text: str, seed: str = "partita") -> tuple[SimulatedGpus, GpuDriver]:
    world = SimulatedGpus(gpus.parse(text), seed=seed)
    return world, SimulatedGpuDriver(world)


# ---- What stands at first -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A100-SXM4-40GB:8", (("a100-40gb-sxm4", 8),)),
        ("NVIDIA H100 80GB HBM3", (("h100-80gb-sxm5", 1),)),
        ("l4:2, A30", (("l4", 2), ("a30", 1))),
        ("10de:2330", (("h100-80gb-sxm5", 1),)),
        ("10de:2330:4", (("h100-80gb-sxm5", 4),)),
    ],
)
def test_gpus_are_named_as_in_the_catalogue(
    text: str, expected: tuple[tuple[str, int], ...]
) -> None:
    """A name, a PCI id, a count or none, several boards."""
    assert gpus.parse(text) == expected


@pytest.mark.parametrize("text", ["", "A100-SXM4-41GB:8", "A30:x", "A30:-1", "A30,,A30"])
def test_what_names_no_gpu_is_refused(text: str) -> None:
    """A text that is not a list of known GPUs is an unknown model."""
    with pytest.raises(UnknownModelError):
        gpus.parse(text)


def test_boards_are_as_the_catalogue_has_them() -> None:
    """Eight boards, each with its own UUID and PCI address, half on each socket, MIG off."""
    _, driver = _node("A100-SXM4-40GB:8")
    boards = driver.gpus()
    assert {gpu.product for gpu in boards} == {"NVIDIA A100-SXM4-40GB"}
    assert {gpu.pci_device for gpu in boards} == {"0x20B010DE"}
    assert {gpu.memory_bytes for gpu in boards} == {40960 * 1024**2}
    assert {(gpu.mig_mode, gpu.pending_mig_mode) for gpu in boards} == {(MigMode.OFF, MigMode.OFF)}
    assert [gpu.numa_node for gpu in boards] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len({gpu.uuid for gpu in boards}) == len({gpu.pci_bus_id for gpu in boards}) == 8


def test_the_seed_decides_the_uuids() -> None:
    """The same seed gives the same node, another seed another one."""
    first, same, other = (_node("A30:2", seed)[1].gpus() for seed in ("a", "a", "b"))
    assert first == same
    assert not {gpu.uuid for gpu in first} & {gpu.uuid for gpu in other}


def test_both_numberings_exist() -> None:
    """Among equal boards id 1 is the first half on some and the second on others."""
    world, driver = _node("A100-SXM4-40GB:32")
    mig = library.get("A100-SXM4-40GB").mig
    assert mig is not None
    for board in world.boards.values():
        driver.set_mig_mode(board.uuid, MigMode.ON)
        driver.reset(board.uuid)
        for placement in ("4:4", "2:2", "0:1"):
            profile_id = {"4": 9, "2": 14, "1": 19}[placement[-1]]
            made = create(driver, board.uuid, profile_id, placement)
            place = numbering.place(mig, made.instance_id, mirrored=board.mirrored)
            assert place == made.placement
    assert {board.mirrored for board in world.boards.values()} == {False, True}


# ---- What happens to it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("board", "mode"), [("A100-SXM4-40GB", MigMode.ON), ("H100 80GB HBM3", MigMode.OFF)]
)
def test_a_reboot_keeps_the_mode_on_ampere_alone(board: str, mode: MigMode) -> None:
    """Processes, instances and events are gone; an A100 keeps its MIG mode, an H100 not."""
    world, driver = _node(board)
    uuid = partitioned(driver)
    instance = create(driver, uuid, 19, "0:1")
    world.add_process(uuid, 4001, instance_id=instance.instance_id)
    world.emit(HealthEvent(uuid=uuid, xid=94))
    world.reboot()
    gpu = only(driver)
    assert (gpu.mig_mode, gpu.pending_mig_mode, gpu.instances) == (mode, mode, ())
    assert driver.processes(uuid) == ()
    assert driver.wait_for_events(0) == ()


def test_a_reboot_resets() -> None:
    """A mode that waited for a reset is in force after a reboot."""
    world, driver = _node("A100-SXM4-40GB")
    driver.set_mig_mode(only(driver).uuid, MigMode.ON)
    world.reboot()
    assert only(driver).mig_mode is MigMode.ON


@pytest.mark.parametrize("need", [Recovery.RESET, Recovery.DRAIN, Recovery.REBOOT])
def test_a_reboot_ends_every_need(need: Recovery) -> None:
    """After a reboot of the node its GPUs are well."""
    world, driver = _node("A100-SXM4-40GB")
    world.need(only(driver).uuid, need)
    world.reboot()
    assert only(driver).recovery is Recovery.NONE


def test_a_second_driver_sees_what_the_first_did() -> None:
    """The world outlives the program that looked at it."""
    world, driver = _node("A100-SXM4-40GB")
    create(driver, partitioned(driver), 9, "4:4")
    assert SimulatedGpuDriver(world).gpus() == driver.gpus()


def test_a_process_may_use_several_gpus() -> None:
    """It is listed on each, with the memory it uses, and ends on all."""
    world, driver = _node("L4:2")
    uuids = [gpu.uuid for gpu in driver.gpus()]
    for uuid in uuids:
        world.add_process(uuid, 77, used_memory_bytes=1024)
    assert [[p.used_memory_bytes for p in driver.processes(uuid)] for uuid in uuids] == [[1024]] * 2
    world.end_process(77)
    assert [driver.processes(uuid) for uuid in uuids] == [(), ()]


def test_answers_are_whole_and_in_order() -> None:
    """Processes are listed by PID, and events that wait are reported together, the oldest first."""
    world, driver = _node("L4")
    uuid = only(driver).uuid
    for process_id in (9, 5):
        world.add_process(uuid, process_id)
    events = tuple(HealthEvent(uuid=uuid, xid=xid) for xid in (94, 63))
    for event in events:
        world.emit(event)
    assert [process.process_id for process in driver.processes(uuid)] == [5, 9]
    assert driver.wait_for_events(0) == events


def test_the_driver_itself_can_fail() -> None:
    """A failure without a GPU is raised, once for each time it was asked for, in order."""
    world, driver = _node("L4:2")
    failures = [DriverFailure.TIMEOUT, DriverFailure.UNKNOWN]
    for failure in failures:
        world.fail_next(None, "gpus", failure)
    assert [refused(driver.gpus) for _ in range(3)] == [*failures, None]
    world.fail_next(None, "wait_for_events", DriverFailure.UNKNOWN)
    assert refused(lambda: driver.wait_for_events(0)) is DriverFailure.UNKNOWN


def test_an_event_wakes_who_waits() -> None:
    """A driver that waits in another thread returns with the event, not with the timeout."""
    world, driver = _node("L4")
    event = HealthEvent(uuid=only(driver).uuid, xid=79)
    seen: list[HealthEvent] = []
    waiting = threading.Thread(target=lambda: seen.extend(driver.wait_for_events(30)))
    waiting.start()
    world.emit(event)
    waiting.join(timeout=20)
    assert seen == [event]


# ---- Worlds that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("boards", "reason"), [([("a30", 33)], "at most 32"), ([("a30", 0)], "0 boards of a30")]
)
def test_nodes_that_cannot_be(boards: list[tuple[str, int]], reason: str) -> None:
    """No node has no GPU, or more than the driver serves."""
    with pytest.raises(ImpossibleWorldError, match=reason):
        SimulatedGpus(boards)


IMPOSSIBLE: dict[str, Callable[[SimulatedGpus], None]] = {
    "has id: 7": lambda world: world.add_process(_first(world), 1, instance_id=7),
    "already process: 5": lambda world: world.add_process(_first(world), 5),
    "no GPU is used by process: 1": lambda world: world.end_process(1),
    "no GPU: GPU-1": lambda world: world.add_process("GPU-1", 1),
    "no GPU: GPU-2": lambda world: world.lose("GPU-2"),
    "no GPU: GPU-3": lambda world: world.recover("GPU-3"),
    "no GPU: GPU-4": lambda world: world.emit(HealthEvent(uuid="GPU-4", xid=79)),
    "has id: 8": lambda world: world.emit(HealthEvent(uuid=_first(world), xid=94, instance_id=8)),
    "no GPU: GPU-5": lambda world: world.fail_next("GPU-5", "gpus", DriverFailure.UNKNOWN),
    "reset is not asked of the driver": lambda world: world.fail_next(
        None, "reset", DriverFailure.IN_USE
    ),
    "wait_for_events is not asked of one GPU": lambda world: world.fail_next(
        _first(world), "wait_for_events", DriverFailure.UNKNOWN
    ),
}


def _first(world: SimulatedGpus) -> str:
    return next(iter(world.boards))


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_changes_that_cannot_be(reason: str) -> None:
    """What no hardware can do is refused with the reason, and changes nothing."""
    world, driver = _node("A100-SXM4-40GB")
    uuid = _first(world)
    world.add_process(uuid, 5)
    before = driver.gpus(), driver.processes(uuid)
    with pytest.raises(ImpossibleWorldError, match=reason):
        IMPOSSIBLE[reason](world)
    assert (driver.gpus(), driver.processes(uuid)) == before


def test_nothing_starts_on_a_lost_gpu() -> None:
    """A process cannot come to a GPU that nobody can reach."""
    world, driver = _node("L4")
    uuid = only(driver).uuid
    world.lose(uuid)
    with pytest.raises(ImpossibleWorldError, match="lost GPU"):
        world.add_process(uuid, 1)
