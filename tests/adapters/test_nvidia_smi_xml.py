"""What `nvidia-smi -q -x` prints becomes GPU reports."""

from collections.abc import Callable

import pytest

from partita.adapters import nvidia_smi_xml
from partita.errors import InputError
from partita.model.gpu import ComputeInstance, MigMode
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

CaseText = Callable[[str], str]


def _read(text: str) -> Observation:
    assert nvidia_smi_xml.recognises(text)
    return nvidia_smi_xml.read(text, source="some.xml", node="oak")


def _gpu(inner: str) -> GpuReport:
    text = f"<nvidia_smi_log><gpu>{inner}</gpu></nvidia_smi_log>"
    return _read(text).reports[0].gpus[0]


def test_mig_gpu_and_plain_gpu(case_text: CaseText) -> None:
    """Compute instances are grouped by GPU instance, whose memory and engines count once.

    Processes go to their GPU instance, or to the GPU when the file says N/A.
    """
    split = InstanceReport(
        instance_id=2,
        memory_mib=40192,
        decoder_count=2,
        copy_engine_count=3,
        jpeg_count=0,
        used_memory_mib=37,
        compute_instances=(
            ComputeInstance(
                instance_id=0, uuid="MIG-aaaaaaaa-0000-5000-8000-000000000001", sm_count=14
            ),
            ComputeInstance(instance_id=1, sm_count=28),
        ),
    )
    small = InstanceReport(
        instance_id=9,
        memory_mib=9728,
        decoder_count=0,
        copy_engine_count=1,
        compute_instances=(ComputeInstance(instance_id=0),),
        process_ids=(4711,),
        used_memory_mib=12,
    )
    first = GpuReport(
        index=0,
        product="NVIDIA A100 80GB PCIe",
        pci_device="0x20B510DE",
        uuid="GPU-11111111-2222-3333-4444-555555555555",
        mig_mode=MigMode.ON,
        pending_mig_mode=MigMode.OFF,
        instances=(split, small),
        process_ids=(81,),
        used_memory_mib=90,
        memory_mib=81920,
    )
    second = GpuReport(
        index=1,
        product="NVIDIA A100 80GB PCIe",
        pci_device="0x20B510DE",
        uuid="GPU-99999999-2222-3333-4444-555555555555",
        mig_mode=MigMode.OFF,
        pending_mig_mode=MigMode.OFF,
        instances=(),
        used_unreadable=True,
        memory_mib=81920,
        reserved_memory_mib=551,
    )
    assert _read(case_text("xml/a100_split.xml")) == Observation(
        reports=(
            NodeReport(
                node="oak", source="some.xml", gpus=(first, second), driver_version="550.127.05"
            ),
        ),
        notes=("node oak: gpu[0]: the driver advises to drain the GPU and reset it",),
    )


def test_driver_before_mig(case_text: CaseText) -> None:
    """The oldest format has no MIG elements: mode and instances are unknown, not off."""
    (gpu,) = _read(case_text("xml/v100_old_driver.xml")).reports[0].gpus
    assert (gpu.mig_mode, gpu.instances, gpu.reserved_memory_mib) == (None, None, None)
    assert (gpu.product, gpu.memory_mib) == ("Tesla V100-PCIE-16GB", 16130)


def test_troubled_gpus_are_reported_as_such(case_text: CaseText) -> None:
    """Error words in essential fields and a needed reset are problems; the GPU stays listed."""
    found = _read(case_text("xml/troubled.xml"))
    assert [gpu.problem for gpu in found.reports[0].gpus] == [
        "product_name: ERR!",
        "reset required",
        "reboot required",
        None,
    ]
    broken = found.reports[0].gpus[0]
    assert (broken.product, broken.uuid, broken.mig_mode, broken.memory_mib) == (None,) * 4
    lost = case_text("xml/troubled.xml").splitlines()[0]
    assert found.notes == (
        f"node oak: beside the XML: '{lost}'",
        "node oak: gpu[0]: its processes are not known",
        "node oak: 5 GPUs attached, in the file: 4",
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Enabled", MigMode.ON),
        ("Disabled", MigMode.OFF),
        ("N/A", MigMode.UNSUPPORTED),
        ("[N/A]", MigMode.UNSUPPORTED),
        ("Unknown Error", None),
        ("", None),
    ],
)
def test_mig_modes(written: str, expected: MigMode | None) -> None:
    """N/A means that the board has no MIG; an error word means that the mode is unknown."""
    assert _gpu(f"<mig_mode><current_mig>{written}</current_mig></mig_mode>").mig_mode == expected


@pytest.mark.parametrize(
    "word",
    [
        "[N/A]",
        "N/A",
        "ERR!",
        "[Unknown Error]",
        "Unknown Error",
        "Not Supported",
        "[Not Supported]",
        "Insufficient Permissions",
        "Requested functionality has been deprecated",
        "",
    ],
)
def test_words_in_place_of_numbers(word: str) -> None:
    """A word that stands for a missing reading is unknown, never 0."""
    gpu = _gpu(
        f"<fb_memory_usage><total>{word}</total><reserved>{word}</reserved></fb_memory_usage>"
    )
    assert (gpu.memory_mib, gpu.reserved_memory_mib) == (None, None)


@pytest.mark.parametrize(
    "word", ["GPU is lost", "[GPU requires reset]", "Unable to determine the device handle for X"]
)
def test_lost_gpu(word: str) -> None:
    """A lost GPU is a problem whichever essential field says so."""
    assert word.strip("[]") in str(_gpu(f"<uuid>{word}</uuid>").problem)


def test_process_on_a_hidden_instance() -> None:
    """A process on a GPU instance that is not listed proves that the instance is there."""
    gpu = _gpu(
        "<mig_devices>None</mig_devices><processes><process_info>"
        "<gpu_instance_id>3</gpu_instance_id><pid>8</pid></process_info></processes>"
    )
    assert gpu.instances == (InstanceReport(instance_id=3, process_ids=(8,)),)


def test_file_without_gpu_is_noted() -> None:
    """A node on which nvidia-smi saw no GPU is a report without GPUs."""
    found = _read("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>")
    assert (found.reports[0].gpus, found.notes) == ((), ("node oak: no GPU in the file",))


def _log(inner: str) -> str:
    return f"<nvidia_smi_log>{inner}</nvidia_smi_log>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html></html>", "expected an nvidia_smi_log element, got: 'html'"),
        ("<nvidia_smi_log>", "broken XML: no element found"),
        (_log("&who;"), "broken XML: undefined entity"),
        (
            '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aa">]>' + _log("&a;"),
            "the XML declares entities, which nvidia-smi never does",
        ),
        (
            _log("<gpu><fb_memory_usage><total>many</total></fb_memory_usage></gpu>"),
            "gpu[0].fb_memory_usage.total: expected an amount like 40960 MiB, got: 'many'",
        ),
        (
            _log("<gpu><mig_mode><current_mig>Perhaps</current_mig></mig_mode></gpu>"),
            "gpu[0].mig_mode.current_mig: expected Enabled, Disabled or N/A, got: 'Perhaps'",
        ),
    ],
)
def test_unusable_xml(text: str, message: str) -> None:
    """Broken or foreign XML and impossible values are errors; entities are never expanded."""
    with pytest.raises(InputError) as caught:
        _read(text)
    assert caught.value.message == message
    assert "nvidia-smi -q -x" in caught.value.hint


def test_place_of_broken_xml() -> None:
    """The error counts lines in the file, with what stands before the XML."""
    with pytest.raises(InputError) as caught:
        _read("some warning\n<nvidia_smi_log>\n<gpu></nvidia_smi_log>")
    assert (caught.value.line, caught.value.column) == (3, 8)


def test_deep_xml_does_no_harm() -> None:
    """A million nested elements are read or refused without a crash."""
    depth = 1_000_000
    text = "<nvidia_smi_log>" + "<a>" * depth + "</a>" * depth + "</nvidia_smi_log>"
    assert _read(text).reports[0].gpus == ()


@pytest.mark.parametrize("word", ["N/A", "[N/A]", "ERR!", "Unknown Error", ""])
def test_memory_in_use_that_cannot_be_read(word: str) -> None:
    """A word in place of the memory in use is kept as unreadable, for GPU and instance alike."""
    memory = f"<fb_memory_usage><total>9728 MiB</total><used>{word}</used></fb_memory_usage>"
    gpu = _gpu(
        "<mig_devices><mig_device><gpu_instance_id>3</gpu_instance_id>"
        f"{memory}</mig_device></mig_devices>{memory}"
    )
    assert (gpu.used_memory_mib, gpu.used_unreadable) == (None, True)
    assert gpu.instances is not None
    assert [(i.used_memory_mib, i.used_unreadable) for i in gpu.instances] == [(None, True)]


def test_memory_in_use_belongs_to_the_instance() -> None:
    """Both compute instances of a GPU instance show the same memory; it counts once."""
    device = (
        "<mig_device><gpu_instance_id>3</gpu_instance_id><fb_memory_usage><used>15000 MiB</used>"
        "</fb_memory_usage></mig_device>"
    )
    gpu = _gpu(f"<mig_devices>{device * 2}</mig_devices>")
    assert gpu.instances is not None
    assert [i.used_memory_mib for i in gpu.instances] == [15000]


def test_without_any_memory_reading_none_is_unreadable() -> None:
    """A board that shows no memory at all has no reading that failed."""
    assert not _gpu("<processes></processes>").used_unreadable


@pytest.mark.parametrize(
    ("processes", "unreadable"),
    [
        ("<processes></processes>", False),
        ("<processes>N/A</processes>", True),
        ("", True),
        ("<processes><process_info><pid>N/A</pid></process_info></processes>", True),
        ("<processes><process_info><pid>7</pid></process_info></processes>", False),
    ],
)
def test_processes_that_cannot_be_read(processes: str, unreadable: bool) -> None:  # noqa: FBT001
    """A list that is a word, or a process without number, is a process that may be there."""
    assert _gpu(processes).processes_unreadable == unreadable


def test_an_unreadable_process_on_an_instance() -> None:
    """It is on its instance, not on the GPU as a whole."""
    gpu = _gpu(
        "<processes><process_info><gpu_instance_id>3</gpu_instance_id><pid>ERR!</pid>"
        "</process_info></processes>"
    )
    assert gpu.instances == (InstanceReport(instance_id=3, processes_unreadable=True),)
    assert not gpu.processes_unreadable


@pytest.mark.parametrize(
    ("mode", "devices", "problem"),
    [
        ("Enabled", "<mig_devices>None</mig_devices>", None),
        ("Enabled", "<mig_devices></mig_devices>", None),
        ("Disabled", "<mig_devices>[N/A]</mig_devices>", None),
        ("N/A", "", None),
        ("Enabled", "<mig_devices>[N/A]</mig_devices>", "its MIG instances cannot be read"),
        ("Enabled", "<mig_devices>Unknown Error</mig_devices>", "its MIG instances cannot be read"),
        ("Enabled", "", "its MIG instances cannot be read"),
        ("Insufficient Permissions", "", "its MIG instances cannot be read"),
        (
            "Enabled",
            "<mig_devices><mig_device><gpu_instance_id>N/A</gpu_instance_id></mig_device></mig_devices>",
            "its MIG instances cannot be read",
        ),
    ],
)
def test_instances_that_cannot_be_read(mode: str, devices: str, problem: str | None) -> None:
    """With MIG on, or perhaps on, only ``None`` or an empty list means that none stands."""
    gpu = _gpu(f"<mig_mode><current_mig>{mode}</current_mig></mig_mode>{devices}")
    assert gpu.problem == problem
