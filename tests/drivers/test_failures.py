"""What a lost GPU and a failing driver leave usable, and what is reported of them."""

from collections.abc import Callable

import pytest
from tests.drivers.driver_under_test import DriverUnderTest, create, only, partitioned, refused

from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, ModeChange

Start = Callable[[str], DriverUnderTest]


def test_one_lost_gpu_of_eight_leaves_seven(start: Start) -> None:
    """A lost GPU is listed with its failure and its identity; the others can be read and used."""
    node = start("A100-SXM4-40GB:8")
    before = node.driver.gpus()
    lost = before[3]
    node.lose(lost.uuid)
    after = node.driver.gpus()
    assert [gpu.failure for gpu in after].count(DriverFailure.GPU_IS_LOST) == 1
    assert (after[3].uuid, after[3].index, after[3].product) == (lost.uuid, 3, lost.product)
    assert [*after[:3], *after[4:]] == [*before[:3], *before[4:]]
    for gpu in (*after[:3], *after[4:]):
        assert node.driver.set_mig_mode(gpu.uuid, MigMode.ON) is ModeChange.RESET_REQUIRED


def test_a_lost_gpu_refuses_everything(node: DriverUnderTest) -> None:
    """Every call about a lost GPU says that it is lost."""
    driver, uuid = node.driver, partitioned(node.driver)
    instance = create(driver, uuid, 19, "0:1")
    node.lose(uuid)
    failures = {
        refused(lambda: driver.processes(uuid)),
        refused(lambda: driver.set_mig_mode(uuid, MigMode.OFF)),
        refused(lambda: driver.reset(uuid)),
        refused(lambda: create(driver, uuid, 19, "1:1")),
        refused(lambda: driver.destroy_instance(uuid, instance.instance_id)),
    }
    assert failures == {DriverFailure.GPU_IS_LOST}


def test_a_gpu_that_is_back_is_as_it_was(node: DriverUnderTest) -> None:
    """When the cause is gone a GPU can be read again, with what stood on it."""
    uuid = partitioned(node.driver)
    create(node.driver, uuid, 9, "4:4")
    before = node.driver.gpus()
    node.lose(uuid)
    assert [gpu.instances for gpu in node.driver.gpus()] == [()]
    node.recover(uuid)
    assert node.driver.gpus() == before


@pytest.mark.parametrize(
    "failure",
    [
        DriverFailure.NO_PERMISSION,
        DriverFailure.IN_USE,
        DriverFailure.INSUFFICIENT_RESOURCES,
        DriverFailure.UNKNOWN,
    ],
)
def test_a_failed_call_changes_nothing(node: DriverUnderTest, failure: DriverFailure) -> None:
    """A creation or destruction that fails leaves what stood; the next call succeeds."""
    driver, uuid = node.driver, partitioned(node.driver)
    first = create(driver, uuid, 19, "0:1")
    node.inject(uuid, "create_instance", failure)
    assert refused(lambda: create(driver, uuid, 19, "1:1")) is failure
    node.inject(uuid, "destroy_instance", failure)
    assert refused(lambda: driver.destroy_instance(uuid, first.instance_id)) is failure
    assert only(driver).instances == (first,)
    second = create(driver, uuid, 19, "1:1")
    driver.destroy_instance(uuid, first.instance_id)
    assert only(driver).instances == (second,)


def test_a_failed_mode_change_is_not_pending(node: DriverUnderTest) -> None:
    """Without the right to change it the mode stays, and nothing waits."""
    uuid = only(node.driver).uuid
    node.inject(uuid, "set_mig_mode", DriverFailure.NO_PERMISSION)
    failure = refused(lambda: node.driver.set_mig_mode(uuid, MigMode.ON))
    assert failure is DriverFailure.NO_PERMISSION
    assert only(node.driver).pending_mig_mode is MigMode.OFF


def test_a_gpu_that_cannot_be_read_once_is_still_listed(start: Start) -> None:
    """A failed read of one GPU is that GPU's failure, until it can be read."""
    node = start("H100 80GB HBM3:2")
    before = node.driver.gpus()
    node.inject(before[0].uuid, "gpus", DriverFailure.UNKNOWN)
    assert [gpu.failure for gpu in node.driver.gpus()] == [DriverFailure.UNKNOWN, None]
    assert node.driver.gpus() == before


# ---- Events -------------------------------------------------------------------------------------


def test_events_name_their_gpu(start: Start) -> None:
    """An XID is reported once, with the GPU that it concerns."""
    node = start("A100-SXM4-40GB:2")
    _, second = node.driver.gpus()
    node.emit(second.uuid, 79)
    (event,) = node.driver.wait_for_events(1)
    assert (event.uuid, event.xid) == (second.uuid, 79)
    assert node.driver.wait_for_events(0) == ()


def test_no_event_is_lost(start: Start) -> None:
    """Events that came before anybody asked are all reported, in order."""
    node = start("A100-SXM4-40GB:2")
    first, second = (gpu.uuid for gpu in node.driver.gpus())
    emitted = [(first, 48), (second, 63), (first, 94)]
    for uuid, xid in emitted:
        node.emit(uuid, xid)
    reported = []
    while events := node.driver.wait_for_events(0):
        reported += [(event.uuid, event.xid) for event in events]
    assert reported == emitted


def test_a_lost_gpu_does_not_end_the_watch(start: Start) -> None:
    """With one GPU lost, the events of the others still come."""
    node = start("A100-SXM4-40GB:2")
    first, second = (gpu.uuid for gpu in node.driver.gpus())
    node.lose(first)
    node.emit(second, 94)
    assert [event.uuid for event in node.driver.wait_for_events(1)] == [second]
