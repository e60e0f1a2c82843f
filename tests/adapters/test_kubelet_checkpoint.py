"""The kubelet's checkpoint becomes claims: which device each container was given."""

import json
from collections.abc import Callable

import pytest

from partita.adapters import kubelet_checkpoint
from partita.config.untyped_parser import parse
from partita.errors import InputError
from partita.model.report import DeviceClaim, Observation

CaseText = Callable[[str], str]


def _read(text: str) -> Observation:
    (document,) = parse(text, path="some.json")
    assert kubelet_checkpoint.recognises(document.value)
    return kubelet_checkpoint.read(document, node="oak")


def test_devices_by_numa_node(case_text: CaseText) -> None:
    """Devices of all NUMA nodes belong to the claim; other vendors' devices are noted."""
    assert _read(case_text("checkpoint/current.json")) == Observation(
        checkpoints=frozenset({"oak"}),
        claims=(
            DeviceClaim(
                node="oak",
                pod_uid="5d0c7f6e-0000-4000-8000-00000000a001",
                container="main",
                resource="nvidia.com/mig-1g.10gb",
                device_ids=("MIG-b0000001-1111-5222-8333-444444444444",),
            ),
            DeviceClaim(
                node="oak",
                pod_uid="5d0c7f6e-0000-4000-8000-00000000a002",
                container="trainer",
                resource="nvidia.com/gpu",
                device_ids=("GPU-aa::0", "GPU-bb::3"),
            ),
        ),
        notes=("node oak: skipped devices of resource rdma/hca: 1",),
    )


def test_devices_as_list(case_text: CaseText) -> None:
    """Old kubelets wrote the devices as a list."""
    (claim,) = _read(case_text("checkpoint/old_list.json")).claims
    assert claim.device_ids == ("GPU-aa", "GPU-bb")


def test_no_devices_given() -> None:
    """A kubelet that gave out nothing writes null."""
    text = '{"Data": {"PodDeviceEntries": null, "RegisteredDevices": {}}, "Checksum": 0}'
    assert _read(text) == Observation(
        checkpoints=frozenset({"oak"}),
        notes=("node oak: the kubelet remembers no NVIDIA device that a pod holds",),
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("PodUID", None, "checkpoint.Data.PodDeviceEntries[0]: PodUID is missing"),
        (
            "DeviceIDs",
            5,
            "checkpoint.Data.PodDeviceEntries[0].DeviceIDs: expected a mapping, got 5",
        ),
        (
            "DeviceIDs",
            {"0": [1]},
            "checkpoint.Data.PodDeviceEntries[0].DeviceIDs['0'][0]: expected text, got 1",
        ),
    ],
)
def test_unusable_entry(case_text: CaseText, key: str, value: object, message: str) -> None:
    """An entry that lacks a field or has a wrong type is an error with its path."""
    raw = json.loads(case_text("checkpoint/current.json"))
    raw["Data"]["PodDeviceEntries"][0][key] = value
    with pytest.raises(InputError) as caught:
        _read(json.dumps(raw))
    assert caught.value.message == message
    assert "kubelet_internal_checkpoint" in caught.value.hint
