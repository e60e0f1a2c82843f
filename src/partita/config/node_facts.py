"""What is known of a node's boards, from its labels and from GPU reports. Unknown is None."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel
from partita.model import resource
from partita.model.node import Node
from partita.model.report import NodeReport

__all__ = [
    "COUNT",
    "MIG_CONFIG",
    "MIG_STATE",
    "MIG_STRATEGY",
    "PLUGIN_CONFIG",
    "PRODUCT",
    "NodeFacts",
    "of",
]

COUNT = "nvidia.com/gpu.count"
PRODUCT = "nvidia.com/gpu.product"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
MIG_STRATEGY = "nvidia.com/mig.strategy"
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"

_REPLICAS = "nvidia.com/gpu.replicas"
_INVALID = "-MIG-INVALID"
_SLICE_COUNT = re.compile(r"^(nvidia\.com/mig-.+)\.count$")
_SINGLE = re.compile(r"-MIG-(\d+g\.\d+gb.*?)(?:-SHARED)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A node with what follows from it.

    Attributes:
        node: The node.
        model: Model of its GPUs (one per node is assumed, as GPU feature discovery does).
        gpu_count: How many boards it has.
        strategy: MIG strategy by label: none, single or mixed.
        mig_invalid: Whether GPU feature discovery found the MIG devices invalid.
        single_profile: Profile of the MIG devices that nvidia.com/gpu means, under *single*.
        slices: MIG devices by profile, from labels of the mixed strategy.
    """

    node: Node
    model: GpuModel | None = None
    gpu_count: int | None = None
    strategy: str | None = None
    mig_invalid: bool = False
    single_profile: str | None = None
    slices: Mapping[str, int]

    def replicas(self, profile: str | None) -> int:
        """Return how often each device is counted: of a profile, or of whole GPUs with None."""
        key = _REPLICAS
        if profile is not None:
            key = resource.mig_resource(profile) + ".replicas"
        return max(_number(self.node.labels.get(key)) or 1, 1)


def of(node: Node, reports: Sequence[NodeReport]) -> NodeFacts:
    """Return the facts of a node; reports of its GPUs say more than labels do."""
    labels = node.labels
    product = labels.get(PRODUCT, "")
    gpus = [gpu for report in reports for gpu in report.gpus]
    reported = next((gpu.product for gpu in gpus if gpu.product), None)
    pci = next((gpu.pci_device for gpu in gpus if gpu.pci_device), None)
    single = _SINGLE.search(product)
    invalid = product.endswith(_INVALID)
    count = None if single or invalid else _number(labels.get(COUNT))
    return NodeFacts(
        node=node,
        model=_model(pci) or _model(reported) or _model(product),
        gpu_count=max((len(report.gpus) for report in reports), default=0) or count,
        strategy=labels.get(MIG_STRATEGY),
        mig_invalid=invalid,
        single_profile=single[1].replace(".me", "+me") if single else None,
        slices=_slices(labels),
    )


def _model(name: str | None) -> GpuModel | None:
    return library.find(name) if name else None


def _slices(labels: Mapping[str, str]) -> Mapping[str, int]:
    found = {}
    for key, value in labels.items():
        match = _SLICE_COUNT.match(key)
        profile = resource.mig_profile(match[1]) if match else None
        count = _number(value)
        if profile is not None and count:
            found[profile] = count
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
