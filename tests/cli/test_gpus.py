"""``partita gpus``: the catalogue on a terminal, in a pipe, and as data."""

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import partita
from partita.catalog import library
from partita.cli import output
from partita.cli.main import main
from partita.views import gpus, style

_WIDTHS = (80, 160)
_ESCAPE = "\x1b["


def _run(*arguments: str, columns: int = 80, program: str = "partita") -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, arguments, prog_name=program)


def _breakable(line: str) -> bool:
    """Whether a line has a blank after its label at which it could have been wrapped."""
    return len(line.split()) > 2


@pytest.mark.parametrize("columns", _WIDTHS)
def test_list_fits_the_width(columns: int) -> None:
    """No line of the list is wider than the terminal, none ends in blanks, every board is there."""
    result = _run("gpus", columns=columns)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [line for line in lines if len(line) > columns or line != line.rstrip()] == []
    first_words = {line.split()[0] for line in lines if line}
    assert {model.id for model in library.models()} <= first_words


@pytest.mark.parametrize("columns", _WIDTHS)
@pytest.mark.parametrize("model", [model.id for model in library.models()])
def test_board_fits_the_width(model: str, columns: int) -> None:
    """No line of a board is wider than the terminal, except a single word that cannot be broken."""
    lines = _run("gpus", model, columns=columns).stdout.splitlines()
    assert [line for line in lines if len(line) > columns and _breakable(line)] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_list_on_a_narrow_terminal() -> None:
    """Where it is too narrow, the profiles give way, with an ellipsis; the rest stays whole."""
    lines = _run("gpus", "h100", columns=62).stdout.splitlines()
    board = next(line for line in lines if "h100-80gb-sxm5" in line)
    assert board.split()[:5] == ["h100-80gb-sxm5", "81559", "132", "8", "idle"]
    assert board.endswith("…")
    assert len(board) <= 62


def test_wide_list_names_every_profile() -> None:
    """On a wide terminal the list shows product names and all profiles."""
    lines = _run("gpus", columns=160).stdout.splitlines()
    board = next(line for line in lines if "a100-80gb-sxm4" in line)
    assert "A100-SXM4-80GB" in board
    assert board.endswith("1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb +me")


@pytest.mark.parametrize("columns", _WIDTHS)
def test_resource_names_are_whole(columns: int) -> None:
    """The names that pods ask for are shown in full at every width."""
    text = _run("gpus", "rtx-pro-6000-se", columns=columns).stdout
    mig = library.get("rtx-pro-6000-se").mig
    assert mig is not None
    words = set(text.split())
    assert {"nvidia.com/mig-1g.24gb.me.all", "nvidia.com/mig-1g.24gb-me"} <= words
    assert len([word for word in words if word.startswith("nvidia.com/mig-")]) == len(mig.profiles)


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("a100-80gb-sxm4", ["a reset of it", "the mode stays on", "{0,2,4}:2", "8 units"]),
        ("h100-80gb-sxm5", ["no reset", "the mode is off again", "{0,4}:4"]),
        ("a30", ["{0,1,2,3}:1", "R470", "R525", "4 units"]),
        ("rtx-pro-6000-ws", [">= 98.02.55.00.00", "Display mode", "{0,3,6,9}:3", "12 units"]),
        ("rtx-pro-5000-48gb", ["2? units", "{0,1}:1?", "unknown", "nominal"]),
        ("gb10", ["Memory unknown"]),
        ("l40s", ["no MIG", "none, this board cannot be cut", "time-slicing", "MPS"]),
        ("p100", ["no MIG", "needs Volta or later"]),
    ],
)
def test_what_a_board_tells(model: str, facts: list[str]) -> None:
    """The page of a board answers what one needs to know before it is cut."""
    text = " ".join(_run("gpus", model, columns=160).stdout.split())
    assert [fact for fact in facts if fact not in text] == []


@pytest.mark.parametrize("model", [model.id for model in library.models()])
def test_doubts_have_a_legend(model: str) -> None:
    """A ``?`` or an ``unknown`` never stands without a legend, nor the legend without them."""
    text = _run("gpus", model).stdout.split("\nNotes\n")[0].split("\nSources\n")[0]
    figures, *legend = text.split("\n? is not sure\n")
    assert bool(legend) == ("unknown" in figures or "?" in figures)


def test_sources_are_cited() -> None:
    """Every source of a board is named with its document."""
    model = library.get("a30")
    text = gpus.model_text(model, library.sources(), width=300, style=style.PLAIN)
    lines = {line.split()[0]: line for line in text.split("Sources\n")[1].splitlines() if line}
    assert [key for key in model.all_sources if key not in lines] == []


@pytest.mark.parametrize(
    "name", ["NVIDIA-A100-SXM4-80GB", "0x20B210DE", "10de:20b2", "A100-SXM4-80GB", "a100-80gb-sxm4"]
)
def test_any_name_will_do(name: str) -> None:
    """A board answers to its id, product name, label value and PCI id."""
    assert _run("gpus", name).stdout.startswith("NVIDIA A100-SXM4-80GB: MIG")


def test_several_hits_are_listed() -> None:
    """A word that fits several boards lists them; that it did is said on stderr."""
    result = _run("gpus", "RTX PRO 6000")
    assert result.exit_code == 0
    assert "3 boards fit" in result.stderr
    assert "MIG: 3 boards" in result.stdout


def test_unknown_model() -> None:
    """An unknown board is an error with a hint on stderr, exit code 2, nothing on stdout."""
    result = _run("gpus", "h100-80gb-sxm6")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: no such GPU model in the catalogue: h100-80gb-sxm6",
        "hint: did you mean h100-80gb-sxm5? `partita gpus` lists all models",
    ]


def _load(form: str, text: str) -> Any:
    return json.loads(text) if form == "json" else yaml.safe_load(text)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_list_as_data(form: str) -> None:
    """The list as data has every board, with null for what is unknown and for no MIG."""
    boards = {board["id"]: board for board in _load(form, _run("gpus", "-o", form).stdout)}
    assert list(boards) == [model.id for model in library.models()]
    assert boards["gb10"]["memory_mib"] is None
    assert boards["l40s"]["mig"] is None
    assert boards["a30"]["mig"]["memory_slices"] == 4


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_board_as_data(form: str) -> None:
    """A board as data says the same as the text, with units in the keys."""
    board = _load(form, _run("gpus", "a100-40gb-sxm4", "--output", form).stdout)
    profile = next(p for p in board["mig"]["profiles"] if p["name"] == "1g.5gb+me")
    assert list(board)[:3] == ["id", "names", "aliases"]
    assert board["mig"]["mode_change_needs_reset"] is True
    assert profile["resource"] == "nvidia.com/mig-1g.5gb.me"
    assert (profile["id"], profile["memory_mib"], profile["sm_count"]) == (20, 4864, 14)
    assert profile["placements"] == ["0:1", "1:1", "2:1", "3:1", "4:1", "5:1", "6:1"]
    assert profile["engines"] == {"copy": 1, "decoder": 1, "encoder": 0, "jpeg": 1, "ofa": 1}


def test_unknown_is_null_in_data() -> None:
    """What no source shows is null, not 0."""
    board = json.loads(_run("gpus", "rtx-pro-5000-48gb", "-o", "json").stdout)
    unknown = {(p["id"], p["memory_mib"], p["sm_count"]) for p in board["mig"]["profiles"]}
    assert unknown == {(None, None, None)}


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, True),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_when_there_is_colour(
    environment: dict[str, str], *, terminal: bool, expected: bool
) -> None:
    """Colour needs a terminal that can; a non-empty NO_COLOR forbids it."""
    assert output.wants_colour(environment, terminal=terminal) == expected


def test_no_colour_in_a_pipe() -> None:
    """Text that does not go to a terminal carries no escape codes."""
    assert _ESCAPE not in _run("gpus", "a30").stdout


@pytest.mark.parametrize("model", ["a30", "rtx-pro-5000-48gb", "l40s"])
def test_colour_adds_nothing_but_codes(model: str) -> None:
    """Without its escape codes, coloured text is the plain text."""
    board, sources = library.get(model), library.sources()
    plain = gpus.model_text(board, sources, width=80, style=style.PLAIN)
    coloured = gpus.model_text(board, sources, width=80, style=style.Style(colour=True))
    assert coloured != plain
    for tone in style.Tone:
        coloured = coloured.replace(f"\x1b[{tone.value}m", "")
    assert coloured.replace("\x1b[0m", "") == plain


@pytest.mark.parametrize(
    ("program", "expected"), [("partita", "partita"), ("kubectl-partita", "kubectl partita")]
)
def test_usage_says_what_was_typed(program: str, expected: str) -> None:
    """As a plugin of kubectl the program calls itself ``kubectl partita``."""
    first = _run("gpus", "--help", program=program).stdout.splitlines()[0]
    assert first == f"Usage: {expected} gpus [OPTIONS] [MODEL]"


def test_version() -> None:
    """``--version`` prints the version last."""
    assert _run("--version").stdout.split()[-1] == partita.__version__
