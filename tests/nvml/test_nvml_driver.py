"""What the driver over NVML does with a library that follows NVIDIA's rules."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest
from tests.nvml.world import ALWAYS, HANG, World, gpu_uuid

from partita.adapters.nvml import NvmlDriver, reset_with_nvidia_smi
from partita.errors import DriverError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import DriverFailure, HealthEvent, ModeChange, Recovery

MakeWorld = Callable[..., World]
MakeDriver = Callable[[World], NvmlDriver]

A100, H100, L4 = "A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA L4"
FIRST, SECOND = gpu_uuid(0), gpu_uuid(1)
LEFT = Placement(start=0, size=4)
RIGHT = Placement(start=4, size=4)


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """Return a node with an A100 that has MIG on, and an H100."""
    world = make_world(A100, H100)
    world.turn_mig_on(0)
    return world


@pytest.fixture
def driver(world: World, make_driver: MakeDriver) -> NvmlDriver:
    """Return a driver over that node."""
    return make_driver(world)


def refusal(call: Callable[[], object]) -> str:
    """Return the failure of a call that must be refused."""
    with pytest.raises(DriverError) as caught:
        call()
    return caught.value.failure


# ---- Listing ------------------------------------------------------------------------------------


def test_a_gpu_is_listed_with_its_identity(driver: NvmlDriver, tmp_path: Path) -> None:
    """UUID, product, PCI ids and memory come from NVML, the NUMA node from the kernel."""
    folder = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("1\n", encoding="ascii")
    gpu = driver.gpus()[0]
    assert (gpu.uuid, gpu.product) == (FIRST, "NVIDIA A100-SXM4-40GB")
    assert (gpu.pci_device, gpu.pci_bus_id) == ("0x20B010DE", "00000000:01:00.0")
    assert (gpu.numa_node, gpu.memory_bytes) == (1, 40960 << 20)
    assert gpu.reserved_memory_bytes == 500 << 20


@pytest.mark.parametrize("text", [None, "-1\n", "?"])
def test_an_unknown_numa_node_is_none(driver: NvmlDriver, tmp_path: Path, text: str | None) -> None:
    """Without a NUMA node the kernel writes -1, and on some systems it has no such file."""
    folder = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "numa_node").write_text(text, encoding="ascii")
    assert driver.gpus()[0].numa_node is None


def test_old_drivers_do_not_tell_reserved_memory(world: World, driver: NvmlDriver) -> None:
    """Where the second version of the memory call is missing, the total is still known."""
    world.fail("nvmlDeviceGetMemoryInfo_v2", 13, times=ALWAYS)
    gpu = driver.gpus()[0]
    assert (gpu.memory_bytes, gpu.reserved_memory_bytes) == (40960 << 20, None)


def test_a_gpu_that_was_never_seen_is_listed_nevertheless(
    world: World, make_driver: MakeDriver
) -> None:
    """A GPU that is lost before the driver starts has no identity but its index."""
    world.lose(1)
    lost = make_driver(world).gpus()[1]
    assert (lost.uuid, lost.index, lost.failure) == ("unknown-1", 1, DriverFailure.GPU_IS_LOST)


def test_without_nvml_there_is_no_driver(make_world: MakeWorld) -> None:
    """A driver that is not loaded is a refusal with a hint, at the start."""
    make_world(A100).fail("nvmlInitWithFlags", 9)
    assert refusal(NvmlDriver) == DriverFailure.UNKNOWN.value


@pytest.mark.parametrize("code", [3, 13])
def test_a_minor_number_that_is_not_told_is_none(
    world: World, driver: NvmlDriver, code: int
) -> None:
    """Where NVML has no device node for a GPU, it is listed without a minor number."""
    assert [gpu.minor for gpu in driver.gpus()] == [0, 1]
    world.fail("nvmlDeviceGetMinorNumber", code, times=ALWAYS)
    assert [(gpu.minor, gpu.failure) for gpu in driver.gpus()] == [(None, None)] * 2


# ---- Recovery -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "recovery"),
    [
        (0, Recovery.NONE),
        (1, Recovery.RESET),
        (2, Recovery.REBOOT),
        (3, Recovery.DRAIN),
        (4, Recovery.DRAIN),
        (5, Recovery.REBOOT),
        (6, Recovery.RESET),
        (7, Recovery.REBOOT),
        (99, Recovery.REBOOT),
    ],
)
def test_what_the_driver_recommends(
    world: World, driver: NvmlDriver, action: int, recovery: Recovery
) -> None:
    """The recovery action is a number of nvml.h; one that is not known for sure means a reboot."""
    world.tell(0, recovery=action)
    assert [gpu.recovery for gpu in driver.gpus()] == [recovery, Recovery.NONE]


@pytest.mark.parametrize("name", ["remap_pending", "retirement_pending"])
def test_older_drivers_tell_what_waits_for_a_reset(
    world: World, driver: NvmlDriver, name: str
) -> None:
    """Without a recovery action, rows to be remapped or pages to be retired ask for a reset."""
    world.tell(0, **{"recovery": None, "remap_pending": None, name: 0})
    assert driver.gpus()[0].recovery is Recovery.NONE
    world.tell(0, **{name: 1})
    assert driver.gpus()[0].recovery is Recovery.RESET
    driver.reset(FIRST)
    assert driver.gpus()[0].recovery is Recovery.NONE


@pytest.mark.parametrize("code", [0, 2, 3, 13])
def test_a_driver_that_tells_nothing_of_recovery(
    world: World, driver: NvmlDriver, code: int
) -> None:
    """Without the fields, or without the call, what a GPU needs is unknown, and it is usable."""
    world.tell(0, recovery=None, remap_pending=None)
    if code:
        world.fail("nvmlDeviceGetFieldValues", code, times=ALWAYS)
    assert [driver.gpus()[0].recovery, driver.gpus()[0].failure] == [None, None]


# ---- Instances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [A100, H100, "NVIDIA A30"])
def test_one_compute_instance_takes_all_of_a_gpu_instance(
    make_world: MakeWorld, make_driver: MakeDriver, model: str
) -> None:
    """Whatever the profile, its compute instance leaves no processor unused."""
    world = make_world(model)
    world.turn_mig_on(0)
    driver = make_driver(world)
    for row in world.rows("profile"):
        start, size = row[13].split(",")[0].split(":")[0], row[12]
        where = Placement(start=int(start), size=int(size))
        created = driver.create_instance(FIRST, int(row[2]), where)
        (compute,) = world.rows("compute-instance")
        assert (compute[6], len(created.mig_devices)) == (row[3], 1)
        driver.destroy_instance(FIRST, created.instance_id)


def test_a_gpu_instance_without_its_compute_instance_is_undone(
    world: World, driver: NvmlDriver
) -> None:
    """When the compute instance cannot be created, the GPU instance goes as well."""
    world.fail("nvmlGpuInstanceCreateComputeInstance", 23)
    failure = refusal(lambda: driver.create_instance(FIRST, 9, LEFT))
    assert failure == DriverFailure.INSUFFICIENT_RESOURCES.value
    assert driver.gpus()[0].instances == ()
    assert driver.create_instance(FIRST, 9, LEFT).placement == LEFT


@pytest.mark.parametrize(
    "call",
    ["nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetUUID", "nvmlDeviceGetComputeInstanceId"],
)
def test_a_mig_device_that_cannot_be_asked_is_not_absent(
    world: World, driver: NvmlDriver, call: str
) -> None:
    """For that look the GPU has a failure: whoever believed it would take a device for gone."""
    instance = driver.create_instance(FIRST, 9, LEFT)
    world.fail(call, 6, times=ALWAYS)
    assert driver.gpus()[0].failure is DriverFailure.NOT_FOUND
    world.recover()
    assert driver.gpus()[0].instances == (instance,)


def test_instances_are_listed_before_their_mig_devices(world: World, driver: NvmlDriver) -> None:
    """What another program creates in between is not seen at all, and not without its device."""
    world.fail("nvmlDeviceGetMaxMigDeviceCount", 4)
    world.fail("nvmlDeviceGetGpuInstances", 19)
    failures = [driver.gpus()[0].failure for _ in range(3)]
    assert failures == [DriverFailure.IN_USE, DriverFailure.NO_PERMISSION, None]


def test_no_part_of_a_used_instance_is_destroyed(world: World, driver: NvmlDriver) -> None:
    """With a process on it an instance keeps every compute instance."""
    instance = driver.create_instance(FIRST, 9, RIGHT)
    world.run(0, 4711, instance=instance.instance_id)
    failure = refusal(lambda: driver.destroy_instance(FIRST, instance.instance_id))
    assert failure == DriverFailure.IN_USE.value
    assert driver.gpus()[0].instances == (instance,)


def test_the_refusal_says_what_to_do(driver: NvmlDriver) -> None:
    """The error names the GPU, what NVML said, and a way out."""
    driver.create_instance(FIRST, 9, LEFT)
    with pytest.raises(DriverError, match="Insufficient Resources\nhint: destroy what") as caught:
        driver.create_instance(FIRST, 5, LEFT)
    assert caught.value.uuid == FIRST


# ---- Mode and reset -----------------------------------------------------------------------------


def test_an_idle_ampere_board_is_reset_by_the_driver(
    make_world: MakeWorld, make_driver: MakeDriver
) -> None:
    """Outside of a virtual machine the mode is there at once."""
    driver = make_driver(make_world(A100))
    assert driver.set_mig_mode(FIRST, MigMode.ON) is ModeChange.DONE
    assert driver.gpus()[0].mig_mode is MigMode.ON


def test_the_driver_lets_go_of_nvml_for_a_reset(
    make_world: MakeWorld, make_driver: MakeDriver
) -> None:
    """A reset needs NVML closed, also under a watcher, who then goes on watching."""
    world = make_world(A100, by_user=True)
    driver = make_driver(world)
    assert driver.set_mig_mode(FIRST, MigMode.ON) is ModeChange.RESET_REQUIRED
    events: list[HealthEvent] = []
    watcher = threading.Thread(target=lambda: events.extend(driver.wait_for_events(20)))
    watcher.start()
    driver.reset(FIRST)
    assert driver.gpus()[0].mig_mode is MigMode.ON
    world.raise_xid(0, 94)
    watcher.join()
    assert [(event.uuid, event.xid) for event in events] == [(FIRST, 94)]


def test_a_failed_reset_leaves_the_driver_usable(world: World) -> None:
    """What the reset command says is passed on, and NVML is open again."""

    def refuse(_: str) -> None:
        raise subprocess.CalledProcessError(19, "nvidia-smi", output="GPU is in use by others")

    driver = NvmlDriver(reset_command=refuse)
    assert refusal(lambda: driver.reset(FIRST)) == DriverFailure.IN_USE.value
    assert len(driver.gpus()) == len(world.rows("gpu"))
    driver.close()


def test_a_reset_that_hangs_is_ended(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a timeout, and NVML is open again."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 600\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    driver = NvmlDriver(reset_command=lambda uuid: reset_with_nvidia_smi(uuid, timeout_seconds=0.1))
    assert refusal(lambda: driver.reset(FIRST)) == DriverFailure.TIMEOUT.value
    assert len(driver.gpus()) == len(world.rows("gpu"))
    driver.close()


def test_nvml_that_does_not_open_after_a_reset_is_tried_again(
    world: World, driver: NvmlDriver
) -> None:
    """Until it opens every call is refused; then all is as before."""
    world.fail("nvmlInitWithFlags", 999, times=2)
    assert refusal(lambda: driver.reset(FIRST)) == DriverFailure.UNKNOWN.value
    assert refusal(lambda: driver.wait_for_events(0)) == DriverFailure.UNKNOWN.value
    assert refusal(driver.gpus) == DriverFailure.UNKNOWN.value
    assert [gpu.failure for gpu in driver.gpus()] == [None, None]
    world.raise_xid(1, 94)
    assert [event.uuid for event in driver.wait_for_events(1)] == [SECOND]


# ---- Processes and events -----------------------------------------------------------------------


def test_processes_of_every_kind_are_listed(world: World, driver: NvmlDriver) -> None:
    """Compute, graphics and MPS clients count, each with its instance and memory."""
    instance = driver.create_instance(FIRST, 19, Placement(start=6, size=1))
    world.run(0, 3, instance=instance.instance_id)
    world.run(0, 1, kind="G")
    world.run(0, 2, kind="M")
    world.run(1, 4)
    listed = [(p.process_id, p.instance_id) for p in driver.processes(FIRST)]
    assert listed == [(1, None), (2, None), (3, instance.instance_id)]
    assert {p.used_memory_bytes for p in driver.processes(FIRST)} == {1 << 30}


def test_an_event_names_its_instance(world: World, driver: NvmlDriver) -> None:
    """An XID of one instance says which, one of the GPU says none; a lost GPU is still named."""
    world.raise_xid(0, 13, instance=9)
    world.raise_xid(1, 79)
    world.lose(1)
    assert driver.wait_for_events(1) == (
        HealthEvent(uuid=FIRST, xid=13, instance_id=9),
        HealthEvent(uuid=SECOND, xid=79),
    )
    assert driver.wait_for_events(0.01) == ()


def test_a_lost_gpu_does_not_hide_the_xids_of_the_others(world: World, driver: NvmlDriver) -> None:
    """NVML fails every wait for a set with a lost GPU in it; the others are waited for still."""
    world.lose(1)
    assert driver.wait_for_events(0.01) == ()
    world.raise_xid(0, 94)
    assert [event.uuid for event in driver.wait_for_events(5)] == [FIRST]
    world.lose(1, lost=False)
    assert driver.wait_for_events(0) == ()
    world.raise_xid(1, 48)
    assert [event.uuid for event in driver.wait_for_events(5)] == [SECOND]


def test_a_wait_that_fails_for_long_is_a_refusal(world: World, driver: NvmlDriver) -> None:
    """When it fails for a new set as well, waiting is refused until it works again."""
    world.fail("nvmlEventSetWait_v2", 15, times=ALWAYS)
    assert refusal(lambda: driver.wait_for_events(1)) == DriverFailure.GPU_IS_LOST.value
    world.recover()
    assert driver.wait_for_events(0) == ()
    world.raise_xid(0, 94)
    assert [event.uuid for event in driver.wait_for_events(5)] == [FIRST]


def test_a_failure_does_not_lose_the_events_before_it(
    world: World, driver: NvmlDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given is handed on; the next wait tells of the failure."""
    wait = pynvml.nvmlEventSetWait_v2

    def give_one_and_fail(*arguments: Any) -> Any:
        given = wait(*arguments)
        world.fail("nvmlEventSetWait_v2", 999, times=2)
        return given

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", give_one_and_fail)
    world.raise_xid(0, 94)
    assert [event.xid for event in driver.wait_for_events(5)] == [94]
    assert refusal(lambda: driver.wait_for_events(0)) == DriverFailure.UNKNOWN.value


def test_a_gpu_that_comes_back_is_watched(world: World, make_driver: MakeDriver) -> None:
    """A GPU that was lost at the start is watched from when it is back."""
    world.lose(1)
    driver = make_driver(world)
    world.lose(1, lost=False)
    assert driver.wait_for_events(0) == ()
    world.raise_xid(1, 94)
    assert [event.uuid for event in driver.wait_for_events(1)] == [SECOND]


# ---- Other programs on the same library ---------------------------------------------------------

_READER = """
import json, pynvml
pynvml.nvmlInit()
seen = []
for index in range(pynvml.nvmlDeviceGetCount()):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    seen.append(pynvml.nvmlDeviceGetName(gpu))
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
        except pynvml.NVMLError_NotFound:
            continue
        whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
        assert pynvml.nvmlDeviceGetIndex(whole) == index
        memory = pynvml.nvmlDeviceGetMemoryInfo(mig).total >> 20
        seen.append([pynvml.nvmlDeviceGetName(mig), pynvml.nvmlDeviceGetUUID(mig), memory])
pynvml.nvmlShutdown()
print(json.dumps(seen))
"""
_CREATOR = f"""
from partita.adapters.nvml import NvmlDriver
from partita.model.placement import Placement
NvmlDriver().create_instance("{FIRST}", 9, Placement(start=4, size=4))
"""
_CHOOSER = """
import json, pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
chosen = []
for profile in (9, 14, 19):
    instance = pynvml.c_nvmlGpuInstance_t()
    create = pynvml._nvmlGetFunctionPointer("nvmlDeviceCreateGpuInstance")
    assert create(gpu, profile, pynvml.byref(instance)) == 0
    place = pynvml.nvmlGpuInstanceGetInfo(instance).placement
    chosen.append([place.start, place.size])
left = [pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, p) for p in (19, 14, 9, 0)]
print(json.dumps([chosen, left]))
"""
_PARTER = """
import pynvml
pynvml.nvmlInit()
instance = pynvml.c_nvmlGpuInstance_t()
create = pynvml._nvmlGetFunctionPointer("nvmlDeviceCreateGpuInstance")
assert create(pynvml.nvmlDeviceGetHandleByIndex(0), 9, pynvml.byref(instance)) == 0
for _ in range(2):
    pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
"""


def run_python(text: str, timeout: float = 30) -> str:
    """Run a program that finds the stub as ``libnvidia-ml.so.1``."""
    command = [sys.executable, "-c", text]
    return subprocess.run(  # noqa: S603 - no shell
        command, check=True, capture_output=True, text=True, timeout=timeout
    ).stdout


def test_other_programs_see_the_same_gpus(driver: NvmlDriver) -> None:
    """A program that knows nothing of us lists GPUs and MIG devices with names and memory."""
    (device,) = driver.create_instance(FIRST, 9, RIGHT).mig_devices
    assert json.loads(run_python(_READER)) == [
        "NVIDIA A100-SXM4-40GB",
        ["NVIDIA A100-SXM4-40GB MIG 3g.20gb", device.uuid, 19968],
        "NVIDIA H100 80GB HBM3",
    ]


def test_two_processes_share_what_stands(driver: NvmlDriver) -> None:
    """What one process creates the other sees, and is in the way."""
    run_python(_CREATOR)
    assert [str(instance.placement) for instance in driver.gpus()[0].instances] == ["4:4"]
    failure = refusal(lambda: driver.create_instance(FIRST, 9, RIGHT))
    assert failure == DriverFailure.INSUFFICIENT_RESOURCES.value


def test_an_instance_that_others_parted_has_a_mig_device_per_part(driver: NvmlDriver) -> None:
    """Compute instances that another program made are listed, each with its id and index."""
    driver.create_instance(FIRST, 19, Placement(start=0, size=1))
    run_python(_PARTER)
    whole, parted = driver.gpus()[0].instances
    assert [(d.index, d.compute_instance_id) for d in whole.mig_devices] == [(0, 0)]
    assert [(d.index, d.compute_instance_id) for d in parted.mig_devices] == [(1, 0), (2, 1)]


@pytest.mark.usefixtures("world")
def test_without_a_placement_the_stub_chooses_one() -> None:
    """It takes the placement that costs least: a 3g stands right, as in published logs."""
    chosen, left = json.loads(run_python(_CHOOSER))
    assert chosen[0] == [4, 4]
    assert left[-1] == 0
    assert left[2] == 0


def test_a_call_can_hang(world: World) -> None:
    """An injected hang stops the caller until it is killed, and nobody else."""
    world.fail("nvmlDeviceGetCount_v2", HANG, times=1)
    with pytest.raises(subprocess.TimeoutExpired):
        run_python(_READER, timeout=1)
    assert json.loads(run_python(_READER))
