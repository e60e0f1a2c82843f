"""A plan as people read it."""

import itertools
from collections.abc import Callable

import pytest
from tests.views import example_plans

from partita.planner.plan import Plan
from partita.views import plan_text
from partita.views.axis_map import ASCII
from partita.views.style import PLAIN, Style, Tone

_WIDTHS = (80, 160)
Make = Callable[[], Plan]


def _text(plan: Plan, *, width: int = 80, every: bool = False) -> str:
    return plan_text.text(plan, width=width, style=PLAIN, every=every)


def _words(plan: Plan, **options: bool) -> str:
    return " ".join(_text(plan, width=160, **options).split())


@pytest.mark.parametrize("width", _WIDTHS)
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("make", example_plans.ALL)
def test_text_fits_the_width(make: Make, width: int, *, every: bool) -> None:
    """No line is wider than the terminal, none ends in blanks, no two lines in a row are empty."""
    lines = _text(make(), width=width, every=every).splitlines()
    assert [line for line in lines if len(line) > width or line != line.rstrip()] == []
    assert not any(not a and not b for a, b in itertools.pairwise(lines))


@pytest.mark.parametrize("make", example_plans.ALL)
def test_colour_adds_nothing_but_codes(make: Make) -> None:
    """Without its escape codes, coloured text is the plain text."""
    plain = plan_text.text(make(), width=80, style=PLAIN)
    coloured = plan_text.text(make(), width=80, style=Style(colour=True))
    for tone in Tone:
        coloured = coloured.replace(f"\x1b[{tone.value}m", "")
    assert coloured.replace("\x1b[0m", "") == plain


@pytest.mark.parametrize("make", example_plans.ALL)
def test_ascii_is_ascii(make: Make) -> None:
    """With the plain frame nothing but ASCII is written."""
    assert plan_text.text(make(), width=80, style=PLAIN, frame=ASCII).isascii()


@pytest.mark.parametrize(
    ("make", "headline"),
    [
        (example_plans.fragmented, "1 of 2 pending pods fit, 1 does not"),
        (example_plans.resets, "All 4 pending pods fit"),
        (example_plans.shared, "The pending pod fits"),
        (example_plans.thousand, "248 of 288 pending pods fit, 40 do not"),
        (example_plans.twelve_units, "No pod is pending, policies ask for these steps"),
        (lambda: example_plans.plan([]), "No pod is pending"),
    ],
)
def test_the_answer_comes_first(make: Make, headline: str) -> None:
    """The first line says how many pods fit."""
    assert _text(make()).splitlines()[0] == headline


def test_a_refusal_names_the_nearest_change() -> None:
    """Who does not fit is told why, and what would help, nearest first."""
    text = _words(example_plans.fragmented())
    assert "1 x nvidia.com/mig-3g.40gb why every place for nvidia.com/mig-3g.40gb is held" in text
    nearest, other = text.index("nearest ask for"), text.index("or end ml/notebook-a")
    assert nearest < other < text.index("Steps: 2")


def test_steps_have_exact_placements_and_pods() -> None:
    """Steps stand in order, with placement, instance id and the pod that waits for it."""
    lines = [line.strip() for line in _text(example_plans.fragmented()).splitlines()]
    first = lines.index("1. - destroy 1g.10gb at 5:1 (instance 12)")
    assert lines[first - 1] == "gpu-a1/3"
    assert lines[first + 1] == "2. + create 3g.40gb at 4:4, for ml/train-0"


def test_holders_are_named() -> None:
    """The map of a single GPU says who holds what."""
    text = _words(example_plans.fragmented())
    assert "held 0:1 1g.10gb by ml/notebook-a 1:1 1g.10gb by ml/notebook-b" in text


def test_resets_are_said() -> None:
    """Mode changes and the resets they take are in the summary, the steps and at the GPU."""
    text = _words(example_plans.resets())
    assert "MIG mode switched on: gpu-b1/0; switched off: gpu-b2/1" in text
    assert "Resets 2 GPUs, nothing may run there meanwhile: gpu-b1/0, gpu-b2/1" in text
    assert "1. ~ switch MIG on, which takes a reset of this GPU" in text
    assert "reset needed for the mode change" in text


def test_what_is_not_proven_is_not_claimed() -> None:
    """Only a proven plan is called so."""
    assert "Optimal proven" in _words(example_plans.fragmented())
    assert "Optimal not proven" in _words(example_plans.resets())


def test_unusable_capacity_is_summed() -> None:
    """The summary says what the layouts waste, with memory."""
    assert "1 of 8 memory slices (10.0 GiB), 0 of 7" in _words(example_plans.resets())


def test_unknown_memory_is_not_zero() -> None:
    """What is lost on a board of unknown memory is not 0 GiB."""
    lost = example_plans.waste(1, 8, 0, 7, None)
    board = example_plans.gpu(example_plans.H100, "a", 0)
    one = example_plans.GpuPlan(gpu=board, mig_mode=board.mig_mode, unusable=lost)
    assert "1 of 8 memory slices (unknown memory)" in _words(example_plans.plan([one]))


def test_unknown_placement_is_said() -> None:
    """An instance of unknown placement is named beside the map, with where it may be."""
    text = _words(example_plans.unknown_placements())
    wanted = "placement unknown 1g.10gb, possibly held by ml/x, ml/y, at one of 0:1, 1:1, 2:1, 3:1"
    assert wanted in text
    assert "What is not known - node gpu-c1: no file shows where instances stand" in text
    assert "gpu-c1/? stands already, on one of the GPUs" in text


def test_unseen_instances_are_unsure() -> None:
    """A GPU in MIG mode whose instances are not in the input is not drawn as empty."""
    possible = example_plans.Hold.POSSIBLE
    board = example_plans.gpu(example_plans.H100, "a", 0, hold=possible)
    one = example_plans.GpuPlan(gpu=board, mig_mode=board.mig_mode)
    text = _words(example_plans.plan([one]))
    assert "? unsure" in text
    assert ". empty │" not in text


def test_shared_gpus_are_described() -> None:
    """GPUs without MIG are described in words; why one must not be touched is said."""
    text = _words(example_plans.shared())
    assert "stands whole GPU, free planned 4 shared slots of 11.2 GiB each" in text
    assert "stands whole GPU, held by ml/serving" in text
    assert "not re-cut it is not in the catalogue" in text


def test_a_large_fleet_is_short() -> None:
    """1,000 GPUs take about a page: like GPUs share a map, those that stay are counted."""
    text = _text(example_plans.thousand())
    assert len(text.splitlines()) < 80
    assert "240 GPUs: gpu-[001-030]/[0-7]" in text
    assert "752 other GPUs on 94 nodes stay as they are" in text
    assert "ml/sweep-[0-39] (40 pods): 1 x nvidia.com/mig-7g.80gb" in text
    assert "and 223 more slices, shown with --all" in text


def test_all_shows_all() -> None:
    """``every`` shows each GPU and pod by itself."""
    text = _text(example_plans.thousand(), every=True)
    assert text.count("  planned  ") == 248
    assert text.count("  stands  ") == 1000
    assert "held     0:4 3g.40gb by ml/serving-999" in text
    assert "stay as they are" not in text
    assert len([line for line in text.splitlines() if line.startswith("  ml/train-")]) == 248


def test_blocking_gpus_are_shown() -> None:
    """Of a large fleet, a GPU whose holders keep a pod out is shown though it does not change."""
    plan = example_plans.thousand()
    change = example_plans.fragmented().unfit[0].changes[1]
    blocker = example_plans.Blocker(
        node="gpu-125", index=7, placement=None, instances=(), holders=("ml/serving-999",)
    )
    ends = example_plans.Change(kind=change.kind, text="end ml/serving-999", blocker=blocker)
    refused = example_plans.Unfit(
        pod=plan.unfit[0].pod, reason=plan.unfit[0].reason, detail="held", changes=(ends,)
    )
    text = _text(example_plans.plan(plan.gpus, plan.steps, unfit=[refused]))
    assert "  gpu-125/7  NVIDIA H100 80GB HBM3, GPU-000003e7, stays as it is" in text
    assert "751 other GPUs on 94 nodes stay as they are" in text
