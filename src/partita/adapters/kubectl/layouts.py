"""The MIG layout that Run:ai (before 2.9) writes into a node annotation, to a GPU report.

The annotation ``run.ai/mig.config`` borrows mig-parted's outer shape but keys ``mig-devices`` by
placement start (``0: 2g.10gb``), not by profile. Sizes come from the catalogue, so the node must
carry the product label. Whatever is not usable becomes a note: the rest of the node is still good.
"""

from collections.abc import Iterator

from partita.catalog import legality, library
from partita.catalog.gpu_model import GpuModel
from partita.config import untyped_parser
from partita.config.untyped import Untyped
from partita.errors import InputError
from partita.model.gpu import MigMode
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.report import GpuReport, InstanceReport, NodeReport

__all__ = ["read"]

_ANNOTATION = "run.ai/mig.config"
_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_STRATEGY = "nvidia.com/mig.strategy"
_MOST_GPUS = 64


def read(node: Node, *, source: str) -> tuple[NodeReport | None, tuple[str, ...]]:
    """Return the layout that a node's annotation tells, None when there is none, and notes."""
    written = node.annotations.get(_ANNOTATION)
    if written is None:
        return None, ()
    try:
        gpus = tuple(_gpus(written, node, source))
    except InputError as error:
        return None, (f"node {node.name}: annotation {_ANNOTATION} is not usable: {error.message}",)
    return NodeReport(node=node.name, source=source, gpus=gpus), ()


def _gpus(written: str, node: Node, source: str) -> Iterator[GpuReport]:
    documents = untyped_parser.parse(written, path=source)
    document = documents[0] if documents else Untyped(None, source)
    model = library.find(node.labels.get(_PRODUCT, ""))
    if model is None:
        document.fail(f"the GPU model is not known from label {_PRODUCT}")
    seen: set[int] = set()
    for entry in _selected(document).elements():
        for index in _devices(entry, node):
            if index in seen or index >= _MOST_GPUS:
                entry.fail("a GPU index is too large or stands twice:", index)
            seen.add(index)
            yield _gpu(entry, index, model)


def _selected(document: Untyped) -> Untyped:
    configs = dict(document.need("mig-configs").items())
    if "selected" not in configs and len(configs) != 1:
        document.fail("none of several layouts is the selected one")
    return configs.get("selected") or next(iter(configs.values()))


def _devices(entry: Untyped, node: Node) -> list[int]:
    devices = entry.need("devices")
    if devices.value != "all":
        return [device.count() for device in devices.elements()]
    count = node.labels.get(_COUNT, "")
    # Under the single strategy the label counts slices, not GPUs.
    if node.labels.get(_STRATEGY) == "single" or not count.isdecimal() or len(count) > 2:  # noqa: PLR2004 - two digits
        devices.fail("how many GPUs `all` means is not known")
    return list(range(min(int(count), _MOST_GPUS)))


def _gpu(entry: Untyped, index: int, model: GpuModel) -> GpuReport:
    enabled, placed = entry.get("mig-enabled"), entry.get("mig-devices")
    on = enabled is None or enabled.flag()
    return GpuReport(
        index=index,
        product=model.names[0],
        mig_mode=MigMode.ON if on else MigMode.OFF,
        instances=_instances(placed, model) if on and placed is not None else (),
    )


def _instances(placed: Untyped, model: GpuModel) -> tuple[InstanceReport, ...]:
    if model.mig is None:
        placed.fail(f"{model.names[0]} has no MIG")
    slots = []
    for start, value in placed.items():
        profile = model.mig.by_name.get(value.text())
        if not start.isdecimal() or profile is None:
            placed.fail(f"expected a placement start and a profile, got {start!a}:", value.value)
        placement = Placement(start=int(start[:3]), size=profile.memory_slices)
        slots.append(legality.Slot(placement=placement, profile=profile.name))
    objection = legality.objection(model.mig, slots)
    if objection is not None:
        placed.fail(objection)
    return tuple(
        InstanceReport(profile=slot.profile, placement=slot.placement) for slot in sorted(slots)
    )
