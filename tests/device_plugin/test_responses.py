"""How a container is told of its devices: every strategy, with the values of NVIDIA's plugin."""

import pytest

from partita.adapters.device_plugin.node_files import DeviceNode, DeviceNodes
from partita.adapters.device_plugin.response import respond
from partita.config import agent_document
from partita.config import device_plugin as config
from partita.config.serving_options import (
    DeviceIdStrategy,
    DeviceListStrategy,
    ServingOptions,
    SharedDevicesPolicy,
)
from partita.errors import InputError
from partita.model.slice import Slice
from partita.wire.device_plugin import CDIDevice, ContainerAllocateResponse, DeviceSpec, Mount

_GPU = Slice(device_id="GPU-a::0", resource="r/gpu", gpu_uuid="GPU-a", gpu_index=0, minor=0)
_AGAIN = Slice(device_id="GPU-a::1", resource="r/gpu", gpu_uuid="GPU-a", gpu_index=0, minor=0)
_MIG = Slice(
    device_id="MIG-b",
    resource="r/mig",
    gpu_uuid="GPU-c",
    gpu_index=3,
    minor=3,
    instance_id=7,
    compute_instance_id=0,
    mig_index=1,
)
_CONTROL = DeviceNode(container_path="/dev/nvidiactl", host_path="/dev/nvidiactl")
_NODE = DeviceNode(container_path="/dev/nvidia0", host_path="/host/dev/nvidia0")
_NODES = DeviceNodes(control=(_CONTROL,), by_device={"GPU-a": (_NODE,)})
_KIND = "k8s.device-plugin.nvidia.com/gpu"


def _respond(*slices: Slice, **options: object) -> ContainerAllocateResponse:
    return respond(slices, ServingOptions(**options), _NODES, "some-id")


def _strategies(*names: str) -> tuple[DeviceListStrategy, ...]:
    return tuple(DeviceListStrategy(name) for name in names)


def test_an_environment_variable_is_the_default() -> None:
    """The devices are named by UUID, slots of the same device once."""
    assert _respond(_GPU, _MIG, _AGAIN) == ContainerAllocateResponse(
        envs={"NVIDIA_VISIBLE_DEVICES": "GPU-a,MIG-b"}
    )


def test_volume_mounts_name_the_devices() -> None:
    """The variable says where to look; a pod without privileges cannot make such mounts."""
    found = _respond(_GPU, _MIG, device_list_strategies=_strategies("volume-mounts"))

    folder = "/var/run/nvidia-container-devices"
    assert found == ContainerAllocateResponse(
        envs={"NVIDIA_VISIBLE_DEVICES": folder},
        mounts=[
            Mount(host_path="/dev/null", container_path=f"{folder}/{name}")
            for name in ("GPU-a", "MIG-b")
        ],
    )


def test_cdi_devices_are_a_field_of_their_own() -> None:
    """Nothing else is said then, not even device nodes."""
    found = _respond(
        _GPU, _AGAIN, device_list_strategies=_strategies("cdi-cri"), pass_device_specs=True
    )

    assert found == ContainerAllocateResponse(cdi_devices=[CDIDevice(name=f"{_KIND}=GPU-a")])


def test_cdi_annotations_have_a_key_of_their_own() -> None:
    """The key ends in what makes the answer unique; the prefix is an option."""
    strategies = _strategies("cdi-annotations")
    usual = _respond(_GPU, _MIG, device_list_strategies=strategies)
    other = _respond(_GPU, device_list_strategies=strategies, cdi_annotation_prefix="x/")

    assert usual == ContainerAllocateResponse(
        annotations={
            "cdi.k8s.io/nvidia-device-plugin_some-id": f"{_KIND}=GPU-a,{_KIND}=MIG-b",
        }
    )
    assert dict(other.annotations) == {"x/nvidia-device-plugin_some-id": f"{_KIND}=GPU-a"}


def test_strategies_are_used_together() -> None:
    """A node may serve several runtimes, of which each reads what it knows."""
    found = _respond(_GPU, device_list_strategies=_strategies("envvar", "cdi-cri"))

    assert found == ContainerAllocateResponse(
        envs={"NVIDIA_VISIBLE_DEVICES": "GPU-a"},
        cdi_devices=[CDIDevice(name=f"{_KIND}=GPU-a")],
    )


def test_an_index_is_used_where_it_is_known() -> None:
    """A MIG device whose index is unknown keeps its UUID; CDI names are always UUIDs."""
    hidden = Slice(
        device_id="MIG-x", resource="r/mig", gpu_uuid="GPU-c", gpu_index=3, instance_id=1
    )
    found = _respond(
        _GPU,
        _MIG,
        hidden,
        device_id_strategy=DeviceIdStrategy.INDEX,
        device_list_strategies=_strategies("envvar", "cdi-cri"),
    )

    assert dict(found.envs) == {"NVIDIA_VISIBLE_DEVICES": "0,3:1,MIG-x"}
    assert found.cdi_devices[0].name == f"{_KIND}=GPU-a"


def test_device_nodes_are_passed_when_wanted() -> None:
    """Control nodes and those of the device, each once; what was not found is left out."""
    found = _respond(_GPU, _AGAIN, _MIG, pass_device_specs=True)

    assert list(found.devices) == [
        DeviceSpec(container_path="/dev/nvidiactl", host_path="/dev/nvidiactl", permissions="rw"),
        DeviceSpec(container_path="/dev/nvidia0", host_path="/host/dev/nvidia0", permissions="rw"),
    ]


def test_further_drivers_are_switched_on_by_variables() -> None:
    """GPUDirect Storage, GDRCopy and MOFED are for the container runtime to inject."""
    found = _respond(_GPU, gds_enabled=True, mofed_enabled=True, gdrcopy_enabled=True)

    assert dict(found.envs) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "NVIDIA_GDRCOPY": "enabled",
        "NVIDIA_GDS": "enabled",
        "NVIDIA_MOFED": "enabled",
    }


def _serving(flags: str) -> ServingOptions:
    (found,) = config.decode(f"version: v1\nflags:\n{flags}", "config.yaml").values
    return found.serving


def test_every_option_is_read() -> None:
    """All keys that say how devices get into containers, in any letter case."""
    assert _serving(
        """\
  nvidiaDriverRoot: /run/nvidia/driver
  nvidiaDevRoot: /
  gdrcopyEnabled: true
  GDSEnabled: true
  mofedEnabled: true
  plugin:
    passdevicespecs: true
    deviceListStrategy: [cdi-cri, envvar, cdi-cri]
    deviceIDStrategy: index
    cdiAnnotationPrefix: x/
    nvidiaCTKPath: /opt/nvidia-ctk
    containerDriverRoot: /host
    sharedDevicesAllocationPolicy: packed
"""
    ) == ServingOptions(
        device_list_strategies=_strategies("cdi-cri", "envvar"),
        device_id_strategy=DeviceIdStrategy.INDEX,
        shared_devices_allocation_policy=SharedDevicesPolicy.PACKED,
        pass_device_specs=True,
        cdi_annotation_prefix="x/",
        nvidia_cdi_hook_path="/opt/nvidia-ctk",
        driver_root="/run/nvidia/driver",
        dev_root="/",
        container_driver_root="/host",
        gdrcopy_enabled=True,
        gds_enabled=True,
        mofed_enabled=True,
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("  plugin: {deviceListStrategy: cdi-annotations}", _strategies("cdi-annotations")),
        ("  plugin: {deviceListStrategy: []}", _strategies("envvar")),
        ("  plugin: {deviceListStrategy: ''}", _strategies("envvar")),
        ("  plugin: {deviceListStrategy: {a: b}}", _strategies("envvar")),
        ("  plugin: {deviceListStrategy: [nonsense, cdi-cri]}", _strategies("cdi-cri")),
        ("  plugin: 5", _strategies("envvar")),
        ("  migStrategy: mixed", _strategies("envvar")),
    ],
)
def test_a_strategy_is_a_text_or_a_list(
    flags: str, expected: tuple[DeviceListStrategy, ...]
) -> None:
    """What is refused elsewhere counts as not set here."""
    assert _serving(flags) == ServingOptions(device_list_strategies=expected)


def test_the_device_nodes_lie_where_the_driver_is_unless_said_otherwise() -> None:
    """A driver in a container has its own ``dev``."""
    assert _serving("  nvidiaDriverRoot: /run/nvidia/driver").dev_root == "/run/nvidia/driver"


@pytest.mark.parametrize(
    ("text", "asked_for_by"),
    [
        ("imex: {channelIDs: [0]}", "imex.channelIDs"),
        ("imex: {required: true}", "imex.required"),
        ("flags: {gdsEnabled: true, plugin: {deviceListStrategy: cdi-cri}}", "flags.gdsEnabled"),
        (
            "flags: {mofedEnabled: true, plugin: {deviceListStrategy: [cdi-annotations]}}",
            "flags.mofedEnabled",
        ),
        (
            "flags: {gdrcopyEnabled: true, plugin: {deviceListStrategy: [cdi-cri]}}",
            "flags.gdrcopyEnabled",
        ),
    ],
)
def test_a_config_that_promises_what_is_not_delivered_is_refused(
    text: str, asked_for_by: str
) -> None:
    """A container that goes without would fail for a reason that nobody finds."""
    with pytest.raises(InputError) as caught:
        agent_document.read(f"version: v1\n{text}\n", "config.yaml")

    assert caught.value.message.endswith(f"asked for by: {asked_for_by}")
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "imex: {channelIDs: [], required: false}",
        "flags: {gdsEnabled: true, plugin: {deviceListStrategy: [envvar, cdi-cri]}}",
        "flags: {gdsEnabled: false, plugin: {deviceListStrategy: cdi-cri}}",
    ],
)
def test_a_config_that_promises_nothing_more_is_followed(text: str) -> None:
    """What is switched off, or told to the runtime by a variable, is no reason to refuse."""
    assert agent_document.read(f"version: v1\n{text}\n", "config.yaml").plugin is not None
