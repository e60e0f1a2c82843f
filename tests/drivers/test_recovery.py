"""What a GPU needs before it is well again, and what ends the need."""

from collections.abc import Callable

import pytest
from tests.drivers.driver_under_test import DriverUnderTest, only, refused

from partita.ports.gpu_driver import DriverFailure, Recovery

Start = Callable[[str], DriverUnderTest]


def test_a_gpu_that_is_well_needs_nothing(start: Start) -> None:
    """A driver that tells recovery says of a well GPU that it needs nothing."""
    node = start("A100-SXM4-40GB:2")
    assert [gpu.recovery for gpu in node.driver.gpus()] == [Recovery.NONE, Recovery.NONE]


@pytest.mark.parametrize("need", [Recovery.RESET, Recovery.DRAIN])
def test_a_reset_ends_the_need_of_that_gpu_alone(start: Start, need: Recovery) -> None:
    """The need is of one GPU, is there until its reset, and the GPU can be read meanwhile."""
    node = start("A100-SXM4-40GB:2")
    first, second = (gpu.uuid for gpu in node.driver.gpus())
    node.need(first, need)
    node.need(second, need)
    assert [(gpu.recovery, gpu.failure) for gpu in node.driver.gpus()] == [(need, None)] * 2
    node.driver.reset(first)
    assert [gpu.recovery for gpu in node.driver.gpus()] == [Recovery.NONE, need]


def test_a_reset_does_not_end_the_need_of_a_reboot(node: DriverUnderTest) -> None:
    """What needs a reboot of the node is not well after a reset of the GPU."""
    uuid = only(node.driver).uuid
    node.need(uuid, Recovery.REBOOT)
    node.driver.reset(uuid)
    assert only(node.driver).recovery is Recovery.REBOOT


def test_a_refused_reset_leaves_the_need(node: DriverUnderTest) -> None:
    """With a process on it a GPU cannot be reset, and still needs it."""
    uuid = only(node.driver).uuid
    node.need(uuid, Recovery.DRAIN)
    process = node.add_process(uuid)
    assert refused(lambda: node.driver.reset(uuid)) is DriverFailure.IN_USE
    assert only(node.driver).recovery is Recovery.DRAIN
    node.end_process(process)
    node.driver.reset(uuid)
    assert only(node.driver).recovery is Recovery.NONE


def test_what_a_lost_gpu_needs_is_unknown(node: DriverUnderTest) -> None:
    """Nobody can ask a lost GPU what it needs."""
    node.lose(only(node.driver).uuid)
    assert only(node.driver).recovery is None


def test_minor_numbers_name_device_nodes(start: Start) -> None:
    """Every GPU has a device node of its own."""
    assert [gpu.minor for gpu in start("A100-SXM4-40GB:3").driver.gpus()] == [0, 1, 2]
