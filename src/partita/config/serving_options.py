"""How a container is given the devices that it was promised: the flags of NVIDIA's device plugin.

Read without a word: ``plugin_flags`` has checked the same keys and said what is wrong with them.
A value that it complains of counts as not set. Names and defaults: NVIDIA/k8s-device-plugin
v0.20.0, ``api/config/v1/flags.go``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from partita.config import plugin_flags
from partita.config.inspection import Inspection
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode, YamlScalar, YamlSequence

__all__ = [
    "DeviceIdStrategy",
    "DeviceListStrategy",
    "ServingOptions",
    "SharedDevicesPolicy",
    "read",
]

_OUTER = (
    "nvidiaDriverRoot",
    "nvidiaDevRoot",
    "gdrcopyEnabled",
    "gdsEnabled",
    "mofedEnabled",
    "plugin",
)
_EMPTY = YamlMapping(entries=(), at=Position(line=1, column=1))

Choice = TypeVar("Choice", bound=Enum)


class DeviceListStrategy(Enum):
    """Where the container runtime finds the list of a container's devices."""

    ENVVAR = "envvar"
    VOLUME_MOUNTS = "volume-mounts"
    CDI_ANNOTATIONS = "cdi-annotations"
    CDI_CRI = "cdi-cri"

    @property
    def is_cdi(self) -> bool:
        """Whether the devices are named as of a CDI spec file."""
        return self in (DeviceListStrategy.CDI_ANNOTATIONS, DeviceListStrategy.CDI_CRI)


class DeviceIdStrategy(Enum):
    """What the list calls a device, where it is no CDI list."""

    UUID = "uuid"
    INDEX = "index"


class SharedDevicesPolicy(Enum):
    """Which shared slot a container is given first."""

    DISTRIBUTED = "distributed"
    PACKED = "packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """How devices get into containers.

    Attributes:
        device_list_strategies: ``deviceListStrategy``; all of them at once, none twice.
        device_id_strategy: ``deviceIDStrategy``.
        shared_devices_allocation_policy: ``sharedDevicesAllocationPolicy``.
        pass_device_specs: ``passDeviceSpecs``, whether device nodes are named too; not used when
            every strategy is CDI.
        cdi_annotation_prefix: ``cdiAnnotationPrefix``.
        nvidia_cdi_hook_path: ``nvidiaCTKPath``: path on the node of ``nvidia-cdi-hook``, or of
            ``nvidia-ctk``.
        driver_root: ``nvidiaDriverRoot``, folder of the node in which the driver is installed.
        dev_root: ``nvidiaDevRoot``, folder of the node in which ``dev`` lies.
        container_driver_root: ``containerDriverRoot``, where the plugin's own container has it.
        gdrcopy_enabled: ``gdrcopyEnabled``.
        gds_enabled: ``gdsEnabled``.
        mofed_enabled: ``mofedEnabled``.
    """

    device_list_strategies: tuple[DeviceListStrategy, ...] = (DeviceListStrategy.ENVVAR,)
    device_id_strategy: DeviceIdStrategy = DeviceIdStrategy.UUID
    shared_devices_allocation_policy: SharedDevicesPolicy = SharedDevicesPolicy.DISTRIBUTED
    pass_device_specs: bool = False
    cdi_annotation_prefix: str = "cdi.k8s.io/"
    nvidia_cdi_hook_path: str = "/usr/bin/nvidia-cdi-hook"
    driver_root: str = "/"
    dev_root: str = "/"
    container_driver_root: str = "/driver-root"
    gdrcopy_enabled: bool = False
    gds_enabled: bool = False
    mofed_enabled: bool = False

    @property
    def uses_cdi(self) -> bool:
        """Whether a CDI spec file is needed."""
        return any(strategy.is_cdi for strategy in self.device_list_strategies)

    @property
    def uses_only_cdi(self) -> bool:
        """Whether nothing but CDI is used."""
        return all(strategy.is_cdi for strategy in self.device_list_strategies)


def read(flags: YamlMapping | None) -> ServingOptions:
    """Return the options that ``flags`` of a device-plugin config sets, and defaults."""
    outer = _folded(flags, _OUTER)
    inner = _folded(outer.get("plugin"), plugin_flags.PLUGIN)
    default = ServingOptions()
    driver_root = _text(outer.get("nvidiaDriverRoot"), default.driver_root)
    return ServingOptions(
        device_list_strategies=_strategies(inner.get("deviceListStrategy")),
        device_id_strategy=_choice(inner.get("deviceIDStrategy"), default.device_id_strategy),
        shared_devices_allocation_policy=_choice(
            inner.get("sharedDevicesAllocationPolicy"), default.shared_devices_allocation_policy
        ),
        pass_device_specs=_is_true(inner.get("passDeviceSpecs")),
        cdi_annotation_prefix=_text(
            inner.get("cdiAnnotationPrefix"), default.cdi_annotation_prefix
        ),
        nvidia_cdi_hook_path=_text(inner.get("nvidiaCTKPath"), default.nvidia_cdi_hook_path),
        driver_root=driver_root,
        dev_root=_text(outer.get("nvidiaDevRoot"), driver_root),
        container_driver_root=_text(
            inner.get("containerDriverRoot"), default.container_driver_root
        ),
        gdrcopy_enabled=_is_true(outer.get("gdrcopyEnabled")),
        gds_enabled=_is_true(outer.get("gdsEnabled")),
        mofed_enabled=_is_true(outer.get("mofedEnabled")),
    )


def _folded(node: YamlNode | None, known: Iterable[str]) -> YamlMapping:
    """Return a mapping with keys in the plugin's letter case; empty when it is none."""
    unheard = Inspection(path="")
    mapping = unheard.mapping(node, "")
    return unheard.fold_case(mapping, "", known) if mapping is not None else _EMPTY


def _strategies(node: YamlNode | None) -> tuple[DeviceListStrategy, ...]:
    items = node.items if isinstance(node, YamlSequence) else (node,)
    known = {strategy.value: strategy for strategy in DeviceListStrategy}
    found = [known[text] for item in items if (text := _text(item, "")) in known]
    return tuple(dict.fromkeys(found)) or ServingOptions().device_list_strategies


def _choice(node: YamlNode | None, default: Choice) -> Choice:
    text = _text(node, "")
    return next((member for member in type(default) if member.value == text), default)


def _text(node: YamlNode | None, default: str) -> str:
    return Inspection(path="").text(node, "") or default


def _is_true(node: YamlNode | None) -> bool:
    return isinstance(node, YamlScalar) and node.value is True
