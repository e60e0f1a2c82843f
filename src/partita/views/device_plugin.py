"""A plan as configurations of NVIDIA's device plugin: a ConfigMap and the node labels to set.

The plugin shares every GPU of a node alike, so what a plan says of single GPUs may be more than it
can do; the comments say where. It never shares a GPU more often than the plan does.
Source: NVIDIA/k8s-device-plugin, ``api/config/v1`` and README.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from partita.config import device_plugin, yaml_text
from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.sharing_section import SharedEntry, SharingKind, SharingSection
from partita.config.yaml_nodes import Position
from partita.model import resource
from partita.model.gpu import MigMode, Sharing
from partita.planner.plan import GpuPlan, Plan
from partita.views import gpu_names, yaml_comments
from partita.views.table import paragraph

__all__ = ["text"]

_LABEL = "nvidia.com/device-plugin.config"
_MAP = "partita-device-plugin"
_NOWHERE = Position(line=1, column=1)
_WIDTH = 98
_HOW = (
    "Name this ConfigMap in the plugin's Helm values (config.name, or devicePlugin.config.name of "
    "the operator), create it in the plugin's namespace, and label the nodes. The plugin reads a "
    "config when the label changes: where it has this value already, restart the plugin."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """What one node needs of the plugin.

    Attributes:
        strategy: How MIG devices are named.
        replicas: Times each whole GPU is served, 1 = not shared.
        kind: How they are shared.
        renamed: Whether shared GPUs get the suffix ``.shared``.
    """

    strategy: MigStrategy
    replicas: int = 1
    kind: SharingKind = SharingKind.TIME_SLICING
    renamed: bool = False

    @property
    def name(self) -> str:
        """A key of the ConfigMap that says what is in it."""
        parts = [] if self.strategy is MigStrategy.NONE else [f"mig-{self.strategy.value}"]
        if self.replicas > 1:
            word = "mps" if self.kind is SharingKind.MPS else "time-slicing"
            parts.append(f"{word}-{self.replicas}")
        if self.renamed:
            parts.append("renamed")
        return "-".join(parts) or "whole-gpus"

    def config(self) -> DevicePluginConfig:
        """Return it as a configuration of the plugin."""
        shared = SharedEntry(
            name=resource.WHOLE_GPU, replicas=self.replicas, at=_NOWHERE, replicas_at=_NOWHERE
        )
        section = SharingSection(
            kind=self.kind,
            entries=(shared,),
            rename_by_default=self.renamed,
            at=_NOWHERE,
        )
        mps = self.kind is SharingKind.MPS
        return DevicePluginConfig(
            name=self.name,
            mig_strategy=self.strategy,
            time_slicing=section if self.replicas > 1 and not mps else None,
            mps=section if self.replicas > 1 and mps else None,
        )


def text(plan: Plan) -> str:
    """Return a ConfigMap with one config per distinct need of a node, as YAML with comments."""
    gpus: dict[str, list[GpuPlan]] = {}
    for gpu in plan.gpus:
        gpus.setdefault(gpu.gpu.node, []).append(gpu)
    nodes: dict[_Need, list[str]] = {}
    for node, on_node in gpus.items():
        nodes.setdefault(_need(on_node), []).append(node)
    head = list(_introduction(gpus))
    head += ["", *yaml_comments.label_commands(_LABEL, {n.name: of for n, of in nodes.items()})]
    data = {need.name: yaml_text.dump(device_plugin.encode(need.config())) for need in nodes}
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _MAP},
        "data": data,
    }
    return f"{yaml_comments.block(head)}\n{yaml_text.dump(document)}".rstrip("\n")


def _need(gpus: Sequence[GpuPlan]) -> _Need:
    cut = [gpu for gpu in gpus if gpu.mig_mode is MigMode.ON]
    whole = [gpu.replicas for gpu in gpus if gpu.mig_mode is not MigMode.ON]
    replicas = min(whole, default=1)
    single = bool(cut) and all(gpu.gpu.single_strategy for gpu in cut)
    strategy = MigStrategy.MIXED if cut else MigStrategy.NONE
    mps = replicas > 1 and any(gpu.sharing is Sharing.MPS for gpu in gpus)
    return _Need(
        strategy=MigStrategy.SINGLE if single else strategy,
        replicas=replicas,
        kind=SharingKind.MPS if mps else SharingKind.TIME_SLICING,
        renamed=replicas > 1 and any(gpu.renamed for gpu in gpus),
    )


def _introduction(gpus: dict[str, list[GpuPlan]]) -> Iterator[str]:
    yield "device-plugin configurations with the layouts of a partita plan"
    yield ""
    yield from paragraph(_HOW, width=_WIDTH)
    limits = [line for node, on_node in gpus.items() for line in _beyond(node, on_node)]
    if limits:
        yield ""
        yield "The plugin treats all GPUs of a node alike. What it cannot do:"
        for line in limits:
            yield from yaml_comments.bullet(line)


def _beyond(node: str, gpus: Sequence[GpuPlan]) -> Iterator[str]:
    """Yield what the plan wants of a node's whole GPUs beyond one number for all of them."""
    wanted: dict[int, list[int]] = {}
    for gpu in gpus:
        if gpu.mig_mode is not MigMode.ON:
            wanted.setdefault(gpu.replicas, []).append(gpu.gpu.index)
    if len(wanted) > 1:
        parts = [f"{times} x GPU {gpu_names.numbers(of)}" for times, of in sorted(wanted.items())]
        yield f"{node}: serve {' and '.join(parts)}; written is the least, so none is served more"
    mps = any(gpu.sharing is Sharing.MPS for gpu in gpus)
    if mps and any(gpu.mig_mode is MigMode.ON for gpu in gpus):
        yield f"{node}: NVIDIA's plugin refuses MPS on a node that has MIG devices"
