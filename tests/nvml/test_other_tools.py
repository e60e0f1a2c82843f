"""Tools of others see on the stub library what they see on a driver.

They are run, never imported: nvitop's command is under the GPL.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.nvml.world import World, gpu_uuid

from partita.adapters.nvml import NvmlDriver
from partita.model.placement import Placement

A100, H100, L4 = "A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA L4"
MINUTE = 60_000_000  # in microseconds


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Return a node with three GPUs, of which the first has MIG on."""
    world = make_world(A100, H100, L4)
    world.turn_mig_on(0)
    return world


@pytest.fixture
def instance(world: World, make_driver: Callable[[World], NvmlDriver]) -> int:
    """Return the id of an instance on the first GPU."""
    driver = make_driver(world)
    return driver.create_instance(gpu_uuid(0), 9, Placement(start=4, size=4)).instance_id


def run_tool(name: str, *arguments: str) -> str:
    """Return what a tool prints; without the tool the test is skipped, but on CI it fails."""
    beside = Path(sys.executable).parent  # where the environment of the tests has its commands
    command = shutil.which(name, path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    if command is None and os.environ.get("CI") == "1":
        pytest.fail(f"not installed: {name}")
    if command is None:
        pytest.skip(f"not installed: {name}")
    done = subprocess.run(  # noqa: S603 - no shell
        [command, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def gpustat() -> list[Any]:
    """Return the GPUs that gpustat sees."""
    gpus: list[Any] = json.loads(run_tool("gpustat", "--json"))["gpus"]
    return gpus


# ---- gpustat ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("world")
def test_gpustat_prints_every_gpu() -> None:
    """One line per GPU, with what each is."""
    _, *lines = run_tool("gpustat", "--show-all", "--no-color").rstrip().splitlines()
    assert [line[:7] for line in lines] == ["[0] NVI", "[1] NVI", "[2] NVI"]
    assert "NVIDIA L4" in lines[2]


def test_gpustat_reads_what_a_gpu_tells(world: World) -> None:
    """Temperature, power, utilisation, memory and processes are those of the world."""
    world.tell(1, temperature=66, power=301_000, utilization=87, fan=44)
    world.run(1, os.getpid())
    gpu = gpustat()[1]
    assert (gpu["temperature.gpu"], gpu["power.draw"], gpu["fan.speed"]) == (66, 301, 44)
    assert (gpu["utilization.gpu"], gpu["enforced.power.limit"]) == (87, 400)
    assert (gpu["memory.used"], gpu["memory.total"]) == (1024, 81559)
    assert [process["pid"] for process in gpu["processes"]] == [os.getpid()]


def test_gpustat_sees_no_utilisation_in_mig_mode(world: World, instance: int) -> None:
    """A GPU in MIG mode has processes, but nobody can say how busy it is."""
    world.run(0, os.getpid(), instance=instance)
    gpu = gpustat()[0]
    assert (gpu["utilization.gpu"], gpu["memory.used"]) == (None, 1024)
    assert [process["pid"] for process in gpu["processes"]] == [os.getpid()]


def test_gpustat_sees_that_a_gpu_is_lost(world: World) -> None:
    """A lost GPU is listed as such, the others as ever."""
    world.lose(1)
    names = [gpu["name"] for gpu in gpustat()]
    assert (len(names), "lost" in names[1], names[2]) == (3, True, "NVIDIA L4")


# ---- nvitop -------------------------------------------------------------------------------------


def test_nvitop_prints_gpus_mig_devices_and_processes(world: World, instance: int) -> None:
    """It shows what each GPU tells, the MIG device, and how much of a GPU each process uses."""
    world.tell(1, temperature=66, power=301_000, utilization=87, ecc_uncorrected=3)
    world.run(0, os.getpid(), instance=instance)
    world.run(1, os.getppid())
    later = time.time_ns() // 1000 + MINUTE
    world.sample_process(1, os.getppid(), at=later, processors=71, memory=35)
    shown = run_tool("nvitop", "--once", "--ascii")
    for text in (
        "66C",
        "301W / 400W",
        "87%",
        "580.95.05",
        "13.0",
        "3g.20gb",
        "Enabled",
        "Disabled",
    ):
        assert text in shown
    rows = {cells[2]: cells for cells in map(str.split, shown.splitlines()) if len(cells) > 9}
    assert rows[str(os.getppid())][1] == "1"
    assert rows[str(os.getppid())][5:8] == ["1024MiB", "71", "35"]


def test_nvitop_goes_on_with_a_lost_gpu(world: World) -> None:
    """A lost GPU is shown as such, and does not end the rest."""
    world.lose(1)
    shown = run_tool("nvitop", "--once", "--ascii")
    assert "GPU is Lost" in shown
    assert "L4" in shown


# ---- NVIDIA's own bindings ----------------------------------------------------------------------

_CALLER = """
import inspect, json, pynvml
pynvml.nvmlInit()
def answer(name, *asked):
    try:
        getattr(pynvml, name)(*asked)
    except pynvml.NVMLError as error:
        return error.value
    return 0
handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(3)]
handles.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handles[0], 0))
asked = []
for name, function in sorted(vars(pynvml).items()):
    if not name.startswith("nvmlDevice") or "HandleBy" in name or not inspect.isfunction(function):
        continue
    if sum(p.default is p.empty for p in inspect.signature(function).parameters.values()) == 1:
        asked.append([name, *(answer(name, handle) for handle in handles)])
print(json.dumps(asked))
"""
_READER = """
import json, pynvml as nvml
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(1)
kind, samples = nvml.nvmlDeviceGetSamples(gpu, nvml.NVML_GPU_UTILIZATION_SAMPLES, 1000)
rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
def percents(call, after):
    try:
        return [[s.pid, s.smUtil, s.memUtil, s.encUtil, s.decUtil] for s in call(gpu, after)]
    except nvml.NVMLError_NotFound:
        return None
calls = nvml.nvmlDeviceGetProcessUtilization, nvml.nvmlDeviceGetProcessesUtilizationInfo
print(json.dumps({
    "rates": [rates.gpu, rates.memory],
    "samples": [[s.timeStamp, s.sampleValue.uiVal] for s in samples],
    "processes": [percents(call, after) for call in calls for after in (0, 1000, 2000)],
    "rows": nvml.nvmlDeviceGetRemappedRows(gpu),
    "ecc": nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 0),
    "capability": nvml.nvmlDeviceGetCudaComputeCapability(gpu),
}))
"""


def run_python(text: str) -> Any:
    """Return what a program prints that finds the stub as ``libnvidia-ml.so.1``."""
    command = [sys.executable, "-c", text]
    done = subprocess.run(  # noqa: S603 - no shell
        command, check=True, capture_output=True, text=True, timeout=50
    )
    return json.loads(done.stdout)


@pytest.mark.usefixtures("instance")
def test_no_call_ends_the_program() -> None:
    """Whatever NVIDIA's bindings ask of a GPU or MIG device is answered, or refused by NVML."""
    answers = run_python(_CALLER)
    refused = {code for _, *codes in answers for code in codes}
    assert len(answers) > 100
    assert refused <= {0, 2, 3, 13, 25}
    assert sum(codes[1] == 0 for _, *codes in answers) > 30


def test_utilisation_and_errors_are_those_of_the_world(world: World) -> None:
    """Samples come with their time, only those after the time that was asked for."""
    world.tell(1, utilization=12, memory_utilization=5, remap_pending=1, ecc_uncorrected=3)
    for at, value in ((900, 10), (1500, 20), (1600, 30)):
        world.sample(1, "utilization", value, at=at)
    world.sample_process(1, 71, at=900, processors=40, memory=10, encoder=1, decoder=2)
    world.sample_process(1, 72, at=1500, processors=60)
    first, second = [71, 40, 10, 1, 2], [72, 60, 0, 0, 0]
    assert run_python(_READER) == {
        "rates": [12, 5],
        "samples": [[1500, 20], [1600, 30]],
        "processes": [[first, second], [second], None] * 2,
        "rows": [0, 0, 1, 0],
        "ecc": 3,
        "capability": [9, 0],
    }
