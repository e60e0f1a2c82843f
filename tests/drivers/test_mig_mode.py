"""When a GPU takes a MIG mode, when it has to wait for it, and what a reset does."""

from collections.abc import Callable

import pytest
from tests.drivers.driver_under_test import DriverUnderTest, create, only, partitioned, refused

from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, GpuDriver, ModeChange

Start = Callable[[str], DriverUnderTest]


def _modes(driver: GpuDriver) -> tuple[MigMode, MigMode]:
    gpu = only(driver)
    return gpu.mig_mode, gpu.pending_mig_mode


def test_ampere_waits_for_a_reset(start: Start) -> None:
    """On an A100 the mode is pending until the GPU is reset, on the way back as well."""
    driver = start("A100-SXM4-40GB").driver
    uuid = only(driver).uuid
    for before, after in [(MigMode.OFF, MigMode.ON), (MigMode.ON, MigMode.OFF)]:
        assert driver.set_mig_mode(uuid, after) is ModeChange.RESET_REQUIRED
        assert _modes(driver) == (before, after)
        driver.reset(uuid)
        assert _modes(driver) == (after, after)


@pytest.mark.parametrize("board", ["H100 80GB HBM3", "RTX PRO 6000 Blackwell Server Edition"])
def test_hopper_and_later_need_no_reset(start: Start, board: str) -> None:
    """From Hopper on the mode changes at once."""
    driver = start(board).driver
    uuid = only(driver).uuid
    for mode in (MigMode.ON, MigMode.OFF):
        assert driver.set_mig_mode(uuid, mode) is ModeChange.DONE
        assert _modes(driver) == (mode, mode)


@pytest.mark.parametrize("board", ["A100-SXM4-40GB", "H100 80GB HBM3"])
def test_a_used_gpu_keeps_its_mode(start: Start, board: str) -> None:
    """With a process on the GPU the mode stays pending; asked again without, it goes on."""
    node = start(board)
    uuid = only(node.driver).uuid
    process = node.add_process(uuid)
    assert node.driver.set_mig_mode(uuid, MigMode.ON) is ModeChange.IN_USE
    assert _modes(node.driver) == (MigMode.OFF, MigMode.ON)
    node.end_process(process)
    assert partitioned(node.driver) == uuid


@pytest.mark.parametrize("board", ["A100-SXM4-40GB", "H100 80GB HBM3"])
def test_mig_stays_on_while_instances_stand(start: Start, board: str) -> None:
    """MIG cannot be switched off over instances, even unused ones, and they stay."""
    driver = start(board).driver
    uuid = partitioned(driver)
    instance = create(driver, uuid, 19, "0:1")
    assert driver.set_mig_mode(uuid, MigMode.OFF) is ModeChange.IN_USE
    assert only(driver).mig_mode is MigMode.ON
    assert only(driver).instances == (instance,)


def test_the_current_mode_takes_back_what_is_pending(node: DriverUnderTest) -> None:
    """Asked for the mode it has, a GPU has it at once, and a reset changes nothing."""
    uuid = only(node.driver).uuid
    node.driver.set_mig_mode(uuid, MigMode.ON)
    assert node.driver.set_mig_mode(uuid, MigMode.OFF) is ModeChange.DONE
    assert _modes(node.driver) == (MigMode.OFF, MigMode.OFF)


def test_a_board_without_mig_has_no_mode(start: Start) -> None:
    """On an L4 the mode is unsupported and cannot be set; a reset is fine."""
    driver = start("L4").driver
    uuid = only(driver).uuid
    failure = refused(lambda: driver.set_mig_mode(uuid, MigMode.ON))
    assert failure is DriverFailure.NOT_SUPPORTED
    driver.reset(uuid)
    assert _modes(driver) == (MigMode.UNSUPPORTED, MigMode.UNSUPPORTED)


def test_unsupported_is_no_mode_to_ask_for(node: DriverUnderTest) -> None:
    """Nobody can take MIG from a board that has it."""
    uuid = only(node.driver).uuid
    failure = refused(lambda: node.driver.set_mig_mode(uuid, MigMode.UNSUPPORTED))
    assert failure is DriverFailure.INVALID_ARGUMENT
    assert _modes(node.driver) == (MigMode.OFF, MigMode.OFF)


def test_a_reset_loses_instances_and_keeps_the_mode(node: DriverUnderTest) -> None:
    """After a reset MIG is still on, and nothing stands."""
    uuid = partitioned(node.driver)
    create(node.driver, uuid, 9, "4:4")
    node.driver.reset(uuid)
    assert _modes(node.driver) == (MigMode.ON, MigMode.ON)
    assert only(node.driver).instances == ()


def test_a_used_gpu_is_not_reset(node: DriverUnderTest) -> None:
    """A reset under a process is refused, and the instance that it uses stays."""
    uuid = partitioned(node.driver)
    instance = create(node.driver, uuid, 9, "4:4")
    node.add_process(uuid, instance.instance_id)
    assert refused(lambda: node.driver.reset(uuid)) is DriverFailure.IN_USE
    assert only(node.driver).instances == (instance,)
