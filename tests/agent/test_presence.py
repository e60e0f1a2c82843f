"""How a device is offered: what is held stays, what is free goes in steps, then the rest comes."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, SHARED_GPU, SMALL, device

from partita.agent.presence import Device, Presence, Seen, present
from partita.agent.serving_rules import Family

WHOLE = Family(resource=GPU, replicas=1)
UUID = "GPU-0"


def _slots(*numbers: int, resource: str = GPU) -> dict[str, str]:
    return {f"{UUID}::{number}": resource for number in numbers}


def _four(*, renamed: bool = False) -> Family:
    return Family(resource=SHARED_GPU if renamed else GPU, replicas=4)


def _usable(presence: Presence) -> list[str]:
    return [one.slice.device_id for one in presence.slices if one.usable and not one.leaving]


def _leaving(presence: Presence) -> list[str]:
    return [one.slice.device_id for one in presence.slices if one.leaving]


def _unusable(presence: Presence) -> list[str]:
    return [one.slice.device_id for one in presence.slices if not one.usable]


def _settled(ids: Mapping[str, str], held: Mapping[str, str] | None = None) -> Seen:
    """Return what is seen where all that is offered is usable and listed, for long."""
    return Seen(held=held or {}, allocatable=ids, offered=ids, usable=frozenset(ids), rested=True)


def test_a_whole_gpu_is_offered_under_its_uuid() -> None:
    """Its budget is all of its memory."""
    (one,) = present(device(WHOLE, memory_mib=40_960), Seen()).slices

    assert (one.slice.device_id, one.slice.resource, one.slice.slot) == (UUID, GPU, None)
    assert one.slice.budget_mib == 40_960


def test_shared_slots_are_numbered_from_zero_and_share_the_memory() -> None:
    """Four slots of 10 GiB; unknown memory stays unknown."""
    slots = present(device(_four(), memory_mib=40_960), Seen()).slices

    assert [(one.slice.slot, one.slice.budget_mib) for one in slots] == [
        (number, 10_240) for number in range(4)
    ]
    assert present(device(_four()), Seen()).slices[0].slice.budget_mib is None


def test_more_slots_are_offered_at_once() -> None:
    """Two become four, whether held or not: nothing that is there changes."""
    before = _slots(0, 1)
    presence = present(device(_four()), _settled(before, held=before))

    assert _usable(presence) == [f"{UUID}::{number}" for number in range(4)]
    assert presence.released


def test_held_slots_are_kept_before_the_lowest_numbers() -> None:
    """Eight become four while 1 and 6 are held: they stay, with the two lowest free ones."""
    presence = present(device(_four()), _settled(_slots(*range(8)), held=_slots(1, 6)))

    assert sorted(_usable(presence)) == sorted(_slots(0, 1, 2, 6))
    assert sorted(_unusable(presence)) == sorted(_slots(3, 4, 5, 7))
    assert not presence.quiet


def test_held_slots_beyond_the_number_wanted_leave_when_they_are_free() -> None:
    """Eight held become four: all stay usable for their pods, four are leaving."""
    before = _slots(*range(8))
    presence = present(device(_four()), _settled(before, held=before))

    assert sorted(_usable(presence)) == sorted(_slots(0, 1, 2, 3))
    assert sorted(_leaving(presence)) == sorted(_slots(4, 5, 6, 7))
    assert _unusable(presence) == []


def test_a_slot_too_many_is_withdrawn_before_it_is_left_out() -> None:
    """Unusable while the kubelet may give it away, then for a moment more, then gone."""
    listed = Seen(
        allocatable=_slots(4), offered=_slots(*range(5)), usable=frozenset(_slots(*range(4)))
    )
    resting = Seen(offered=_slots(*range(5)), usable=frozenset(_slots(*range(4))))
    rested = Seen(offered=_slots(*range(5)), usable=frozenset(_slots(*range(4))), rested=True)

    assert _unusable(present(device(_four()), listed)) == [f"{UUID}::4"]
    assert not present(device(_four()), listed).quiet
    assert _unusable(present(device(_four()), resting)) == [f"{UUID}::4"]
    assert present(device(_four()), resting).quiet
    assert _unusable(present(device(_four()), rested)) == []


def test_a_slot_that_the_kubelet_may_be_about_to_give_away_is_not_left_out() -> None:
    """It was offered as usable a moment ago and the kubelet has not shown that it knows it yet."""
    offered = _slots(*range(8))
    seen = Seen(offered=offered, usable=frozenset(offered), rested=True)

    presence = present(device(Family(resource=GPU, replicas=2)), seen)

    assert sorted(_unusable(presence)) == sorted(_slots(*range(2, 8)))
    assert not presence.quiet


def test_a_new_name_waits_until_nothing_of_the_old_one_is_left() -> None:
    """While a pod holds one slot under the old name, that slot alone is offered as usable."""
    before = _slots(*range(4))
    presence = present(device(_four(renamed=True)), _settled(before, held=_slots(2)))

    assert {one.slice.resource for one in presence.slices} == {GPU}
    assert _leaving(presence) == [f"{UUID}::2"]
    assert sorted(_unusable(presence)) == sorted(_slots(0, 1, 3))
    assert not presence.released
    assert presence.foreign == set(before)


def test_a_new_name_comes_when_the_old_one_has_rested() -> None:
    """Free and out of the kubelet's hands is not enough: it has to be so for a moment."""
    before = _slots(*range(4))
    resting = present(device(_four(renamed=True)), Seen(offered=before))
    rested = present(device(_four(renamed=True)), Seen(offered=before, rested=True))

    assert (resting.released, resting.quiet) == (False, True)
    assert sorted(_unusable(resting)) == sorted(before)
    assert rested.released
    assert [one.slice.resource for one in rested.slices] == [SHARED_GPU] * 4


def test_a_device_that_is_not_served_is_released_after_a_rest_alone() -> None:
    """It may be destroyed then: nobody can have seen it as usable."""
    assert not present(device(None), Seen()).released
    assert present(device(None), Seen(rested=True)) == Presence()


def test_a_whole_gpu_that_becomes_shared_waits_for_its_holder() -> None:
    """The whole GPU and slots of it are never offered together."""
    whole = {UUID: GPU}
    presence = present(device(_four()), _settled(whole, held=whole))

    assert [(one.slice.device_id, one.usable) for one in presence.slices] == [(UUID, True)]
    assert _leaving(presence) == [UUID]


def test_a_mig_device_named_by_another_strategy_keeps_its_name_while_it_is_held() -> None:
    """From *single* to *mixed* it changes from ``nvidia.com/gpu`` to its profile."""
    mig = device(Family(resource=SMALL, replicas=1), uuid="MIG-7")
    presence = present(mig, _settled({"MIG-7": GPU}, held={"MIG-7": GPU}))

    assert [(one.slice.resource, one.usable, one.leaving) for one in presence.slices] == [
        (GPU, True, True)
    ]


def test_a_promise_whose_name_is_forgotten_counts_for_the_present_name() -> None:
    """A promise does not say under which name it was made."""
    presence = present(device(_four()), Seen(held=_slots(2, resource="")))

    assert _usable(presence)[0] == f"{UUID}::2"
    assert {one.slice.resource for one in presence.slices} == {GPU}


FAMILIES = st.one_of(
    st.none(),
    st.just(WHOLE),
    st.builds(Family, resource=st.sampled_from([GPU, SHARED_GPU]), replicas=st.integers(2, 6)),
)
IDS = st.sampled_from([UUID, *_slots(*range(8))])


def _sight(
    renamed: set[str],
    held: set[str],
    allocatable: set[str],
    offered: set[str],
    unusable: set[str],
    rested: bool,  # noqa: FBT001 - as drawn
) -> Seen:
    """Return anything that may be seen of a device; an ID has one name at a time."""

    def named(ids: set[str]) -> dict[str, str]:
        return {one: SHARED_GPU if one in renamed else GPU for one in sorted(ids)}

    return Seen(
        held=named(held),
        allocatable=named(allocatable),
        offered=named(offered),
        usable=frozenset(offered - unusable),
        rested=rested,
    )


SETS = st.sets(IDS, max_size=6)
SIGHTS = st.builds(_sight, SETS, SETS, SETS, SETS, SETS, st.booleans())


def _is_family(family: Family | None, device_id: str, resource: str) -> bool:
    shaped = family is not None and ("::" in device_id) is (family.replicas > 1)
    return shaped and family is not None and resource == family.resource


@pytest.mark.parametrize("memory", [None, 40_960])
@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_a_held_id_is_never_left_out_nor_made_unusable(
    memory: int | None, family: Family | None, seen: Seen
) -> None:
    """Its pod must live through a restart of the kubelet, under the name it was given."""
    slices = present(device(family, memory_mib=memory), seen).slices
    usable = {one.slice.device_id: one.slice.resource for one in slices if one.usable}

    assert seen.held.items() <= usable.items()


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_what_the_kubelet_may_give_away_is_never_left_out(
    family: Family | None, seen: Seen
) -> None:
    """A kubelet crashes when a device leaves its list while it gives it away."""
    listed = {one.slice.device_id for one in present(device(family), seen).slices}

    assert {*seen.held, *seen.allocatable, *seen.usable} <= listed


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_nothing_new_of_the_family_is_offered_beside_a_foreign_id(
    family: Family | None, seen: Seen
) -> None:
    """Otherwise more would be given away than there is."""
    presence = present(device(family), seen)
    offered = {one.slice.device_id: one.slice.resource for one in presence.slices if one.usable}
    foreign = {one for one, name in offered.items() if not _is_family(family, one, name)}

    if foreign or not presence.released:
        assert set(offered) == set(seen.held)


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_as_many_slots_are_usable_as_are_wanted_or_held(family: Family | None, seen: Seen) -> None:
    """Once the family is there; the held ones first, then the lowest numbers."""
    presence = present(device(family), seen)
    if family is None or not presence.released:
        return
    usable = [one.slice.device_id for one in presence.slices if one.usable]
    free = [one.slice.slot or 0 for one in presence.slices if one.usable]

    assert len(usable) == len(set(usable)) == max(family.replicas, len(seen.held))
    assert len(_leaving(presence)) == max(0, len(seen.held) - family.replicas)
    assert set(usable[: len(seen.held)]) == set(seen.held)
    assert free[len(seen.held) :] == sorted(free[len(seen.held) :])


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_no_id_is_offered_twice(family: Family | None, seen: Seen) -> None:
    """Device IDs of an offer are unique."""
    listed = [one.slice.device_id for one in present(device(family), seen).slices]

    assert len(listed) == len(set(listed))


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_nothing_is_released_that_a_pod_has_or_may_get(family: Family | None, seen: Seen) -> None:
    """Released means that the device may be destroyed or served under another name."""
    presence = present(device(family), seen)
    loose = {*seen.held, *seen.allocatable, *seen.usable}

    if presence.released:
        assert not presence.foreign & loose
    if family is None and presence.released:
        assert not loose
        assert presence.slices == ()


@settings(deadline=None)
@given(family=FAMILIES, seen=SIGHTS)
def test_what_is_left_alone_comes_to_rest(family: Family | None, seen: Seen) -> None:
    """Without holders, and with a kubelet that reads, the family is all that is left."""
    one: Device = device(family)
    ids: dict[str, str] = dict(seen.offered)
    for _ in range(4):
        presence = present(one, Seen(offered=ids, rested=True))
        ids = {each.slice.device_id: each.slice.resource for each in presence.slices}

    assert presence.released
    assert len(presence.slices) == (family.replicas if family is not None else 0)
    assert all(each.usable and not each.leaving for each in presence.slices)
