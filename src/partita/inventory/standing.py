"""The GPUs of one node as they stand: what was reported, joined with what the node counts.

Where reports list the instances of a GPU, the counts only confirm them. Where they do not, the
counted slices are spread over the GPUs in the way the counts allow.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita.inventory import census, sharing
from partita.inventory.advertisement import Advertisement
from partita.inventory.boards import Board
from partita.inventory.device import GIVE, Device
from partita.inventory.distribution import Distribution, distribute
from partita.model import resource
from partita.model.gpu import Gpu, MigMode
from partita.model.report import InstanceReport

__all__ = ["Stand", "conclude"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The GPUs of one node.

    Attributes:
        gpus: By index.
        notes: What is not certain or does not agree, in words for the user.
    """

    gpus: tuple[Gpu, ...]
    notes: tuple[str, ...]


def conclude(node: str, boards: Sequence[Board], said: Advertisement) -> Stand:
    """Return the GPUs of a node.

    Args:
        node: Node name.
        boards: What reports say, by index; empty = there is no report.
        said: What the node object says.
    """
    counted = census.take(node, boards, said)
    work = _Work(node=node, said=said, counted=counted, notes=list(counted.notes))
    work.settle_modes()
    work.spread()
    work.share()
    work.compare()
    offered = frozenset(counted.slices)
    gpus = tuple(device.gpu(node, said, offered) for device in counted.devices)
    return Stand(gpus=gpus, notes=tuple(work.notes))


@dataclass(kw_only=True)
class _Work:
    """The GPUs of one node while they are concluded.

    Attributes:
        node: Node name.
        said: What the node object says.
        counted: The GPUs that there are, and the slices that are counted.
        notes: For the node.
    """

    node: str
    said: Advertisement
    counted: census.Census
    notes: list[str]

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.counted.devices

    def note(self, text: str) -> None:
        self.notes.append(f"node {self.node}: {text}")

    def _listed(self) -> Counter[str]:
        """Count what the reports list, by profile."""
        offered = frozenset(self.counted.slices)
        counts: Counter[str] = Counter()
        for device in self.devices:
            counts += device.profiles(offered)
        return counts

    def settle_modes(self) -> None:
        """Settle the MIG mode where it is reported or follows from what is listed."""
        for device in self.devices:
            mode = device.board.report.mig_mode
            if device.listed:
                if mode is MigMode.OFF or mode is MigMode.UNSUPPORTED:
                    device.notes.append("one source lists MIG instances, another says MIG is off")
                mode = MigMode.ON
            elif device.model is not None and device.model.mig is None:
                mode = MigMode.UNSUPPORTED
            elif mode is None and device.listed is not None:
                mode = self._mode_without_instances(device)
            if mode is not None and mode is not MigMode.ON:
                device.listed = ()
            device.mode = mode

    def _mode_without_instances(self, device: Device) -> MigMode:
        """``nvidia-smi -L`` lists no instance on this GPU; MIG may still be on."""
        if self.said.whole is None and not self.said.mig_on:
            device.notes.append("whether MIG is on is not known, it is taken to be off")
        offered = self.said.whole != 0 if self.said.whole is not None else not self.said.mig_on
        return MigMode.OFF if offered else MigMode.ON

    def spread(self) -> None:
        """Give the counted slices to the GPUs whose instances no report lists."""
        rest = Counter(self.counted.slices) - self._listed()
        unlisted = [device for device in self.devices if device.listed is None]
        if not unlisted:
            return
        if not rest:
            for device in unlisted:
                self._leave_uncut(device)
            return
        cuttable = [device for device in unlisted if device.mig is not None]
        cuttable.sort(key=lambda device: device.mode is MigMode.ON)
        if not cuttable:
            self._show(unlisted, rest)
            return
        migs = [device.mig for device in cuttable if device.mig is not None]
        found = distribute(migs, rest, whole=self._uncut(), confirmed=self.said.confirmed)
        if found is None:
            self._give_up(cuttable, rest)
        else:
            self._cut(cuttable, rest, found)

    def _uncut(self) -> int | None:
        """Return how many of the unlisted GPUs are whole, None when not known."""
        if self.said.whole is None:
            return 0 if self.said.single else None
        replicas = max(1, self.said.replicas or 1)
        off = sum(1 for d in self.devices if d.listed is not None and d.mode is not MigMode.ON)
        return max(0, -(-self.said.whole // replicas) - off)

    def _leave_uncut(self, device: Device) -> None:
        """Settle a GPU on which nothing is counted."""
        if device.mode is MigMode.ON or self.said.mig_on:
            device.mode = MigMode.ON
            # With strategy none no slice is counted, and without a node object nothing is.
            empty = self.said.counted and self.said.strategy == "mixed"
            device.listed = () if empty else None
        else:
            device.mode, device.listed = MigMode.OFF, ()

    def _show(self, devices: Sequence[Device], rest: Counter[str]) -> None:
        """Put slices on a GPU of unknown model, so that they are seen; nothing can be checked."""
        self.note(f"where {_claims(rest)} are is not known, nor on which GPU model: {GIVE}")
        for device in devices[:-1]:
            self._leave_uncut(device)
        devices[-1].mode = MigMode.ON
        devices[-1].listed = _anonymous(tuple(rest.elements()))

    def _give_up(self, devices: Sequence[Device], rest: Mapping[str, int]) -> None:
        """Leave alone GPUs on which the slices must be, somehow."""
        self.note(f"no way is found to have {_claims(rest)} on its GPUs, some may be old; {GIVE}")
        for device in devices:
            device.mode = MigMode.ON

    def _cut(self, devices: Sequence[Device], rest: Mapping[str, int], found: Distribution) -> None:
        if found.dropped:
            self._drop(rest, found)
        if not found.unique:
            self.note(f"{_claims(rest)} can be on its GPUs in several ways; {GIVE}")
        uneven = len(set(found.layouts)) > 1
        for device, layout in zip(devices, found.layouts, strict=True):
            off = layout is None and device.mode is not MigMode.ON
            device.mode = MigMode.OFF if off else MigMode.ON
            device.listed = _anonymous(layout or ())
            device.vague = not found.unique
            device.pinned = found.guessed
            if not found.unique:
                device.notes.append(f"which slices are on it is not known: {GIVE}")
            elif uneven:
                device.notes.append(
                    f"which of the node's GPUs is cut this way is not known: {GIVE}"
                )

    def _drop(self, rest: Mapping[str, int], found: Distribution) -> None:
        claims = {**rest, **({"gpu": self.said.whole} if self.said.whole else {})}
        kept = {name: count for name, count in claims.items() if name not in found.dropped}
        sure = "one set of them is taken" if found.guessed else "only these can be real"
        self.note(
            f"{_claims(claims)} cannot be on {len(self.devices)} GPUs together, the kubelet keeps"
            f" numbers of devices that are gone; {sure}: {_claims(kept)}"
        )

    def share(self) -> None:
        """Settle into how many slots the GPUs that are not cut are shared."""
        off = [device for device in self.devices if device.mode is not MigMode.ON]
        for device in off:
            device.replicas = device.board.report.replicas or 1
        if not off or any(device.board.report.replicas is not None for device in off):
            return
        certain = not self.counted.doubtful and not self.counted.slices
        found = sharing.slots(self.node, self.said, len(off) if certain else None)
        replicas = found.replicas
        if (
            self.counted.doubtful
            and len(off) == 1
            and self.said.sharing is not None
            and replicas == 1
        ):
            replicas = self.said.whole or 1
        elif found.note is not None:
            self.notes.append(found.note)
        for device in off:
            device.replicas = replicas

    def compare(self) -> None:
        """Name what the node counts otherwise than the reports list."""
        unreported = any(device.board.report.instances is None for device in self.devices)
        silent = self.said.strategy == "none" or (
            self.said.strategy == "single" and not self.said.single
        )
        if unreported or silent or not self.devices or not self.said.counted:
            return
        listed = self._listed()
        counted = Counter(self.counted.slices)
        if listed == counted:
            return
        sources = ", ".join(dict.fromkeys(device.board.source for device in self.devices))
        self.note(
            f"{sources} has {_claims(listed) or 'no slices'}, the node offers"
            f" {_claims(counted) or 'none'}; taken: the former"
        )
        for device in self.devices:
            device.pinned = device.pinned or not device.board.from_driver


def _anonymous(names: Sequence[str]) -> tuple[InstanceReport, ...]:
    return tuple(InstanceReport(profile=name) for name in names)


def _claims(counts: Mapping[str, int]) -> str:
    """``56 mig-1g.5gb and 8 gpu``."""
    names = {name: "gpu" if name == "gpu" else resource.mig_resource(name) for name in counts}
    shown = (
        f"{count} {names[name].removeprefix(resource.DOMAIN)}"
        for name, count in sorted(counts.items())
    )
    return " and ".join(shown)
