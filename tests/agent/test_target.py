"""What each GPU is to become, and why not all of it can be had."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, SMALL, a100, instance
from tests.agent.world import NOTHING, mig, shared, wants, whole

from partita.agent.holders import Holders
from partita.agent.target import Target, model_of, profile_of, targets
from partita.config.partition_policy import GpuSelector, PartitionPolicy, Strategy
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, DriverGpu, DriverInstance

ON, OFF = MigMode.ON, MigMode.OFF
SEVEN = tuple(instance(number + 7, number) for number in range(7))
NOBODY = Holders()


def _held(*ids: str) -> Holders:
    return Holders(ids={one: {one: (SMALL, (f"lab/{one.lower()}",))} for one in ids})


def _target(gpu: DriverGpu, *policies: PartitionPolicy, holders: Holders = NOBODY) -> Target:
    return targets([gpu], wants(*policies), holders)[gpu.uuid]


def _created(target: Target) -> Counter[str | None]:
    return Counter(one.profile for one in target.create)


def test_the_pci_id_tells_the_model_where_the_name_does_not() -> None:
    """An unknown board has none, and its instances no profile."""
    gpu = replace(a100(), product="NVIDIA Graphics Device")
    model = model_of(gpu)

    assert model is not None
    assert model.id == "a100-40gb-sxm4"
    assert profile_of(gpu, SEVEN[0]) == "1g.5gb"
    assert profile_of(gpu, replace(SEVEN[0], profile_id=99)) is None
    assert model_of(replace(gpu, pci_device="0x000010DE")) is None


def test_without_policies_every_gpu_keeps_what_it_has() -> None:
    """A device-plugin config cuts nothing, nor does no document."""
    assert targets([a100(), a100(1)], NOTHING, NOBODY) == {
        "GPU-0": Target(keeps=True),
        "GPU-1": Target(keeps=True),
    }


def test_a_gpu_that_cannot_be_read_has_no_target() -> None:
    """The others have."""
    lost = replace(a100(), failure=DriverFailure.GPU_IS_LOST, mig_mode=MigMode.UNSUPPORTED)

    assert set(targets([lost, a100(1)], wants(whole()), NOBODY)) == {"GPU-1"}


def test_a_layout_is_created_the_biggest_first() -> None:
    """At explicit placements."""
    target = _target(a100(mode=ON), mig({"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}))

    assert [one.profile for one in target.create] == ["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]
    assert (target.mode, target.surplus, target.unmet) == (ON, frozenset(), None)


def test_what_stands_as_wanted_needs_nothing() -> None:
    """Whoever made it."""
    target = _target(a100(mode=ON, instances=SEVEN), mig({"1g.5gb": 7}))

    assert (target.surplus, target.create, target.unmet) == (frozenset(), (), None)


def test_what_is_held_and_wanted_stays_in_its_place() -> None:
    """The rest is built around it."""
    target = _target(
        a100(mode=ON, instances=SEVEN), mig({"3g.20gb": 1, "1g.5gb": 1}), holders=_held("MIG-8")
    )

    assert target.surplus == {instance.instance_id for instance in SEVEN} - {8}
    assert [(one.profile, one.placement.start) for one in target.create] == [("3g.20gb", 4)]


def test_what_is_held_and_not_wanted_is_surplus_and_the_rest_says_who() -> None:
    """It goes as soon as it is free."""
    gpu = a100(mode=ON, instances=(instance(7, 0), instance(11, 4)))
    target = _target(gpu, mig({"3g.20gb": 2}), holders=_held("MIG-7", "MIG-11"))

    assert target.surplus == {7, 11}
    assert target.unmet == (
        "2 x 3g.20gb must wait: 1g.5gb at 0:1 is held by lab/mig-7;"
        " 1g.5gb at 4:1 is held by lab/mig-11"
    )


def test_a_process_holds_an_instance_as_a_pod_does() -> None:
    """Without any pod."""
    gpu = a100(mode=ON, instances=(instance(7, 0),))
    using = Holders(processes={("GPU-0", 7): ("process 4711",)})
    target = _target(gpu, mig({"7g.40gb": 1}), holders=using)

    assert target.unmet == "1 x 7g.40gb must wait: 1g.5gb at 0:1 is held by process 4711"


def test_a_layout_waits_for_a_pod_that_holds_the_whole_gpu() -> None:
    """It says who."""
    using = Holders(ids={"GPU-0": {"GPU-0": (GPU, ("lab/train",))}})
    target = _target(a100(), mig({"1g.5gb": 7}), holders=using)

    assert target.unmet == "7 x 1g.5gb must wait: lab/train"


def test_a_gpu_that_is_to_be_whole_says_who_is_on_it() -> None:
    """All instances are surplus."""
    target = _target(a100(mode=ON, instances=SEVEN), whole(), holders=_held("MIG-9"))

    assert (target.mode, len(target.surplus)) == (OFF, 7)
    assert target.unmet == "to be whole it must be empty: 1g.5gb at 2:1 is held by lab/mig-9"


@pytest.mark.parametrize(
    ("gpu", "policy", "said"),
    [
        (a100(), mig({"1g.5gb": 7}, may_reset=False), "to switch MIG on"),
        (
            a100(mode=ON),
            PartitionPolicy(name="cut", strategy=Strategy.WHOLE),
            "to switch MIG off",
        ),
    ],
)
def test_a_reset_that_is_not_allowed_is_said_with_the_policy(
    gpu: DriverGpu, policy: PartitionPolicy, said: str
) -> None:
    """Boards of the Ampere generation change their mode by a reset."""
    target = _target(gpu, policy)

    assert target.keeps
    assert target.unmet == (
        f"{said} this GPU must be reset, which policy cut does not allow"
        " (spec.mig.allowReset; for a mig-parted config --allow-reset)"
    )


def test_two_policies_are_one_too_many() -> None:
    """The GPU keeps what it has and says which two."""
    target = _target(a100(), shared(4), mig({"1g.5gb": 7}))

    assert target.keeps
    assert target.unmet is not None
    assert "share" in target.unmet
    assert "cut" in target.unmet


def test_a_gpu_that_no_policy_selects_keeps_what_it_has() -> None:
    """And says so."""
    policy = replace(mig({"1g.5gb": 7}), gpu_selector=GpuSelector(indices=(1,)))
    found = targets([a100(), a100(1)], wants(policy), NOBODY)

    assert found["GPU-0"].keeps
    assert found["GPU-0"].policies == ()
    assert found["GPU-0"].unmet
    assert _created(found["GPU-1"]) == {"1g.5gb": 7}


def test_a_board_that_lacks_a_profile_says_so() -> None:
    """A layout of another board is not half carried out."""
    target = _target(a100(mode=ON), mig({"1g.10gb": 1, "1g.18gb": 2}))

    assert target.create == ()
    assert target.unmet


def test_a_policy_that_follows_demand_is_for_the_controller() -> None:
    """The agent does not see pending pods."""
    target = _target(a100(), PartitionPolicy(name="grow", strategy=Strategy.MIG))

    assert target.keeps
    assert target.unmet == "policy grow follows demand, which only the controller sees"


def test_sharing_whole_gpus_wants_them_uncut_and_sharing_slices_does_not() -> None:
    """The cut is somebody else's then."""
    cut = a100(mode=ON, instances=SEVEN)

    assert _target(cut, shared(4)).mode is OFF
    assert _target(cut, shared(4, resource=SMALL)).keeps


def test_a_board_without_mig_is_whole_already() -> None:
    """Nothing is to be done and nothing is missing."""
    t4 = replace(a100(mode=MigMode.UNSUPPORTED), product="Tesla T4", pci_device="0x1EB810DE")

    assert _target(t4, whole()) == Target(policies=(whole(),))


def test_a_board_that_the_catalogue_lacks_can_be_shared_and_nothing_is_missing() -> None:
    """Sharing needs no catalogue."""
    unknown = replace(a100(mode=MigMode.UNSUPPORTED), product="Unheard-of", pci_device="0x000010DE")

    assert _target(unknown, shared(4)).unmet is None


def test_a_gpu_split_by_hand_is_held_by_whoever_split_it() -> None:
    """What is wanted instead has to wait for them."""
    gpu = a100(mode=ON, instances=(instance(7, 0, devices=("MIG-a", "MIG-b")),))
    target = _target(gpu, mig({"7g.40gb": 1}))

    assert target.unmet == (
        "1 x 7g.40gb must wait: 1g.5gb at 0:1 is held by split into 2 compute instances by hand"
    )


LAYOUTS: list[dict[str, int] | None] = [
    None,
    {"1g.5gb": 7},
    {"3g.20gb": 2},
    {"3g.20gb": 1, "1g.5gb": 3},
    {"7g.40gb": 1},
    {},
]
STANDING = st.sets(st.integers(0, 6)).map(
    lambda starts: tuple(instance(start + 7, start) for start in sorted(starts))
)


@settings(deadline=None)
@given(layout=st.sampled_from(LAYOUTS), standing=STANDING, held=st.sets(st.integers(7, 13)))
def test_every_instance_is_kept_or_surplus_and_what_is_missing_is_created_or_explained(
    layout: dict[str, int] | None, standing: tuple[DriverInstance, ...], held: set[int]
) -> None:
    """And nothing is created that the layout does not have."""
    gpu = a100(mode=ON, instances=standing)
    target = _target(
        gpu,
        mig(layout) if layout is not None else whole(),
        holders=_held(*(f"MIG-{number}" for number in held)),
    )
    kept = Counter(
        profile_of(gpu, one) for one in standing if one.instance_id not in target.surplus
    )
    wanted = Counter(layout or {})
    built = kept + _created(target)

    assert built <= wanted
    assert built == wanted or target.unmet
