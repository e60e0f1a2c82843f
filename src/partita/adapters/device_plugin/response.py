"""What a container gets for the slices it was promised, in the ways of NVIDIA's device plugin.

Source of names and paths: NVIDIA/k8s-device-plugin v0.20.0, ``internal/plugin/server.go``.
"""

from collections.abc import Sequence

from partita.adapters.device_plugin.node_files import DeviceNodes
from partita.config.serving_options import DeviceIdStrategy, DeviceListStrategy, ServingOptions
from partita.model.slice import Slice
from partita.wire import device_plugin

__all__ = ["CDI_KIND", "respond"]

CDI_KIND = "k8s.device-plugin.nvidia.com/gpu"
"""Kind of the CDI devices; the same as NVIDIA's plugin uses, of which one serves a node."""

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_MOUNTS = "/var/run/nvidia-container-devices"
_ANNOTATION = "nvidia-device-plugin_"
_ENABLED = "enabled"


def respond(
    slices: Sequence[Slice], options: ServingOptions, nodes: DeviceNodes, response_id: str
) -> device_plugin.ContainerAllocateResponse:
    """Return the answer for one container.

    Args:
        slices: What it was promised; slots of the same device count once.
        options: How it is to be told.
        nodes: Device nodes of the node.
        response_id: Unique text for the key of a CDI annotation.
    """
    unique = tuple({one.device: one for one in slices}.values())
    answer = device_plugin.ContainerAllocateResponse()
    _by_cdi(answer, [f"{CDI_KIND}={one.device}" for one in unique], options, response_id)
    if not options.uses_only_cdi:
        _by_name(answer, [_name(one, options) for one in unique], options)
        if options.pass_device_specs:
            _by_node(answer, unique, nodes)
    return answer


def _by_cdi(
    answer: device_plugin.ContainerAllocateResponse,
    names: Sequence[str],
    options: ServingOptions,
    response_id: str,
) -> None:
    if DeviceListStrategy.CDI_ANNOTATIONS in options.device_list_strategies:
        key = f"{options.cdi_annotation_prefix}{_ANNOTATION}{response_id}"
        answer.annotations[key] = ",".join(names)
    if DeviceListStrategy.CDI_CRI in options.device_list_strategies:
        answer.cdi_devices.extend(device_plugin.CDIDevice(name=name) for name in names)


def _by_name(
    answer: device_plugin.ContainerAllocateResponse, names: Sequence[str], options: ServingOptions
) -> None:
    if DeviceListStrategy.ENVVAR in options.device_list_strategies:
        answer.envs[_VISIBLE] = ",".join(names)
    if DeviceListStrategy.VOLUME_MOUNTS in options.device_list_strategies:
        answer.envs[_VISIBLE] = _MOUNTS
        answer.mounts.extend(
            device_plugin.Mount(host_path="/dev/null", container_path=f"{_MOUNTS}/{name}")
            for name in names
        )
    extras = {
        "NVIDIA_GDRCOPY": options.gdrcopy_enabled,
        "NVIDIA_GDS": options.gds_enabled,
        "NVIDIA_MOFED": options.mofed_enabled,
    }
    answer.envs.update({name: _ENABLED for name, is_on in extras.items() if is_on})


def _by_node(
    answer: device_plugin.ContainerAllocateResponse, slices: Sequence[Slice], nodes: DeviceNodes
) -> None:
    own = [node for one in slices for node in nodes.by_device.get(one.device, ())]
    answer.devices.extend(
        device_plugin.DeviceSpec(
            container_path=node.container_path, host_path=node.host_path, permissions="rw"
        )
        for node in dict.fromkeys((*nodes.control, *own))
    )


def _name(one: Slice, options: ServingOptions) -> str:
    """Return the UUID; the index where that is wanted and known: ``0``, of a MIG device ``0:1``."""
    if options.device_id_strategy is DeviceIdStrategy.UUID:
        return one.device
    if one.instance_id is None:
        return str(one.gpu_index)
    return one.device if one.mig_index is None else f"{one.gpu_index}:{one.mig_index}"
