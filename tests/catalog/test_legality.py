"""Which instances can stand together: counted, argued, and compared with what drivers did."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import pytest

from partita.catalog import legality, library
from partita.catalog.gpu_model import MigCapability, Profile
from partita.catalog.legality import Slot
from partita.model.placement import Placement

_DOUBLE_MEMORY = 15  # profile id of the 1g with two memory units on seven-slice boards


class _Sequence(TypedDict):
    model: str
    seen_in: str
    requested: list[int]
    placements: list[str | None]


def _mig(name: str) -> MigCapability:
    found = library.get(name).mig
    assert found is not None
    return found


def _slots(mig: MigCapability, text: str) -> list[Slot]:
    """``3g.20gb@4 1g.5gb@0`` as slots; sizes are the profiles' own."""
    slots = []
    for part in text.split():
        profile, start = part.split("@")
        size = mig.by_name[profile].memory_slices
        slots.append(Slot(placement=Placement(start=int(start), size=size), profile=profile))
    return slots


def _candidates(profiles: Iterable[Profile]) -> list[Slot]:
    return [
        Slot(placement=placement, profile=profile.name)
        for profile in profiles
        for placement in profile.placements
    ]


def _maximal_layouts(mig: MigCapability, candidates: list[Slot]) -> set[frozenset[Slot]]:
    """Every legal set of candidates to which no further candidate can be added."""
    seen = {frozenset[Slot]()}
    waiting = list(seen)
    maximal = set()
    while waiting:
        layout = waiting.pop()
        larger = {
            layout | {slot}
            for slot in candidates
            if slot not in layout and legality.is_legal(mig, [*layout, slot])
        }
        if not larger:
            maximal.add(layout)
        waiting += larger - seen
        seen |= larger
    return maximal


@pytest.mark.parametrize(
    ("board", "double_memory", "positions", "multisets"),
    [
        ("a100-40gb-sxm4", False, 19, 14),
        ("a100-40gb-sxm4", True, 78, 38),
        ("h100-80gb-sxm5", False, 19, 14),
        ("b200", True, 78, 38),
        ("a30", True, 5, 4),
        ("rtx-pro-6000-se", True, 5, 4),
    ],
)
def test_number_of_maximal_layouts(
    board: str, positions: int, multisets: int, *, double_memory: bool
) -> None:
    """Plain profiles fill a GPU in as many ways as the field counts, engines notwithstanding."""
    mig = _mig(board)
    plain = [
        profile
        for profile in mig.profiles
        if not set("+-") & set(profile.name)
        and (double_memory or profile.profile_id != _DOUBLE_MEMORY)
    ]
    layouts = _maximal_layouts(mig, _candidates(plain))
    by_count = {frozenset(Counter(slot.profile for slot in layout).items()) for layout in layouts}
    assert (len(layouts), len(by_count)) == (positions, multisets)


@pytest.mark.parametrize(
    ("board", "layout"),
    [
        ("a100-40gb-sxm4", ""),
        ("a100-40gb-sxm4", "7g.40gb@0"),
        ("a100-40gb-sxm4", "4g.20gb@0 3g.20gb@4"),
        ("a100-40gb-sxm4", "3g.20gb@0 3g.20gb@4"),
        ("a100-40gb-sxm4", "3g.20gb@4 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3"),
        ("a100-40gb-sxm4", "2g.10gb@0 2g.10gb@2 2g.10gb@4 1g.5gb+me@6"),
        ("a100-40gb-sxm4", "1g.5gb@0 1g.5gb@1 2g.10gb@2 1g.5gb@4 1g.5gb@5 1g.10gb@6"),
        ("h100-80gb-sxm5", "1g.10gb+me@6 3g.40gb@0 2g.20gb@4"),
        ("a30", "2g.12gb+me@0 2g.12gb@2"),
        ("rtx-pro-6000-se", "1g.24gb+me.all@0 1g.24gb-me@3 2g.48gb-me@6"),
        ("rtx-pro-6000-se", "1g.24gb+me@0 1g.24gb@3 1g.24gb+gfx@6 1g.24gb-me@9"),
        ("rtx-pro-6000-se", "2g.48gb+gfx@0 2g.48gb@6"),
    ],
)
def test_legal_layouts(board: str, layout: str) -> None:
    """These stand together on one GPU."""
    mig = _mig(board)
    assert legality.objection(mig, _slots(mig, layout)) is None


@pytest.mark.parametrize(
    ("board", "layout", "reason"),
    [
        ("a100-40gb-sxm4", "4g.20gb@4", "4g.20gb cannot start at 4, only at 0"),
        ("a100-40gb-sxm4", "2g.10gb@6", "2g.10gb cannot start at 6, only at 0, 2, 4"),
        ("a100-40gb-sxm4", "1g.5gb@7", "1g.5gb cannot start at 7, only at 0, 1, 2, 3, 4, 5, 6"),
        ("a100-40gb-sxm4", "2g.10gb@1", "2g.10gb cannot start at 1, only at 0, 2, 4"),
        ("a100-40gb-sxm4", "4g.20gb@0 3g.20gb@0", "3g.20gb at 0:4 and 4g.20gb at 0:4 overlap"),
        ("a100-40gb-sxm4", "7g.40gb@0 1g.5gb@6", "7g.40gb at 0:8 and 1g.5gb at 6:1 overlap"),
        ("a100-40gb-sxm4", "1g.5gb+me@0 1g.5gb+me@1", "2 x 1g.5gb+me, at most 1 on one GPU"),
        ("h100-80gb-sxm5", "1g.10gb+me@0 1g.10gb+me@1", "2 x 1g.10gb+me, at most 1 on one GPU"),
        ("a30", "1g.6gb+me@0 2g.12gb+me@2", "2 jpeg engines wanted, the GPU has 1"),
        ("rtx-pro-6000-se", "1g.24gb@1", "1g.24gb cannot start at 1, only at 0, 3, 6, 9"),
        ("rtx-pro-6000-se", "2g.48gb@3", "2g.48gb cannot start at 3, only at 0, 6"),
        (
            "rtx-pro-6000-se",
            "1g.24gb+me.all@0 1g.24gb@3",
            "5 decoder engines wanted, the GPU has 4",
        ),
        (
            "rtx-pro-6000-se",
            "1g.24gb+me.all@0 2g.48gb+gfx@6",
            "6 decoder engines wanted, the GPU has 4",
        ),
        (
            "rtx-pro-6000-se",
            "1g.24gb+me.all@0 2g.48gb+me.all@6",
            "8 decoder engines wanted, the GPU has 4",
        ),
    ],
)
def test_illegal_layouts(board: str, layout: str, reason: str) -> None:
    """These cannot stand together, and the reason is said."""
    mig = _mig(board)
    assert legality.objection(mig, _slots(mig, layout)) == reason


def test_unknown_profile() -> None:
    """A profile of another board is no profile here."""
    slot = Slot(placement=Placement(start=0, size=4), profile="3g.40gb")
    assert legality.objection(_mig("a100-40gb-sxm4"), [slot]) == "there is no profile 3g.40gb"


def test_nothing_stands_beside_two_halves() -> None:
    """Two 3g fill seven-slice boards: the compute slice left over has no memory unit."""
    mig = _mig("a100-40gb-sxm4")
    halves = _slots(mig, "3g.20gb@0 3g.20gb@4")
    beside = [s for s in _candidates(mig.profiles) if legality.is_legal(mig, [*halves, s])]
    assert beside == []


def test_beside_all_media_engines() -> None:
    """Beside ``+me.all`` only profiles without media engines fit."""
    mig = _mig("rtx-pro-6000-se")
    held = _slots(mig, "1g.24gb+me.all@0")
    beside = {s.profile for s in _candidates(mig.profiles) if legality.is_legal(mig, [*held, s])}
    assert beside == {"1g.24gb-me", "2g.48gb-me"}


@pytest.mark.parametrize("model", [m.id for m in library.models() if m.mig is not None])
def test_full_profile_stands_alone(model: str) -> None:
    """The full profile of every board is legal alone and leaves room for nothing."""
    mig = _mig(model)
    full = Slot(placement=mig.full_profile.placements[0], profile=mig.full_profile.name)
    assert legality.is_legal(mig, [full])
    assert [s for s in _candidates(mig.profiles) if legality.is_legal(mig, [full, s])] == []


@pytest.mark.parametrize("model", [m.id for m in library.models() if m.mig is not None])
def test_limits_can_be_reached(model: str) -> None:
    """As many instances of a profile as its limit says do fit on every board."""
    mig = _mig(model)
    for profile in mig.profiles:
        slots = _candidates([profile])[: profile.max_instances]
        assert legality.objection(mig, slots) is None, profile.name


_SEQUENCES: list[_Sequence] = json.loads(
    (Path(__file__).parent / "creation_sequences.json").read_text(encoding="utf-8")
)


def _sequence_name(case: _Sequence) -> str:
    return f"{case['model']} -cgi {','.join(map(str, case['requested']))}"


@pytest.mark.parametrize("case", _SEQUENCES, ids=_sequence_name)
def test_published_creation_sequences(case: _Sequence) -> None:
    """What drivers created is legal at every step; what they refused had no legal placement."""
    mig = _mig(case["model"])
    by_id = {profile.profile_id: profile for profile in mig.profiles}
    created: list[Slot] = []
    for profile_id, text in zip(case["requested"], case["placements"], strict=True):
        profile = by_id[profile_id]
        free = [s for s in _candidates([profile]) if legality.is_legal(mig, [*created, s])]
        chosen = [slot for slot in free if str(slot.placement) == text]
        assert len(chosen) == (0 if text is None else 1)
        assert (free == []) == (text is None)
        created += chosen
