"""The layout search against trying every arrangement."""

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from partita.catalog import legality, library
from partita.catalog.gpu_model import MigCapability
from partita.catalog.legality import Slot
from partita.config import mig_layouts

BOARDS = ["a30", "a100-40gb-sxm4", "h200-141gb-sxm5", "rtx-pro-6000-se", "rtx-pro-4500"]


def _mig(board: str) -> MigCapability:
    mig = library.get(board).mig
    assert mig is not None
    return mig


def _fits_by_trying(mig: MigCapability, counts: dict[str, int]) -> bool:
    names = [name for name, count in counts.items() for _ in range(count)]
    choices = [mig.by_name[name].placements for name in names]
    return any(
        legality.is_legal(
            mig, [Slot(placement=p, profile=n) for p, n in zip(ps, names, strict=True)]
        )
        for ps in itertools.product(*choices)
    )


@given(st.data())
def test_search_agrees_with_trying_all_arrangements(data: st.DataObject) -> None:
    """A layout fits exactly when some arrangement of its instances is legal."""
    mig = _mig(data.draw(st.sampled_from(BOARDS)))
    names = st.sampled_from([profile.name for profile in mig.profiles])
    counts = dict(Counter(data.draw(st.lists(names, min_size=1, max_size=5))))
    assert mig_layouts.fits(mig, counts) is _fits_by_trying(mig, counts)


@given(st.data())
def test_neighbours_are_legal(data: st.DataObject) -> None:
    """What is offered instead of an impossible layout can stand."""
    mig = _mig(data.draw(st.sampled_from(BOARDS)))
    names = st.sampled_from([profile.name for profile in mig.profiles])
    counts = Counter(data.draw(st.lists(names, min_size=1, max_size=9)))
    for layout in mig_layouts.nearest_layouts(mig, counts):
        assert mig_layouts.fits(mig, layout)


def test_counterparts_keep_the_share_of_the_board() -> None:
    """An eighth stays an eighth, and a wide slice stays wide."""
    board = library.get("a100-80gb-pcie")
    assert mig_layouts.counterpart("1g.5gb", board) == "1g.10gb"
    assert mig_layouts.counterpart("2g.10gb", board) == "2g.20gb"
    assert mig_layouts.counterpart("1g.24gb+me", board) is not None
    assert mig_layouts.counterpart("3g.24gb", board) is None


def test_boards_needed_are_bounded_by_instances_and_slices() -> None:
    """56 small slices need eight boards although seven would have the memory."""
    mig = _mig("a100-40gb-sxm4")
    assert mig_layouts.minimum_boards(mig, {"1g.5gb": 56}) == 8
    assert mig_layouts.minimum_boards(mig, {"1g.5gb": 7, "7g.40gb": 1}) == 2
