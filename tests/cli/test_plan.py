"""``partita plan``: from files to a plan, as text, data, or for another tool."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from partita.cli.main import main

_NODES = """\
nodes:
  - name: gpu-a1
    gpus:
      - model: a100-40gb-sxm4
        mig: on
        instances:
          - {profile: 3g.20gb, start: 4, held_by: research/notebook}
"""
_FITTING = """\
pods:
  - {name: render, namespace: studio, request: mig-2g.10gb}
"""
_UNFIT = """\
pods:
  - {name: huge, namespace: research, request: mig-7g.40gb}
"""
_POLICY = """\
apiVersion: partita.dev/v1alpha1
kind: PartitionPolicy
metadata: {name: small}
spec:
  strategy: MIG
  mig: {profiles: [1g.5gb]}
"""


def _run(*arguments: str | Path, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return runner.invoke(main, ["plan", *map(str, arguments)], prog_name="partita")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet file with one half of an A100 held and a pod that fits beside it."""
    path = tmp_path / "fleet.yaml"
    path.write_text(_NODES + _FITTING)
    return path


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Return a fleet file with a pod for which a holder would have to end."""
    path = tmp_path / "full.yaml"
    path.write_text(_NODES + _UNFIT)
    return path


def test_a_plan_that_fits(fleet: Path) -> None:
    """When every pod fits the exit code is 0, and the step is exact."""
    result = _run("--from", fleet)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "The pending pod fits"
    assert "1. + create 2g.10gb at 0:2, for studio/render" in result.stdout


def test_a_pod_that_does_not_fit(full: Path) -> None:
    """When a pod does not fit the exit code is 1, and the answer says what would help."""
    result = _run("--from", full)
    assert result.exit_code == 1
    assert "research/huge: 1 x nvidia.com/mig-7g.40gb" in result.stdout
    assert "end research/notebook" in " ".join(result.stdout.split())


@pytest.mark.parametrize("first", [["--from"], []])
def test_several_paths(tmp_path: Path, first: list[str]) -> None:
    """``--from`` may stand before the first of several paths, before each, or be left out."""
    nodes, pods = tmp_path / "nodes.yaml", tmp_path / "pods.yaml"
    nodes.write_text(_NODES)
    pods.write_text(_FITTING + "nodes: []\n")
    together = _run(*first, nodes, pods)
    each = _run("--from", nodes, "--from", pods)
    assert together.stdout == each.stdout
    assert together.stdout.splitlines()[0] == "The pending pod fits"


@pytest.mark.parametrize("columns", [80, 160])
def test_width_is_kept(full: Path, columns: int) -> None:
    """No line is wider than the terminal, and a pipe gets no escape codes."""
    text = _run(full, columns=columns).stdout
    assert max(map(len, text.splitlines())) <= columns
    assert "\x1b" not in text


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data(full: Path, form: str) -> None:
    """Data has the whole plan; the exit code is that of the text."""
    result = _run(full, "-o", form)
    load = json.loads if form == "json" else yaml.safe_load
    document = load(result.stdout)
    assert result.exit_code == 1
    assert document["schema"] == "partita.plan/v1"
    assert document["unfit"][0]["pod"] == "research/huge"


@pytest.mark.parametrize(
    ("tool", "wanted"),
    [
        ("nvidia-smi", "nvidia-smi mig -i 0 -cgi 14:0 -C"),
        ("mig-parted", "partita-gpu-a1:"),
        ("device-plugin", "migStrategy: mixed"),
    ],
)
def test_other_tools(fleet: Path, tool: str, wanted: str) -> None:
    """``--to`` writes what the tool takes, and nothing else, to stdout."""
    result = _run(fleet, "--to", tool)
    assert (result.exit_code, result.stderr) == (0, "")
    assert wanted in result.stdout
    assert "pending pod" not in result.stdout


def test_other_tools_say_what_does_not_fit(full: Path) -> None:
    """That a pod does not fit goes to stderr and into the exit code."""
    result = _run(full, "--to", "mig-parted")
    assert result.exit_code == 1
    assert result.stderr == "1 pending pod does not fit; without --to the plan says why\n"
    assert yaml.safe_load(result.stdout)["version"] == "v1"


def test_policies_count(fleet: Path, tmp_path: Path) -> None:
    """What a policy does not allow is not planned."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(_POLICY)
    assert _run(fleet).exit_code == 0
    assert _run(fleet, "--policy", policy).exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_POLICY.replace("MIG", "MIGG"), "policy.yaml:5:13: "),
        ("a: 1\n", "policy.yaml:"),
        ("{", "policy.yaml:"),
    ],
)
def test_wrong_policies(fleet: Path, tmp_path: Path, text: str, message: str) -> None:
    """A policy with an error stops planning, with its place and a hint."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    result = _run(fleet, "--policy", policy)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "hint: " in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--to", "mig-parted", "-o", "json"], ["--to", "nvidia-smi", "-o", "yaml"]]
)
def test_two_forms_at_once(fleet: Path, arguments: list[str]) -> None:
    """A tool's form and ``-o`` exclude each other."""
    result = _run(fleet, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[1] in result.stderr
    assert "hint: " in result.stderr


def test_nothing_to_read() -> None:
    """Without a path the usage is explained."""
    result = _run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "hint: for example" in result.stderr


def test_unreadable_input(tmp_path: Path) -> None:
    """A file that is not there is exit code 2, with its name."""
    result = _run("--from", tmp_path / "none.xml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "none.xml" in result.stderr


def test_exit_codes_are_documented() -> None:
    """The help names the exit codes."""
    text = " ".join(_run("--help").stdout.split())
    assert "Exits with 0 when every pending pod fits, with 1 when one does not" in text


@pytest.mark.parametrize(("encoding", "line"), [("ascii", "+---"), ("utf-8", "┌───")])
def test_boxes_fit_the_encoding(fleet: Path, encoding: str, line: str) -> None:
    """Boxes are drawn with what the encoding of stdout has."""
    done = subprocess.run(  # noqa: S603 - this program itself
        [sys.executable, "-m", "partita", "plan", str(fleet)],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert line in done.stdout.decode(encoding)
