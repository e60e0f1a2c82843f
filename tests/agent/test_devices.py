"""Which devices of a GPU are served, under the naming strategies of NVIDIA's plugin."""

from dataclasses import replace

import pytest
from tests.agent.examples import GIB, GPU, SMALL, a100, instance

from partita.agent import devices
from partita.agent.devices import GpuDevices, single_objection
from partita.agent.serving_rules import ServingRule
from partita.agent.target import Target
from partita.config.device_plugin import MigStrategy
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverGpu, DriverInstance

KEEPS = Target(keeps=True)
CUT = a100(mode=MigMode.ON, instances=(instance(7, 0), instance(2, 4, "3g.20gb", size=4)))


def _served(found: GpuDevices) -> dict[str, str]:
    return {one.uuid: one.family.resource for one in found.all() if one.family is not None}


def _naming(strategy: MigStrategy) -> ServingRule:
    return ServingRule(naming=strategy)


def test_a_gpu_that_is_not_cut_is_served_as_a_whole() -> None:
    """With the memory that the driver leaves to programs."""
    gpu = replace(a100(), reserved_memory_bytes=GIB)
    found = devices.of(gpu, KEEPS, ServingRule())

    assert _served(found) == {"GPU-0": GPU}
    assert found.whole.memory_mib == 39 * 1024


def test_unknown_memory_stays_unknown() -> None:
    """No budget is made up."""
    gpu = replace(a100(), memory_bytes=None, reserved_memory_bytes=GIB)

    assert devices.of(gpu, KEEPS, ServingRule()).whole.memory_mib is None


@pytest.mark.parametrize(
    ("strategy", "served"),
    [
        (MigStrategy.MIXED, {"MIG-7": SMALL, "MIG-2": "nvidia.com/mig-3g.20gb"}),
        (MigStrategy.SINGLE, {"MIG-7": GPU, "MIG-2": GPU}),
        (MigStrategy.NONE, {"GPU-0": GPU}),
    ],
)
def test_a_gpu_that_is_cut_is_served_as_the_strategy_says(
    strategy: MigStrategy, served: dict[str, str]
) -> None:
    """*none* takes no notice of MIG: it serves the GPU."""
    assert _served(devices.of(CUT, KEEPS, _naming(strategy))) == served


def test_a_mig_device_says_where_it_is_and_has_the_memory_of_its_profile() -> None:
    """The container gets instance, compute instance, index and the node of its GPU."""
    mig = devices.of(CUT, KEEPS, ServingRule()).mig[7]

    assert mig.uuid == "MIG-7"
    assert (mig.pattern.instance_id, mig.pattern.compute_instance_id) == (7, 0)
    assert (mig.pattern.gpu_uuid, mig.pattern.minor, mig.pattern.numa_node) == ("GPU-0", 0, 0)
    assert mig.memory_mib is not None
    assert 4 * 1024 < mig.memory_mib < 5 * 1024


def test_a_gpu_without_instances_in_mig_mode_serves_nothing() -> None:
    """Programs cannot use it."""
    assert _served(devices.of(a100(mode=MigMode.ON), KEEPS, ServingRule())) == {}


@pytest.mark.parametrize("uuids", [(), ("MIG-a", "MIG-b")])
def test_an_instance_that_is_not_one_mig_device_is_left_alone(uuids: tuple[str, ...]) -> None:
    """None is useless, several were made by hand: their memory is not their own."""
    gpu = a100(mode=MigMode.ON, instances=(instance(7, 0, devices=uuids),))

    found = devices.of(gpu, KEEPS, ServingRule()).mig

    assert all(one.family is None for one in found.values())


def test_what_is_to_go_is_known_but_not_served() -> None:
    """It has no family, so that it is withdrawn."""
    aim = Target(mode=MigMode.ON, surplus=frozenset({7}))
    found = devices.of(CUT, aim, ServingRule(whole=False))

    assert _served(found) == {"MIG-2": "nvidia.com/mig-3g.20gb"}
    assert set(found.mig) == {2, 7}


def test_nothing_is_served_whose_mode_is_about_to_change() -> None:
    """Neither the MIG devices before MIG is off, nor the GPU before it is on."""
    off = Target(mode=MigMode.OFF, surplus=frozenset({2, 7}))

    assert _served(devices.of(CUT, off, ServingRule())) == {}
    assert _served(devices.of(CUT, Target(mode=MigMode.OFF), ServingRule())) == {}
    for rule in (ServingRule(whole=False), ServingRule()):
        assert _served(devices.of(a100(), Target(mode=MigMode.ON), rule)) == {}


def test_an_unknown_profile_is_not_served() -> None:
    """It has no name."""
    odd = replace(instance(7, 0), profile_id=99)

    assert _served(devices.of(a100(mode=MigMode.ON, instances=(odd,)), KEEPS, ServingRule())) == {}


def _cut(index: int, *instances: DriverInstance) -> DriverGpu:
    return a100(index, mode=MigMode.ON, instances=instances)


@pytest.mark.parametrize(
    "gpus",
    [
        [a100(0), a100(1)],
        [_cut(0, instance(7, 0)), _cut(1, instance(7, 0), instance(8, 1))],
        [_cut(0), _cut(1)],
        [],
    ],
)
def test_single_has_a_name_for_gpus_that_are_all_alike(gpus: list[DriverGpu]) -> None:
    """All whole, or all cut into one profile."""
    assert single_objection(gpus) is None


def test_single_has_no_name_on_a_node_that_mixes_cut_and_whole_gpus() -> None:
    """``nvidia.com/gpu`` would be a slice here and a GPU there."""
    assert single_objection([_cut(0, instance(7, 0)), a100(1)]) == (
        "strategy single: MIG is on for some GPUs of the node and off for others"
    )


def test_single_has_no_name_for_different_profiles() -> None:
    """It says which stand."""
    gpus = [_cut(0, instance(7, 0)), _cut(1, instance(2, 4, "3g.20gb", size=4))]

    assert single_objection(gpus) == (
        "strategy single: more than one profile stands: 1g.5gb, 3g.20gb"
    )


def test_mig_devices_without_a_name_are_not_served() -> None:
    """The whole GPUs beside them are."""
    single = _naming(MigStrategy.SINGLE)

    assert _served(devices.of(CUT, KEEPS, single, named=False)) == {}
    assert _served(devices.of(a100(1), KEEPS, single, named=False)) == {"GPU-1": GPU}
