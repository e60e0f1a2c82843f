"""A plan as a script of nvidia-smi commands, run against a stand-in that records them."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.views import example_plans

from partita.model.gpu import MigMode
from partita.planner.plan import GpuPlan, Plan
from partita.views import nvidia_smi

Make = Callable[[], Plan]
_SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]

# Writes down every command; answers -lgi with a table, and the mode with what is in a file.
_STAND_IN = """\
#!/bin/sh
echo "$@" >> "$RECORD"
case "$*" in
*-lgi) cat "$TABLE" ;;
*mig.mode.current*) cat "$MODE" ;;
*"-mig 1") [ -n "${BUSY:-}" ] || echo Enabled > "$MODE" ;;
*"-mig 0") [ -n "${BUSY:-}" ] || echo Disabled > "$MODE" ;;
*--gpu-reset*) echo "${AFTER_RESET:-Enabled}" > "$MODE" ;;
*-dci*) exit "${DCI:-0}" ;;
esac
"""
_ROW = "|   3  MIG {profile:<17} 19  {number:>7}          {place:<7} |"


def _table(*rows: tuple[str, int, str]) -> str:
    lines = [
        "| GPU instances:                                          |",
        "| GPU   Name               Profile  Instance   Placement  |",
    ]
    for profile, number, place in rows:
        lines.append(_ROW.format(profile=profile, number=number, place=place))
    return "\n".join(lines) + "\n"


def _run(
    plan: Plan, folder: Path, node: str, table: str = "", **environment: str
) -> tuple[int, list[str], str]:
    """Run the script of a plan; return its exit code, the changing commands and its messages."""
    stand_in = folder / "nvidia-smi"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    for name, content in (("table", table), ("mode", "Disabled\n"), ("record", "")):
        (folder / name).write_text(content)
    (folder / "plan.sh").write_text(nvidia_smi.script(plan))
    variables = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "RECORD": str(folder / "record"),
        "TABLE": str(folder / "table"),
        "MODE": str(folder / "mode"),
    }
    done = subprocess.run(  # noqa: S603 - our own script
        ["/bin/sh", str(folder / "plan.sh"), node],
        env=variables | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    reading = re.compile(r"-lgi$|--query-gpu")
    commands = (folder / "record").read_text().splitlines()
    return done.returncode, [c for c in commands if not reading.search(c)], done.stderr


@pytest.mark.parametrize("shell", _SHELLS)
@pytest.mark.parametrize("make", [*example_plans.ALL, lambda: example_plans.plan([])])
def test_shells_accept_the_script(make: Make, shell: str) -> None:
    """The script is correct shell, also when there is nothing to do."""
    script = nvidia_smi.script(make())
    found = shutil.which(shell) or shell
    done = subprocess.run(  # noqa: S603 - a shell that only checks
        [found, "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "set -eu" in script.splitlines()


@pytest.mark.parametrize("make", example_plans.ALL)
def test_nothing_is_wiped(make: Make) -> None:
    """Instances are destroyed one by one and by id, never all of a GPU; held ones never."""
    plan = make()
    lines = [line.strip() for line in nvidia_smi.script(plan).splitlines()]
    destroying = [line for line in lines if not line.startswith("#") and re.search("-d[cg]i", line)]
    assert [line for line in destroying if " -gi " not in line] == []
    held = {i.instance_id for g in plan.gpus for i in g.gpu.instances if i.hold.pinned}
    ids = {int(n) for line in destroying for n in re.findall(r" -gi (\d+)", line)}
    assert not ids & held


def test_instances_go_and_come_at_their_places(tmp_path: Path) -> None:
    """A free instance goes, compute instances first, and another comes at its start."""
    rows = (("1g.10gb", 9, "0:1"), ("1g.10gb", 10, "1:1"), ("1g.10gb", 12, "5:1"))
    code, commands, _ = _run(example_plans.fragmented(), tmp_path, "gpu-a1", _table(*rows))
    assert code == 0
    assert commands == [
        "mig -i GPU-5a1d22e0 -dci -gi 12",
        "mig -i GPU-5a1d22e0 -dgi -gi 12",
        "mig -i GPU-5a1d22e0 -cgi 9:4 -C",
    ]


def test_an_instance_without_compute_instances_goes_too(tmp_path: Path) -> None:
    """That there is no compute instance to destroy does not stop the script."""
    code, commands, _ = _run(
        example_plans.fragmented(), tmp_path, "gpu-a1", _table(("1g.10gb", 12, "5:1")), DCI="6"
    )
    assert code == 0
    assert len(commands) == 3


@pytest.mark.parametrize(
    "rows", [(), (("1g.10gb", 7, "5:1"),), (("1g.10gb", 12, "6:1"),)], ids=["gone", "new", "moved"]
)
def test_a_changed_gpu_is_left_alone(tmp_path: Path, rows: tuple[tuple[str, int, str]]) -> None:
    """When another instance, or none, stands at the place by now, nothing is done."""
    code, commands, message = _run(
        example_plans.fragmented(), tmp_path, "gpu-a1", _table(*rows) if rows else ""
    )
    assert (code, commands) == (1, [])
    assert "instance 12 is not at 5:1 any more" in message


def test_an_unknown_id_is_looked_up(tmp_path: Path) -> None:
    """Without an id, the instance is found by its placement when the script runs."""
    plan = example_plans.resets()
    table = _table(("1g.6gb", 4, "1:1"), ("1g.6gb", 5, "2:1"))
    code, commands, _ = _run(plan, tmp_path, "gpu-b2", table, AFTER_RESET="Disabled")
    assert code == 0
    assert commands == ["mig -i 1 -dci -gi 5", "mig -i 1 -dgi -gi 5", "-i 1 -mig 0"]


def test_an_instance_that_cannot_be_found_stops_the_script(tmp_path: Path) -> None:
    """When nothing stands at the place, nothing is destroyed and the mode stays."""
    code, commands, _ = _run(example_plans.resets(), tmp_path, "gpu-b2", _table())
    assert (code, commands) == (1, [])


def test_neither_id_nor_place_is_known(tmp_path: Path) -> None:
    """Then the script stops there and says why."""
    places = (example_plans.at(0, 1), example_plans.at(1, 1))
    lost = example_plans.GpuInstance(profile="1g.10gb", candidates=places)
    board = example_plans.gpu(example_plans.H100, "a", 0, lost)
    after = GpuPlan(gpu=board, mig_mode=MigMode.ON)
    plan = example_plans.plan([after], [example_plans.destroy("a", 0, lost)])
    code, commands, message = _run(plan, tmp_path, "a")
    assert (code, commands) == (1, [])
    assert "cannot tell which 1g.10gb to destroy" in message


def test_a_reset_is_only_done_when_needed(tmp_path: Path) -> None:
    """Where the driver could not change the mode by itself, this GPU alone is reset."""
    plan = example_plans.resets()
    created = ["mig -i 0 -cgi 5:0 -C", "mig -i 0 -cgi 14:4 -C", "mig -i 0 -cgi 19:6 -C"]
    assert _run(plan, tmp_path, "gpu-b1")[:2] == (0, ["-i 0 -mig 1", *created])
    code, commands, _ = _run(plan, tmp_path, "gpu-b1", BUSY="yes")
    assert (code, commands) == (0, ["-i 0 -mig 1", "--gpu-reset -i 0", *created])


def test_a_pending_mode_stops_the_script(tmp_path: Path) -> None:
    """When the mode is still not there, no instance is created."""
    code, commands, message = _run(
        example_plans.resets(), tmp_path, "gpu-b1", BUSY="yes", AFTER_RESET="Disabled"
    )
    assert (code, commands) == (1, ["-i 0 -mig 1", "--gpu-reset -i 0"])
    assert "the MIG mode is still pending" in message


def test_other_nodes_are_left_alone(tmp_path: Path) -> None:
    """On a node that the plan does not change the script does nothing but say so."""
    code, commands, message = _run(example_plans.resets(), tmp_path, "gpu-b9")
    assert (code, commands) == (1, [])
    assert message == "the plan has no step for this node: gpu-b9\n"


def test_an_unknown_profile_id_is_named(tmp_path: Path) -> None:
    """Where no source shows the id, nvidia-smi is given the name."""
    commands = _run(example_plans.twelve_units(), tmp_path, "rtx-1")[1]
    assert commands == ["mig -i 0 -cgi 2g.48gb+gfx:6 -C"]


def test_sharing_is_left_to_the_device_plugin(tmp_path: Path) -> None:
    """Replicas are no matter of nvidia-smi: a comment says who does it."""
    plan = example_plans.shared()
    assert _run(plan, tmp_path, "gpu-d1")[:2] == (0, [])
    assert "--to device-plugin" in nvidia_smi.script(plan)


def test_names_cannot_break_out(tmp_path: Path) -> None:
    """Whatever a node is called, its name is data to the shell."""
    name = 'a\'; touch broken; $(touch broken) "`touch broken`"\ntouch broken'
    board = example_plans.gpu(example_plans.H100, name, 0)
    after = GpuPlan(
        gpu=board,
        mig_mode=MigMode.ON,
        instances=(example_plans.new("7g.80gb", example_plans.at(0, 8)),),
    )
    step = example_plans.create(name, 0, "7g.80gb", example_plans.at(0, 8), 0)
    code, commands, _ = _run(example_plans.plan([after], [step]), tmp_path, name)
    assert (code, commands) == (0, ["mig -i 0 -cgi 0:0 -C"])
    assert not list(Path.cwd().glob("broken")) + list(tmp_path.glob("broken"))
