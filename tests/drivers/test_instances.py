"""What stands after instances were created and destroyed, and what is refused."""

from collections.abc import Callable

import pytest
from tests.drivers.driver_under_test import (
    DriverUnderTest,
    create,
    only,
    partitioned,
    refused,
)

from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import DriverFailure

Start = Callable[[str], DriverUnderTest]

SMALLEST, SMALLEST_MEDIA, TWO_SLICES, THREE_SLICES, FOUR_SLICES, WHOLE = 19, 20, 14, 9, 5, 0


# ---- Creation -----------------------------------------------------------------------------------


def test_what_creation_returns_is_what_then_stands(node: DriverUnderTest) -> None:
    """The answer of a creation is the instance as it is listed afterwards, with one MIG device."""
    uuid = partitioned(node.driver)
    created = create(node.driver, uuid, THREE_SLICES, "4:4")
    assert only(node.driver).instances == (created,)
    assert created.profile_id == THREE_SLICES
    assert created.placement == Placement(start=4, size=4)
    (device,) = created.mig_devices
    assert (device.uuid[:4], device.index, device.compute_instance_id) == ("MIG-", 0, 0)


def test_instances_are_listed_by_placement(node: DriverUnderTest) -> None:
    """In whatever order instances are created, they are listed from the start of the GPU."""
    uuid = partitioned(node.driver)
    for placement in ("6:1", "0:1", "3:1"):
        create(node.driver, uuid, SMALLEST, placement)
    assert [i.placement.start for i in only(node.driver).instances] == [0, 3, 6]


def test_every_mig_device_has_a_uuid_of_its_own(node: DriverUnderTest) -> None:
    """MIG UUIDs differ, also from that of an earlier instance at the same place."""
    uuid = partitioned(node.driver)
    first = create(node.driver, uuid, SMALLEST, "0:1")
    second = create(node.driver, uuid, SMALLEST, "1:1")
    node.driver.destroy_instance(uuid, first.instance_id)
    again = create(node.driver, uuid, SMALLEST, "0:1")
    devices = (*first.mig_devices, *second.mig_devices, *again.mig_devices)
    assert len({device.uuid for device in devices}) == 3


def test_mig_devices_are_numbered_across_the_gpu(node: DriverUnderTest) -> None:
    """The index of a MIG device is unique on its GPU; that of one that is gone can come again."""
    uuid = partitioned(node.driver)
    left = create(node.driver, uuid, SMALLEST, "0:1")
    create(node.driver, uuid, SMALLEST, "1:1")
    node.driver.destroy_instance(uuid, left.instance_id)
    create(node.driver, uuid, SMALLEST, "2:1")
    standing = only(node.driver).instances
    assert [d.index for instance in standing for d in instance.mig_devices] == [1, 0]
    assert {d.compute_instance_id for i in standing for d in i.mig_devices} == {0}


def test_ids_tell_sizes_apart_but_are_no_starts(node: DriverUnderTest) -> None:
    """An instance id is a code of size and place: 0 the whole, eighths from 7 to 14."""
    uuid = partitioned(node.driver)
    whole = create(node.driver, uuid, WHOLE, "0:8")
    node.driver.destroy_instance(uuid, whole.instance_id)
    eighths = {create(node.driver, uuid, SMALLEST, f"{start}:1").instance_id for start in range(7)}
    assert whole.instance_id == 0
    assert len(eighths) == 7
    assert eighths <= set(range(7, 15))


@pytest.mark.parametrize(
    ("board", "placements"),
    [("A30", {14: "3:1", 5: "0:2"}), ("RTX PRO 6000 Blackwell Server Edition", {14: "9:3"})],
)
def test_other_boards_have_their_own_axis(
    start: Start, board: str, placements: dict[int, str]
) -> None:
    """An A30 has four units of memory, an RTX PRO 6000 twelve."""
    driver = start(board).driver
    uuid = partitioned(driver)
    created = [create(driver, uuid, profile, place) for profile, place in placements.items()]
    assert {i.profile_id: str(i.placement) for i in created} == placements


# ---- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile_id", "placement"),
    [
        pytest.param(SMALLEST, "7:1", id="the eighth unit has no compute"),
        pytest.param(THREE_SLICES, "2:4", id="no such start"),
        pytest.param(THREE_SLICES, "4:3", id="no such size"),
        pytest.param(SMALLEST, "8:1", id="beyond the end"),
        pytest.param(77, "0:1", id="no such profile"),
    ],
)
def test_what_can_never_stand_is_an_invalid_argument(
    node: DriverUnderTest, profile_id: int, placement: str
) -> None:
    """A placement that the profile does not have on an empty GPU is no matter of room."""
    uuid = partitioned(node.driver)
    failure = refused(lambda: create(node.driver, uuid, profile_id, placement))
    assert failure is DriverFailure.INVALID_ARGUMENT
    assert only(node.driver).instances == ()


@pytest.mark.parametrize(
    ("standing", "profile_id", "placement"),
    [
        pytest.param((THREE_SLICES, "4:4"), SMALLEST, "4:1", id="inside"),
        pytest.param((SMALLEST, "1:1"), FOUR_SLICES, "0:4", id="around"),
        pytest.param((SMALLEST, "1:1"), SMALLEST, "1:1", id="the same"),
        pytest.param((SMALLEST_MEDIA, "0:1"), SMALLEST_MEDIA, "1:1", id="second +me"),
        pytest.param((SMALLEST, "6:1"), WHOLE, "0:8", id="whole"),
    ],
)
def test_what_has_no_room_now_is_insufficient_resources(
    node: DriverUnderTest, standing: tuple[int, str], profile_id: int, placement: str
) -> None:
    """Where something is in the way, or has the engines, nothing changes."""
    uuid = partitioned(node.driver)
    there = create(node.driver, uuid, *standing)
    failure = refused(lambda: create(node.driver, uuid, profile_id, placement))
    assert failure is DriverFailure.INSUFFICIENT_RESOURCES
    assert only(node.driver).instances == (there,)


def test_all_media_engines_leave_none_to_others(start: Start) -> None:
    """Beside ``+me.all`` only instances without media engines fit."""
    driver = start("RTX PRO 6000 Blackwell Server Edition").driver
    uuid = partitioned(driver)
    create(driver, uuid, 65, "0:3")
    assert refused(lambda: create(driver, uuid, 14, "3:3")) is DriverFailure.INSUFFICIENT_RESOURCES
    assert refused(lambda: create(driver, uuid, 67, "3:3")) is None


def test_without_mig_mode_there_are_no_instances(node: DriverUnderTest) -> None:
    """With MIG off neither creation nor destruction is supported."""
    uuid = only(node.driver).uuid
    failures = {
        refused(lambda: create(node.driver, uuid, SMALLEST, "0:1")),
        refused(lambda: node.driver.destroy_instance(uuid, 7)),
    }
    assert failures == {DriverFailure.NOT_SUPPORTED}


def test_a_client_of_the_whole_gpu_keeps_the_first_instance_from_being_created(
    node: DriverUnderTest,
) -> None:
    """A profiler on the GPU makes creation fail with IN_USE until it is gone."""
    uuid = partitioned(node.driver)
    profiler = node.add_process(uuid)
    failure = refused(lambda: create(node.driver, uuid, SMALLEST, "0:1"))
    assert failure is DriverFailure.IN_USE
    node.end_process(profiler)
    assert refused(lambda: create(node.driver, uuid, SMALLEST, "0:1")) is None


# ---- Destruction --------------------------------------------------------------------------------


def test_destruction_makes_room(node: DriverUnderTest) -> None:
    """Where an instance was destroyed another can stand; the others are as they were."""
    uuid = partitioned(node.driver)
    three = create(node.driver, uuid, THREE_SLICES, "4:4")
    four = create(node.driver, uuid, FOUR_SLICES, "0:4")
    node.driver.destroy_instance(uuid, four.instance_id)
    two = create(node.driver, uuid, TWO_SLICES, "2:2")
    assert only(node.driver).instances == (two, three)


def test_a_used_instance_stays(node: DriverUnderTest) -> None:
    """An instance with a process on it cannot be destroyed, one beside it can."""
    uuid = partitioned(node.driver)
    used, free = (create(node.driver, uuid, SMALLEST, place) for place in ("0:1", "1:1"))
    process = node.add_process(uuid, used.instance_id)
    failure = refused(lambda: node.driver.destroy_instance(uuid, used.instance_id))
    assert failure is DriverFailure.IN_USE
    node.driver.destroy_instance(uuid, free.instance_id)
    assert only(node.driver).instances == (used,)
    node.end_process(process)
    node.driver.destroy_instance(uuid, used.instance_id)
    assert only(node.driver).instances == ()


def test_what_is_not_there_cannot_be_destroyed(node: DriverUnderTest) -> None:
    """An unknown instance id is not found, also that of an instance that is gone."""
    uuid = partitioned(node.driver)
    instance = create(node.driver, uuid, SMALLEST, "0:1")
    node.driver.destroy_instance(uuid, instance.instance_id)
    failure = refused(lambda: node.driver.destroy_instance(uuid, instance.instance_id))
    assert failure is DriverFailure.NOT_FOUND


# ---- Processes, several GPUs --------------------------------------------------------------------


def test_processes_name_their_instance(node: DriverUnderTest) -> None:
    """A process on an instance is listed with its id, one outside of MIG without."""
    uuid = only(node.driver).uuid
    outside = node.add_process(uuid)
    assert [(p.process_id, p.instance_id) for p in node.driver.processes(uuid)] == [(outside, None)]
    node.end_process(outside)
    assert partitioned(node.driver) == uuid
    instances = [create(node.driver, uuid, SMALLEST, place) for place in ("0:1", "6:1")]
    inside = {node.add_process(uuid, i.instance_id): i.instance_id for i in instances}
    assert {p.process_id: p.instance_id for p in node.driver.processes(uuid)} == inside


def test_gpus_are_independent(start: Start) -> None:
    """What is done to one GPU of a node changes no other; UUIDs and indices are unique."""
    driver = start("H100 80GB HBM3:3").driver
    first, second, third = driver.gpus()
    driver.set_mig_mode(second.uuid, MigMode.ON)
    create(driver, second.uuid, SMALLEST, "0:1")
    assert [gpu.index for gpu in driver.gpus()] == [0, 1, 2]
    assert len({gpu.uuid for gpu in driver.gpus()}) == 3
    assert (driver.gpus()[0], driver.gpus()[2]) == (first, third)


def test_no_gpu_of_that_uuid(node: DriverUnderTest) -> None:
    """Whatever is asked of a GPU that the node does not have, it is not found."""
    driver, uuid = node.driver, "GPU-00000000-0000-0000-0000-000000000000"
    failures = {
        refused(lambda: driver.processes(uuid)),
        refused(lambda: driver.set_mig_mode(uuid, MigMode.ON)),
        refused(lambda: driver.reset(uuid)),
        refused(lambda: create(driver, uuid, SMALLEST, "0:1")),
        refused(lambda: driver.destroy_instance(uuid, 1)),
    }
    assert failures == {DriverFailure.NOT_FOUND}
