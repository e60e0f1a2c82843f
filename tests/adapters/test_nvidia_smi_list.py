"""What `nvidia-smi -L` prints becomes GPUs with MIG devices of known UUID."""

from collections.abc import Callable

import pytest

from partita.adapters import nvidia_smi_list
from partita.errors import InputError
from partita.model.gpu import ComputeInstance, MigMode
from partita.model.report import GpuReport, InstanceReport, Observation

CaseText = Callable[[str], str]


def _read(text: str) -> Observation:
    assert nvidia_smi_list.recognises(text)
    return nvidia_smi_list.read(text, source="some.txt", node="oak")


def _device(profile: str, uuid: str) -> InstanceReport:
    return InstanceReport(
        profile=profile, compute_instances=(ComputeInstance(instance_id=0, uuid=uuid),)
    )


def test_gpus_and_their_mig_devices(case_text: CaseText) -> None:
    """MIG devices become instances; a lost GPU takes the number that is left out.

    Split instances do not show what belongs together, so they are unknown and a note says what
    would tell.
    """
    found = _read(case_text("list/mixed.txt"))
    product = "NVIDIA H100 80GB HBM3"
    assert found.reports[0].gpus == (
        GpuReport(
            index=0,
            product=product,
            uuid="GPU-0a0a0a0a-1111-2222-3333-444444444444",
            mig_mode=MigMode.ON,
            instances=(
                _device("3g.40gb", "MIG-b0000000-1111-5222-8333-444444444444"),
                _device("1g.10gb+me", "MIG-b0000001-1111-5222-8333-444444444444"),
            ),
        ),
        GpuReport(
            index=1,
            product=product,
            uuid="GPU-1a0a0a0a-1111-2222-3333-444444444444",
            instances=(),
        ),
        GpuReport(
            index=2,
            problem="Unable to determine the device handle for gpu 0000:5E:00.0: Unknown Error",
        ),
        GpuReport(
            index=3,
            product=product,
            uuid="GPU-3a0a0a0a-1111-2222-3333-444444444444",
            mig_mode=MigMode.ON,
        ),
    )
    assert found.notes == (
        "node oak: GPU 3 has split instances; add `nvidia-smi mig -lgi` to know them",
    )


def test_old_uuids_tell_the_instance(case_text: CaseText) -> None:
    """UUIDs of drivers before 470 hold GPU and compute instance ids, which group the splits."""
    (gpu,) = _read(case_text("list/old_driver.txt")).reports[0].gpus
    assert gpu.instances is not None
    assert [
        (one.profile, one.instance_id, [ci.instance_id for ci in one.compute_instances])
        for one in gpu.instances
    ] == [("3g.20gb", 1, [0, 3]), ("1g.5gb", 13, [0])]


def test_lost_gpu_without_room_in_the_numbering() -> None:
    """A lost GPU whose number nobody knows is a note."""
    lost = "Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error"
    found = _read(f"GPU 0: A (UUID: GPU-a)\n{lost}\nGPU 1: B (UUID: GPU-b)\n")
    assert [gpu.problem for gpu in found.reports[0].gpus] == [None, None]
    assert found.notes == (f"node oak: a GPU without number: {lost}",)


def test_lines_beside_the_list() -> None:
    """Other output around the list is counted; a GPU that is listed again counts as last seen."""
    found = _read("warning\nGPU 0: A (UUID: GPU-a)\nGPU 0: B (UUID: GPU-b)\n$ prompt\n")
    assert [gpu.product for gpu in found.reports[0].gpus] == ["B"]
    assert found.notes == (
        "node oak: GPU 0 is listed again, the last one counts",
        "node oak: lines beside the list: 1, the first: 'warning'",
    )


def test_no_gpu() -> None:
    """A node without GPUs is a report without GPUs."""
    found = _read("No devices found.\n")
    assert (found.reports[0].gpus, found.notes) == ((), ("node oak: no GPU in the list",))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("GPU 0: A (UUID: GPU-a)\nGPU 1: B (UU", 2),
        ("GPU 0: A (UUID: GPU-a)\n  MIG 1g.10gb     Dev", 2),
        ("GPU 0: A (UUID: GPU-a)\n\nGPU 1", 3),
        ("GPU 0: \x1b[31m (UUID: GPU-a)", 1),
    ],
)
def test_broken_line(text: str, line: int) -> None:
    """A line of the list that is cut off or unprintable is an error with its number."""
    with pytest.raises(InputError) as caught:
        _read(text)
    assert caught.value.line == line
    assert "nvidia-smi -L" in caught.value.hint


def test_no_list() -> None:
    """A text without such lines is refused."""
    with pytest.raises(InputError, match="no line"):
        nvidia_smi_list.read("hello", source="some.txt", node="oak")
