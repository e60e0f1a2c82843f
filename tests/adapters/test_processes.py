"""Which pod and program a process belongs to, told from ``/proc``."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.adapters.processes import ProcProcessTable
from partita.ports.process_table import Process

UID = "0f5bd3a4-9d1c-4f6e-8a55-3f1f6d7c2b10"
SCORED = UID.replace("-", "_")
HASH = "5e1f3c9a7b2d4f60918273645a6b7c8d"  # of a static pod
ID, OTHER = "ab" * 32, "cd" * 32


class Table:
    """A folder that looks like ``/proc``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reader = ProcProcessTable(root)

    def add(
        self,
        process_id: int,
        name: str = "python3",
        *,
        cgroup: str = "0::/",
        exe: str | None = None,
        arguments: tuple[str, ...] = (),
        state: str = "S",
    ) -> Path:
        """Add a process that started at its PID + 1000, and return its folder."""
        folder = self.root / str(process_id)
        folder.mkdir()
        numbers = [0] * 18  # the fields between state and start
        fields = " ".join(map(str, [*numbers, process_id + 1000, 4096, 7]))
        (folder / "stat").write_text(f"{process_id} ({name}) {state} {fields}\n", encoding="utf-8")
        (folder / "cgroup").write_text(f"{cgroup}\n", encoding="utf-8")
        (folder / "cmdline").write_text("".join(f"{a}\0" for a in arguments), encoding="utf-8")
        if exe is not None:
            (folder / "exe").symlink_to(exe)
        return folder

    def place(self, cgroup: str) -> tuple[str | None, str | None]:
        """Return pod UID and container id of a process in such a cgroup."""
        self.add(1, cgroup=cgroup)
        process = self.reader.find([1])[1]
        return process.pod_uid, process.container_id


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return an empty table."""
    return Table(tmp_path)


# ---- Pods and containers ------------------------------------------------------------------------


BURSTABLE = f"kubepods-burstable-pod{SCORED}.slice"
GUARANTEED = f"kubepods-pod{SCORED}.slice"
SERVICE = "system.slice/containerd.service"
LINE = f"/kubepods/burstable/pod{UID}/{ID}"


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods.slice/kubepods-burstable.slice/{BURSTABLE}/cri-containerd-{ID}.scope",
        f"0::/kubepods.slice/kubepods-burstable.slice/{BURSTABLE}/crio-{ID}.scope/container",
        f"0::/kubepods.slice/{GUARANTEED}/crio-{ID}.scope",
        f"0::/kubepods.slice/{GUARANTEED}/docker-{ID}.scope",
        f"0::/kubepods/besteffort/pod{UID}/{ID}",
        f"0::/kubepods/pod{UID}/{ID}",
        f"0::/{SERVICE}/{BURSTABLE}:cri-containerd:{ID}",
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-{BURSTABLE}/cri-containerd-{ID}.scope",
        f"0::/docker/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}",
        f"0::/custom.slice/custom-kubepods.slice/custom-{GUARANTEED}/cri-containerd-{ID}.scope",
        f"0::/../../{BURSTABLE}/cri-containerd-{ID}.scope",
        f"0::/../../../pod{UID}/{ID}",
        f"0::{LINE}/docker/{OTHER}",
        f"0::{LINE} (deleted)",
        f"13:memory:{LINE}\n12:devices:{LINE}\n1:name=systemd:/\n0::/",
        f"0::/\n11:devices:/user.slice\n9:cpu,cpuacct:{LINE}",
    ],
)
def test_layouts_of_cgroups(table: Table, cgroup: str) -> None:
    """Cgroup v1 and v2, either driver, any runtime, nested or seen from a namespace."""
    assert table.place(cgroup) == (UID, ID)


@pytest.mark.parametrize(
    ("cgroup", "place"),
    [
        (f"0::/kubepods/burstable/pod{HASH}/{ID}", (HASH, ID)),
        (f"0::/kubepods.slice/kubepods-pod{HASH}.slice/cri-containerd-{ID}.scope", (HASH, ID)),
        (f"0::/kubepods.slice/kubepods-pod{SCORED}.slice/crio-conmon-{ID}.scope", (UID, None)),
        (f"0::/kubepods/pod{UID}", (UID, None)),
        (f"0::/k8s.io/{ID}", (None, ID)),
        (f"0::/system.slice/docker-{ID}.scope", (None, ID)),
        (f"0::/../cri-containerd-{ID}.scope", (None, ID)),
        (f"0::/machine.slice/libpod-{ID}.scope", (None, ID)),
        ("0::/user.slice/user-1000.slice/session-3.scope", (None, None)),
        ("0::/system.slice/podman-restart.service", (None, None)),
        ("0::/", (None, None)),
        ("", (None, None)),
    ],
)
def test_what_a_cgroup_does_not_say_is_unknown(
    table: Table, cgroup: str, place: tuple[str | None, str | None]
) -> None:
    """A static pod has a hash for a UID; a process may be in a container alone, or in neither."""
    assert table.place(cgroup) == place


# ---- Names and times ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["python3", "tmux: server", "a) R 1 2 (b", "((", ")", "ü"])
def test_a_name_may_hold_anything(table: Table, name: str) -> None:
    """Blanks and parentheses in a name shift no field."""
    table.add(7, name)
    assert table.reader.find([7])[7] == Process(process_id=7, started=1007, name=name)


def test_a_name_is_kept_as_the_kernel_keeps_it(table: Table) -> None:
    """Threads of the kernel show more than 15 characters in some kernels."""
    table.add(7, "kworker/3:1-events_unbound")
    assert table.reader.find([7])[7].name == "kworker/3:1-eve"


# ---- Programs -----------------------------------------------------------------------------------

LONG = "nvidia-device-plugin"


@pytest.mark.parametrize(
    ("kept", "exe", "arguments"),
    [
        (LONG[:15], f"/usr/bin/{LONG}", (LONG,)),
        (LONG[:15], f"/usr/bin/{LONG} (deleted)", ("renamed",)),
        (LONG[:15], None, (f"/usr/bin/{LONG}", "--flag")),
        (LONG[:15], "/usr/bin/bash", ("/bin/bash", f"/opt/{LONG}")),
        ("main", f"/{LONG}", ("/init",)),
    ],
)
def test_a_program_is_found_by_the_name_of_its_file(
    table: Table, kept: str, exe: str | None, arguments: tuple[str, ...]
) -> None:
    """The file that runs, what it was called, or the script that runs in it."""
    table.add(9, kept, exe=exe, arguments=arguments)
    assert [process.process_id for process in table.reader.programs([LONG])] == [9]


@pytest.mark.parametrize(
    ("kept", "exe", "arguments"),
    [
        (LONG[:15], f"/usr/bin/{LONG}-monitor", (f"{LONG}-monitor",)),
        ("vim", "/usr/bin/vim", ("vim", f"/etc/{LONG}")),
        ("grep", "/usr/bin/grep", ("grep", LONG)),
        (LONG[:15], None, ()),
    ],
)
def test_a_part_of_a_name_is_not_enough(
    table: Table, kept: str, exe: str | None, arguments: tuple[str, ...]
) -> None:
    """A longer name, a file that is edited and the first 15 characters are no program."""
    table.add(9, kept, exe=exe, arguments=arguments)
    assert table.reader.programs([LONG]) == ()


def test_programs_come_by_process_id(table: Table) -> None:
    """All names are looked for at once, and a short one is known by what the kernel keeps."""
    for process_id in (110, 20, 3):
        table.add(process_id, "koordlet")
    (table.root / "self").mkdir()
    (table.root / "uptime").write_text("1 1\n", encoding="ascii")
    found = table.reader.programs([LONG, "koordlet"])
    assert [process.process_id for process in found] == [3, 20, 110]


def test_what_has_ended_is_no_program(table: Table) -> None:
    """A zombie runs nothing, though it is still in the table."""
    table.add(5, "koordlet", state="Z")
    assert table.reader.programs(["koordlet"]) == ()
    assert table.reader.find([5])[5].name == "koordlet"


# ---- What cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["stat", "cgroup"])
def test_a_process_that_ends_meanwhile_is_left_out(table: Table, missing: str) -> None:
    """What is gone when it is read is not in the answer, and the others are."""
    folder = table.add(5, "koordlet")
    table.add(6, "koordlet")
    (folder / missing).unlink()
    assert list(table.reader.find([5, 6, 7])) == [6]
    assert [process.process_id for process in table.reader.programs(["koordlet"])] == [6]


@pytest.mark.parametrize(
    "stat", ["", "5 koordlet S", "5 (koordlet) S 1 2 3", "5 (k) S" + " x" * 30]
)
def test_a_line_that_cannot_be_understood_is_left_out(table: Table, stat: str) -> None:
    """No such kernel is known, but the rest of the table does not suffer from it."""
    folder = table.add(5)
    (folder / "stat").write_text(stat, encoding="ascii")
    assert table.reader.find([5]) == {}
    assert table.reader.programs(["koordlet"]) == ()


def test_another_process_with_the_same_id_is_not_mistaken(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the PID goes to another process between two looks, neither half is believed."""
    folder = table.add(5, cgroup=f"0::/kubepods/pod{UID}/{ID}")
    read: Callable[..., str] = Path.read_text

    def reuse(path: Path, **how: str) -> str:
        text = read(path, **how)
        if path == folder / "cgroup":
            stat = read(folder / "stat", encoding="utf-8")
            (folder / "stat").write_text(stat.replace("1005", "2005"), encoding="utf-8")
        return text

    monkeypatch.setattr(Path, "read_text", reuse)
    assert table.reader.find([5]) == {}


def test_without_a_table_there_is_nothing(tmp_path: Path) -> None:
    """A wrong place is an empty table."""
    reader = ProcProcessTable(tmp_path / "none")
    assert (reader.find([1]), reader.programs(["init"])) == ({}, ())


# ---- The kernel's own ---------------------------------------------------------------------------


def test_the_kernel_is_understood(tmp_path: Path) -> None:
    """A script that really runs is found by its name, and started after us."""
    script = tmp_path / "reconfigure-mig-of-a-test"
    script.write_text(f"#!{sys.executable}\nprint(flush=True)\ninput()\n", encoding="utf-8")
    script.chmod(0o755)
    with subprocess.Popen(  # noqa: S603 - no shell
        [script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = ProcProcessTable().programs([script.name])
        both = ProcProcessTable().find([os.getpid(), child.pid])
        child.communicate(b"\n")
    assert [process.process_id for process in found] == [child.pid]
    assert both[child.pid].started >= both[os.getpid()].started
    assert both[child.pid].name == script.name[:15]
