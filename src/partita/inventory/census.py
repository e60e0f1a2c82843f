"""Which GPUs a node has, and how many slices of each profile it counts.

Reports list GPUs. Without one, the labels tell how many of which product there are; without labels,
the number is concluded from the resource counts, and said to be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel
from partita.inventory.advertisement import Advertisement
from partita.inventory.boards import Board
from partita.inventory.device import Device
from partita.inventory.distribution import distribute
from partita.model.report import GpuReport

__all__ = ["Census", "take"]

_LABELS = "its labels"
_MOST_GPUS = 64  # of a node; a label that says more is not believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The GPUs of a node, and the slices that it counts.

    Attributes:
        devices: The GPUs, by index.
        slices: Counted slices by profile, as the catalogue names them.
        doubtful: Whether the number of GPUs is concluded from resource counts.
        notes: What does not agree, in words for the user.
    """

    devices: tuple[Device, ...]
    slices: Mapping[str, int]
    doubtful: bool
    notes: tuple[str, ...]


def take(node: str, boards: Sequence[Board], said: Advertisement) -> Census:
    """Return what there is.

    Args:
        node: Node name.
        boards: What reports say, by index; empty = there is no report.
        said: What the node object says.
    """
    work = _Census(node=node, said=said, labelled=_model(said.product))
    for board in boards:
        work.add(board)
    model = next((d.model for d in work.devices if d.model is not None), work.labelled)
    slices = _by_catalogue(said.slices, model)
    for index in work.unreported(boards, model, slices):
        report = GpuReport(index=index, product=said.product)
        work.add(Board(report=report, source=_LABELS))
    return Census(
        devices=tuple(sorted(work.devices, key=lambda device: device.board.report.index)),
        slices=slices,
        doubtful=work.doubtful,
        notes=tuple(work.notes),
    )


@dataclass(kw_only=True)
class _Census:
    node: str
    said: Advertisement
    labelled: GpuModel | None
    devices: list[Device] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubtful: bool = False

    def note(self, text: str) -> None:
        self.notes.append(f"node {self.node}: {text}")

    def add(self, board: Board) -> None:
        """Add a GPU; its report tells the model, else the label does."""
        report = board.report
        model = _model(report.product) or _model(report.pci_device)
        if model is None and report.product is None:
            model = self.labelled
        product = report.product or self.said.product
        if model is None:
            what = f"{product} is not in the catalogue" if product else "the product is not known"
            which = "its GPUs" if board.source == _LABELS else f"GPU {report.index}"
            self.note(f"{which}: {what}, so nothing is planned there")
        elif self.labelled not in (None, model):
            self.note(
                f"GPU {report.index} is {product} in {board.source}, {self.said.product} in its"
                f" label; taken: {product}"
            )
        self.devices.append(Device(board=board, model=model, listed=report.instances))

    def unreported(
        self, boards: Sequence[Board], model: GpuModel | None, slices: Mapping[str, int]
    ) -> list[int]:
        """Return the indices of GPUs that only the node object tells of."""
        count = self.said.gpu_count
        if count is not None and count > _MOST_GPUS:
            self.note(f"its label says {count} GPUs, which is not believed")
            count = None
        if not boards:
            return list(range(self._counted(model, slices) if count is None else count))
        reported = {board.report.index for board in boards}
        if count is None or count == len(reported):
            return []
        sources = ", ".join(dict.fromkeys(board.source for board in boards))
        self.note(f"its label says {count} GPUs, {sources} has {len(reported)}")
        if any(board.report.uuid is not None for board in boards):
            return []  # the driver lists every GPU that it has
        return [index for index in range(count) if index not in reported]

    def _counted(self, model: GpuModel | None, slices: Mapping[str, int]) -> int:
        """Conclude the number of GPUs from resource counts alone."""
        whole, replicas = self.said.whole or 0, max(1, self.said.replicas or 1)
        uncut = -(-whole // replicas)
        if self.said.sharing is not None and replicas == 1:
            uncut = min(uncut, 1)
        if not slices and not uncut:
            return 0
        least = min(uncut + (_least(model, slices) if slices else 0), _MOST_GPUS)
        self.doubtful = True
        self.note(
            f"how many GPUs it has is not given; taken, as the least that is possible: {least}"
        )
        return least


def _least(model: GpuModel | None, slices: Mapping[str, int]) -> int:
    """Return the least number of GPUs that hold the slices; 1 when none can."""
    if model is None or model.mig is None:
        return 1
    for count in range(1, _MOST_GPUS + 1):
        found = distribute((model.mig,) * count, slices, whole=0)
        if found is not None and not found.dropped:
            return count
    return 1


def _model(product: str | None) -> GpuModel | None:
    return library.find(product) if product else None


def _by_catalogue(slices: Mapping[str, int], model: GpuModel | None) -> Mapping[str, int]:
    """Name profiles as the catalogue does; unknown ones stay as they are."""
    known = model.mig.by_name if model is not None and model.mig is not None else {}
    found: Counter[str] = Counter()
    for name, count in slices.items():
        found[known[name].name if name in known else name] += count
    return found
