"""The table of `nvidia-smi mig -lgi` becomes instances with placements."""

from collections.abc import Callable

import pytest

from partita.adapters import nvidia_smi_lgi
from partita.errors import InputError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

CaseText = Callable[[str], str]


def _read(text: str) -> Observation:
    assert nvidia_smi_lgi.recognises(text)
    return nvidia_smi_lgi.read(text, source="some.txt", node="oak")


def _instance(profile: str, profile_id: int, number: int, start: int, size: int) -> InstanceReport:
    placement = Placement(start=start, size=size)
    return InstanceReport(
        profile=profile, profile_id=profile_id, instance_id=number, placement=placement
    )


def test_rows_are_grouped_by_gpu(case_text: CaseText) -> None:
    """Rows in any order become GPUs by index; a GPU with instances has MIG on."""
    first = (_instance("3g.47gb", 9, 1, 0, 4), _instance("1g.12gb", 19, 9, 5, 1))
    second = (_instance("1g.12gb+me", 20, 11, 6, 1),)
    gpus = (
        GpuReport(index=0, mig_mode=MigMode.ON, instances=first),
        GpuReport(index=1, mig_mode=MigMode.ON, instances=second),
    )
    report = NodeReport(node="oak", source="some.txt", gpus=gpus)
    assert _read(case_text("lgi/two_gpus.txt")) == Observation(reports=(report,))


def test_last_table_of_a_session_counts(case_text: CaseText) -> None:
    """When a GPU is listed again later, its later instances count; other GPUs keep theirs."""
    found = _read(case_text("lgi/session.txt"))
    assert [gpu.instances for gpu in found.reports[0].gpus] == [
        (_instance("1g.6gb", 14, 6, 0, 1),),
        (_instance("1g.6gb", 14, 3, 3, 1),),
    ]
    assert found.notes == ("node oak: GPU 0 is in several tables, the last one counts",)


def test_no_instances(case_text: CaseText) -> None:
    """The answer "Not Found" tells nothing of which GPUs there are: no GPU, and a note."""
    found = _read(case_text("lgi/empty.txt"))
    assert found.reports[0].gpus == ()
    assert found.notes == (
        "node oak: no GPU with MIG on has instances; which GPUs there are is not in the file",
    )


def test_no_gpu_with_mig() -> None:
    """When no GPU has MIG on, nvidia-smi says so instead of a table."""
    found = _read("No MIG-enabled devices found.\n")
    assert found.notes[0].startswith("node oak: no GPU has MIG on")


@pytest.mark.parametrize(
    "row", ["|   0  MIG 1g.10gb  19  7  0:0  |", "|   0  MIG 1g.10gb  19  7  "]
)
def test_broken_row(case_text: CaseText, row: str) -> None:
    """A row that lacks a part or has an empty placement is an error with its line."""
    text = case_text("lgi/two_gpus.txt").replace(
        "|   1  MIG 1g.12gb+me        20       11          6:1     |", row
    )
    with pytest.raises(InputError) as caught:
        _read(text)
    assert (caught.value.line, caught.value.column) == (6, 1)


def test_table_without_rows(case_text: CaseText) -> None:
    """A table that ends after its head was cut off."""
    text = "\n".join(case_text("lgi/two_gpus.txt").splitlines()[:4])
    with pytest.raises(InputError, match="has no row"):
        _read(text)


def test_no_table() -> None:
    """A text without the table is refused."""
    with pytest.raises(InputError, match="no table"):
        nvidia_smi_lgi.read("hello", source="some.txt", node="oak")
