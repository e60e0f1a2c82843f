"""Whatever is created and destroyed, in whatever order: what stands is legal, and stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drivers.driver_under_test import only, partitioned, refused
from tests.drivers.implementations import IMPLEMENTATIONS

from partita.catalog import legality, library
from partita.catalog.gpu_model import MigCapability
from partita.catalog.legality import Slot
from partita.model.placement import Placement
from partita.ports.gpu_driver import DriverFailure, DriverInstance, GpuDriver

BOARDS = ["a30", "a100-40gb-sxm4", "h100-nvl-94gb", "b200", "rtx-pro-6000-se"]


def _mig(board: str) -> MigCapability:
    found = library.get(board).mig
    assert found is not None
    return found


def _slots(mig: MigCapability, instances: tuple[DriverInstance, ...]) -> list[Slot]:
    names = {profile.profile_id: profile.name for profile in mig.profiles}
    return [Slot(placement=i.placement, profile=names[i.profile_id]) for i in instances]


@st.composite
def _requests(draw: st.DrawFn, mig: MigCapability) -> tuple[int, Placement]:
    """Mostly what can stand on an empty board, sometimes anything."""
    profile = draw(st.sampled_from(mig.profiles))
    assert profile.profile_id is not None
    legal = st.sampled_from(profile.placements)
    anything = st.builds(
        Placement, start=st.integers(0, mig.memory_slices), size=st.integers(1, mig.memory_slices)
    )
    return profile.profile_id, draw(st.one_of(legal, legal, legal, anything))


def _create(
    driver: GpuDriver, mig: MigCapability, uuid: str, request: tuple[int, Placement]
) -> None:
    """Create what is requested, and compare with what the catalogue says of it."""
    before = only(driver).instances
    profile_id, placement = request
    slot = Slot(
        placement=placement,
        profile=next(p.name for p in mig.profiles if p.profile_id == profile_id),
    )
    failure = refused(lambda: driver.create_instance(uuid, profile_id, placement))
    after = only(driver).instances
    if not legality.is_legal(mig, [slot]):
        assert (failure, after) == (DriverFailure.INVALID_ARGUMENT, before)
    elif not legality.is_legal(mig, [*_slots(mig, before), slot]):
        assert (failure, after) == (DriverFailure.INSUFFICIENT_RESOURCES, before)
    else:
        assert failure is None
        assert [i for i in after if i not in before] == [
            i for i in after if i.placement == placement
        ]
        assert set(before) < set(after)
        assert len(after) == len(before) + 1


def _destroy(driver: GpuDriver, uuid: str, instance_id: int) -> None:
    before = only(driver).instances
    failure = refused(lambda: driver.destroy_instance(uuid, instance_id))
    there = any(instance.instance_id == instance_id for instance in before)
    assert failure is (None if there else DriverFailure.NOT_FOUND)
    left = tuple(instance for instance in before if instance.instance_id != instance_id)
    assert only(driver).instances == left


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@given(data=st.data())
@settings(deadline=None)  # a node may be a process that has to start
def test_what_stands_is_legal_and_stays(
    implementation: str, board: str, data: st.DataObject
) -> None:
    """Creation and destruction concern one instance, and only legal sets ever stand."""
    mig = _mig(board)
    requests = st.one_of(_requests(mig), _requests(mig), st.integers(0, 14))
    with IMPLEMENTATIONS[implementation](board) as node:
        uuid = partitioned(node.driver)
        for request in data.draw(st.lists(requests, max_size=25)):
            if isinstance(request, int):
                _destroy(node.driver, uuid, request)
            else:
                _create(node.driver, mig, uuid, request)
            standing = only(node.driver).instances
            assert legality.is_legal(mig, _slots(mig, standing))
            assert len({instance.instance_id for instance in standing}) == len(standing)
