"""The CDI file: what is in it, that a runtime takes it, and that it is never half written."""

import errno
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.device_plugin.serving import MIG, ManualClock, offer, shared

from partita.adapters.device_plugin import cdi, node_files
from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.node_files import NodeRoots
from partita.adapters.device_plugin.server import DevicePluginServer
from partita.config.serving_options import DeviceListStrategy, ServingOptions
from partita.model.slice import Slice

_NAME = "k8s.device-plugin.nvidia.com-gpu.json"
_CDI = ServingOptions(device_list_strategies=(DeviceListStrategy.CDI_CRI,))

# Fields of CDI 1.1.0 and the version that brought each, where that is not the first one.
_EDITS = {
    "env": "0.3.0",
    "deviceNodes": "0.3.0",
    "mounts": "0.3.0",
    "hooks": "0.3.0",
    "additionalGids": "0.7.0",
    "intelRdt": "0.7.0",
    "netDevices": "1.1.0",
}
_NODE = {
    "path": "0.3.0",
    "hostPath": "0.5.0",
    "type": "0.3.0",
    "major": "0.3.0",
    "minor": "0.3.0",
    "fileMode": "0.3.0",
    "permissions": "0.3.0",
    "uid": "0.3.0",
    "gid": "0.3.0",
}
_MOUNT = {"hostPath": "0.3.0", "containerPath": "0.3.0", "options": "0.3.0", "type": "0.4.0"}
_HOOK = dict.fromkeys(("hookName", "path", "args", "env", "timeout"), "0.3.0")
_HOOK_NAMES = {"prestart", "createRuntime", "createContainer", "startContainer", "poststart"}


def _needed(document: dict[str, Any]) -> str:
    """Return the lowest version that has every field; fails on what no version has."""
    assert document.keys() == {"cdiVersion", "kind", "devices", "containerEdits"}
    assert re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9_-]+", document["kind"])
    assert document["devices"]
    versions = set(_versions_of_edits(document["containerEdits"]))
    for device in document["devices"]:
        assert device.keys() == {"name", "containerEdits"}
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_.:-]*[A-Za-z0-9]", device["name"])
        versions.update(_versions_of_edits(device["containerEdits"]))
    return max(versions)


def _versions_of_edits(edits: dict[str, Any]) -> list[str]:
    assert edits  # an empty one is refused
    versions = [_EDITS[key] for key in edits]
    for key, fields in (("deviceNodes", _NODE), ("mounts", _MOUNT), ("hooks", _HOOK)):
        versions += [fields[field] for one in edits.get(key, []) for field in one]
    assert all("=" in line for line in edits.get("env", []))
    assert {hook["hookName"] for hook in edits.get("hooks", [])} <= _HOOK_NAMES
    return versions


def _touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.fixture
def roots(tmp_path: Path) -> NodeRoots:
    """Return a node with a GPU, a GPU in MIG mode and a driver."""
    driver = tmp_path / "node"
    libraries = "usr/lib/x86_64-linux-gnu"
    _touch(tmp_path / "dev", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")
    _touch(tmp_path / "dev/nvidia-caps", "nvidia-cap66", "nvidia-cap67")
    _touch(driver / libraries, "libcuda.so.580.65.06", "libnvidia-ml.so.580.65.06")
    _touch(driver / libraries, "libcuda.so.570.00", "libc.so.6", "libnvidia-ml.so.1.txt")
    (driver / libraries / "libcuda.so.1").symlink_to("libcuda.so.580.65.06")
    (driver / "lib64").symlink_to("usr/lib/x86_64-linux-gnu")
    _touch(driver, "usr/bin/nvidia-smi", "usr/bin/bash")
    proc = tmp_path / "proc/driver/nvidia"
    mig = proc / "capabilities/gpu1/mig/gi7"
    (mig / "ci0").mkdir(parents=True)
    (mig / "access").write_text("DeviceFileMinor: 66\nDeviceFileMode: 292\n")
    (mig / "ci0/access").write_text("DeviceFileMinor: 67\n")
    (proc / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        "GCC version:  gcc version 12.2.0\n"
    )
    return NodeRoots(
        dev=tmp_path / "dev", proc=tmp_path / "proc", driver=driver, node=tmp_path / "node"
    )


def _gpu(uuid: str = "GPU-a", minor: int | None = 0) -> Slice:
    return Slice(device_id=uuid, resource="r/gpu", gpu_uuid=uuid, gpu_index=0, minor=minor)


def _mig(instance: int = 7, compute_instance: int | None = 0) -> Slice:
    return Slice(
        device_id=f"MIG-{instance}::0",
        resource="r/mig",
        gpu_uuid="GPU-b",
        gpu_index=1,
        minor=1,
        instance_id=instance,
        compute_instance_id=compute_instance,
    )


async def _written(folder: Path, roots: NodeRoots, *slices: Slice) -> dict[str, Any]:
    delivery = Delivery(_CDI, roots, cdi_folder=folder)
    await delivery.prepare(slices)
    return _read(folder)


def _read(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / _NAME).read_text(encoding="utf-8"))
    assert document["cdiVersion"] == _needed(document)
    return document


async def test_the_file_describes_every_device(tmp_path: Path, roots: NodeRoots) -> None:
    """Device nodes by device; control nodes and the driver for all; nothing by NVIDIA's hook."""
    document = await _written(tmp_path / "cdi", roots, _gpu(), _mig())

    libraries = "/usr/lib/x86_64-linux-gnu"
    mounts = {
        "/usr/bin/nvidia-smi": "/usr/bin/nvidia-smi",
        f"{libraries}/libcuda.so.1": f"{libraries}/libcuda.so.580.65.06",
        f"{libraries}/libcuda.so.580.65.06": f"{libraries}/libcuda.so.580.65.06",
        f"{libraries}/libnvidia-ml.so.580.65.06": f"{libraries}/libnvidia-ml.so.580.65.06",
    }
    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    mig_nodes = ["/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"]
    assert document == {
        "cdiVersion": "0.3.0",
        "kind": "k8s.device-plugin.nvidia.com/gpu",
        "devices": [
            {
                "name": "GPU-a",
                "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]},
            },
            {
                "name": "MIG-7",
                "containerEdits": {"deviceNodes": [{"path": path} for path in mig_nodes]},
            },
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": "/dev/nvidiactl"}, {"path": "/dev/nvidia-uvm"}],
            "mounts": [
                {"hostPath": real, "containerPath": name, "options": options}
                for name, real in mounts.items()
            ],
        },
    }


async def test_a_driver_elsewhere_is_named_as_the_node_names_it(
    tmp_path: Path, roots: NodeRoots
) -> None:
    """A path that differs on the node needs a newer version of the format."""
    elsewhere = NodeRoots(
        dev=roots.dev,
        proc=roots.proc,
        driver=roots.driver,
        node=roots.node,
        dev_on_node="/run/nvidia/driver/dev",
        driver_on_node="/run/nvidia/driver",
    )
    document = await _written(tmp_path / "cdi", elsewhere, _gpu())

    assert document["cdiVersion"] == "0.5.0"
    (device,) = document["devices"]
    assert device["containerEdits"]["deviceNodes"] == [
        {"path": "/dev/nvidia0", "hostPath": "/run/nvidia/driver/dev/nvidia0"}
    ]
    first = document["containerEdits"]["mounts"][0]
    assert first["hostPath"] == "/run/nvidia/driver/usr/bin/nvidia-smi"
    assert first["containerPath"] == "/usr/bin/nvidia-smi"


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("/usr/bin/nvidia-cdi-hook", ["nvidia-cdi-hook", "update-ldcache"]),
        ("/opt/nvidia-ctk", ["nvidia-ctk", "hook", "update-ldcache"]),
    ],
)
async def test_the_hook_is_used_when_the_node_has_it(
    tmp_path: Path, roots: NodeRoots, path: str, arguments: list[str]
) -> None:
    """It tells the container's linker of the folder; either of NVIDIA's programs can do it."""
    _touch(roots.node, path.lstrip("/"))
    options = ServingOptions(
        device_list_strategies=_CDI.device_list_strategies, nvidia_cdi_hook_path=path
    )
    await Delivery(options, roots, cdi_folder=tmp_path / "cdi").prepare([_gpu()])

    assert _read(tmp_path / "cdi")["containerEdits"]["hooks"] == [
        {
            "hookName": "createContainer",
            "path": path,
            "args": [*arguments, "--folder", "/usr/lib/x86_64-linux-gnu"],
        }
    ]


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        (_gpu("GPU-x", minor=None), "its minor number is unknown"),
        (_gpu("GPU-x", minor=9), "there is no {dev}/nvidia9"),
        (
            _mig(8),
            "cannot read {proc}/driver/nvidia/capabilities/gpu1/mig/gi8/access: {missing}",
        ),
        (_mig(7, None), "its compute instance is unknown"),
    ],
)
async def test_a_device_without_its_nodes_is_left_out_and_told(
    tmp_path: Path,
    roots: NodeRoots,
    lacking: Slice,
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The others are served; the reason is logged once."""
    delivery = Delivery(_CDI, roots, cdi_folder=tmp_path / "cdi")
    with caplog.at_level(logging.WARNING):
        await delivery.prepare([_gpu(), lacking])
        await delivery.prepare([_gpu(), lacking])
        await delivery.prepare([_gpu("GPU-c"), _gpu(), lacking])

    names = [device["name"] for device in _read(tmp_path / "cdi")["devices"]]
    assert names == ["GPU-a", "GPU-c"]
    missing = os.strerror(errno.ENOENT)
    reason = why.format(dev=roots.dev, proc=roots.proc, missing=missing)
    said = f"its device nodes are not there: {reason}"
    assert delivery.undeliverable == {lacking.device: said}
    assert [record.message for record in caplog.records] == [
        f"cannot be given to containers: {lacking.device}: {said}"
    ]


async def test_without_a_device_an_older_file_stays(tmp_path: Path, roots: NodeRoots) -> None:
    """Containers that restart may need it; a file without devices would be refused."""
    before = await _written(tmp_path / "cdi", roots, _gpu())

    assert await _written(tmp_path / "cdi", roots) == before


async def test_without_the_file_no_device_can_be_delivered(
    tmp_path: Path, roots: NodeRoots
) -> None:
    """A runtime would find no such name; nothing is raised."""
    _touch(tmp_path, "file")
    delivery = Delivery(_CDI, roots, cdi_folder=tmp_path / "file")
    await delivery.prepare([_gpu(), _gpu("GPU-x", minor=9)])

    why = delivery.undeliverable
    assert why["GPU-a"].startswith(f"cannot write the CDI file in {tmp_path}/file: ")
    assert why["GPU-x"] == f"its device nodes are not there: there is no {roots.dev}/nvidia9"


def test_the_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails the old file is whole, and nothing else is left in the folder."""
    cdi.write(tmp_path, {"number": 1})

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(cdi.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        cdi.write(tmp_path, {"number": 2})

    assert [path.name for path in tmp_path.iterdir()] == [_NAME]
    assert json.loads((tmp_path / _NAME).read_text()) == {"number": 1}


def test_what_is_written_already_is_left_alone(tmp_path: Path) -> None:
    """The container runtime reads the folder again on each change; no change, no work."""
    assert cdi.write(tmp_path, {"number": 1})
    assert not cdi.write(tmp_path, {"number": 1})
    assert cdi.write(tmp_path, {"number": 2})


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_links_in_a_circle_are_left_out(tmp_path: Path, name: str) -> None:
    """Beside them the driver is found; a folder may be such a link too."""
    folder = tmp_path / "usr/lib64"
    _touch(folder, "libcuda.so.580.65.06")
    (folder / name).symlink_to(name)
    (tmp_path / "lib64").symlink_to("lib64")
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/nvidia-smi").symlink_to("nvidia-smi")
    roots = NodeRoots(proc=tmp_path, driver=tmp_path)

    found = [one.container_path for one in node_files.driver_files(roots)]
    assert found == ["/usr/lib64/libcuda.so.580.65.06"]


def test_links_of_a_driver_elsewhere_stay_inside_it(tmp_path: Path) -> None:
    """A link that begins with / means the root of the driver, not of this program."""
    folder = tmp_path / "usr/lib64"
    _touch(folder, "libcuda.so.580.65.06")
    (folder / "libcuda.so.1").symlink_to("/usr/lib64/libcuda.so.580.65.06")
    (folder / "libcuda.so").symlink_to("/nowhere/libcuda.so.580.65.06")
    roots = NodeRoots(proc=tmp_path, driver=tmp_path, driver_on_node="/run/driver")

    found = {one.container_path: one.host_path for one in node_files.driver_files(roots)}
    real = "/run/driver/usr/lib64/libcuda.so.580.65.06"
    assert found == {
        "/usr/lib64/libcuda.so.1": real,
        "/usr/lib64/libcuda.so.580.65.06": real,
    }


def test_without_the_version_of_the_driver_its_files_are_found_by_their_names(
    tmp_path: Path, roots: NodeRoots
) -> None:
    """A driver that does not tell its version still has libraries that end in one."""
    silent = NodeRoots(dev=roots.dev, proc=tmp_path / "none", driver=roots.driver)
    found = {Path(file.container_path).name for file in node_files.driver_files(silent)}

    assert found >= {"libcuda.so.580.65.06", "libcuda.so.570.00", "libcuda.so.1"}
    assert "libc.so.6" not in found


async def test_device_nodes_are_looked_for_when_they_are_passed(
    tmp_path: Path, roots: NodeRoots
) -> None:
    """No CDI file is written when nobody asked for CDI."""
    delivery = Delivery(ServingOptions(pass_device_specs=True), roots, cdi_folder=tmp_path / "cdi")
    await delivery.prepare([_gpu()])
    found = delivery.response([_gpu()], "id")

    paths = [one.container_path for one in found.devices]
    assert paths == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"]
    assert not (tmp_path / "cdi").exists()


async def test_an_offer_is_described_before_the_kubelet_hears_of_it(
    tmp_path: Path, roots: NodeRoots
) -> None:
    """The file is there when ``offer`` returns, with the devices of all resources."""
    delivery = Delivery(_CDI, roots, cdi_folder=tmp_path / "cdi")
    server = DevicePluginServer(tmp_path, ManualClock(), lambda _: (), delivery)
    await server.offer([shared("GPU-a", 2), offer("GPU-c", resource=MIG)])
    names = [device["name"] for device in _read(tmp_path / "cdi")["devices"]]

    assert names == ["GPU-a", "GPU-c"]
