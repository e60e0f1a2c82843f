"""Who holds which slice, as far as anybody says.

The kubelet of a node knows the device of each container; the API knows only how many a pod has.
What is known exactly is held. The rest is counted: with more slices than holders every one of them
may be the held one, and so none of them may be touched.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from partita.catalog import library
from partita.model import resource
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.model.pod import Phase, Pod
from partita.model.report import DeviceClaim

__all__ = ["Holding", "attach"]

_Shares = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """GPUs with their holders.

    Attributes:
        gpus: The GPUs, in the given order.
        held: (node, resource) → slices, or slots of shared ones, that are in use.
        notes: What does not agree, in words for the user.
    """

    gpus: tuple[Gpu, ...]
    held: Mapping[tuple[str, str], int]
    notes: tuple[str, ...]


def attach(
    gpus: Sequence[Gpu],
    pods: Iterable[Pod],
    claims: Iterable[DeviceClaim],
    shares: _Shares,
    *,
    silent: Collection[str] = (),
) -> Holding:
    """Return the GPUs with the holders of their slices.

    Args:
        gpus: GPUs in fleet order; what processes use is marked held already.
        pods: All pods, finished ones included: a claim of theirs is a leftover.
        claims: Devices that pods were given.
        shares: (node, resource) → slots per MIG slice, where slices are shared.
        silent: Nodes of which no pods were given: all of their slots may be held.
    """
    by_node: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        by_node.setdefault(gpu.node, []).append(gpu)
    known = sorted(pods, key=lambda pod: pod.full_name)
    bound = _bound(known)
    claimed = _open(claims, {pod.uid for pod in known if pod.phase is Phase.FINISHED})
    books = [
        _Book(node=node, gpus=by_node.get(node, []), shares=shares)
        for node in sorted({*by_node, *bound, *claimed})
    ]
    for book in books:
        book.enter(bound.get(book.node, []), claimed.get(book.node, []))
        if book.node in silent:
            book.presume()
    return Holding(
        gpus=tuple(gpu for book in books for gpu in book.marked()),
        held={key: count for book in books for key, count in book.held()},
        notes=tuple(note for book in books for note in book.notes),
    )


def _bound(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods that hold something, by node."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node is not None and pod.phase is not Phase.FINISHED:
            found.setdefault(pod.node, []).append(pod)
    return found


def _open(
    claims: Iterable[DeviceClaim], finished: Collection[str | None]
) -> dict[str, list[DeviceClaim]]:
    """Return the claims that are no leftovers of finished pods, by node."""
    found: dict[str, list[DeviceClaim]] = {}
    for claim in sorted(claims, key=lambda c: (c.node, c.pod_uid, c.container, c.resource)):
        if claim.pod_uid not in finished:
            found.setdefault(claim.node, []).append(claim)
    return found


@dataclass(kw_only=True)
class _Slice:
    """A slice: a whole or shared GPU, or an instance.

    Attributes:
        gpu: Position of its GPU in the book.
        instance: Position of the instance on it, None = the GPU itself.
        resource: What it is served as, not renamed.
        slots: Pods that it has room for.
        used: Whether processes use it, or something else speaks for use.
        exact: Slots known to be held, by holder.
        hold: Whether it is in use by pods.
        holders: Pods that hold or may hold it.
        counted: Further held slots as far as counts can tell.
    """

    gpu: int
    instance: int | None
    resource: str
    slots: int
    used: bool
    exact: Counter[str] = field(default_factory=Counter)
    hold: Hold = Hold.FREE
    holders: tuple[str, ...] = ()
    counted: int = 0

    @property
    def left(self) -> int:
        """Slots that nobody is known to hold."""
        return max(0, self.slots - self.exact.total())


@dataclass(kw_only=True)
class _Book:
    """The slices of one node and who holds them."""

    node: str
    gpus: list[Gpu]
    shares: _Shares
    slices: list[_Slice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for position, gpu in enumerate(self.gpus):
            self.names.update(_aliases(gpu))
            self.slices += self._of(position, gpu)

    def _of(self, position: int, gpu: Gpu) -> Iterator[_Slice]:
        for number, instance in enumerate(gpu.instances):
            served = resource.mig_resource(instance.profile)
            yield _Slice(
                gpu=position,
                instance=number,
                resource=resource.WHOLE_GPU if gpu.single_strategy else served,
                slots=self.shares.get((self.node, served), 1),
                used=bool(instance.holders),
            )
        if gpu.mig_mode is not MigMode.ON:
            used = bool(gpu.holders)
            yield _Slice(
                gpu=position,
                instance=None,
                resource=resource.WHOLE_GPU,
                slots=gpu.replicas,
                used=used,
            )

    def enter(self, pods: Sequence[Pod], claims: Sequence[DeviceClaim]) -> None:
        """Enter the holders: first what is known exactly, then what is counted."""
        wanted: Counter[tuple[str, str]] = Counter()  # (resource, holder) → slots to account for
        uids = {pod.uid: pod.full_name for pod in pods if pod.uid is not None}
        for pod in pods:
            for name, count in sorted(pod.requests.items()):
                wanted[self._name(name), pod.full_name] += count
        exact: Counter[tuple[str, str]] = Counter()
        for claim in claims:
            holder = uids.get(claim.pod_uid)
            if holder is None:
                holder = self._unknown(claim, wanted)
            self._enter_claim(claim, holder, exact)
        for pod in pods:
            self._enter_place(pod, exact)
        rest = wanted - exact
        for name in sorted({s.resource for s in self.slices} | {name for name, _ in rest}):
            holders = {h: n for (r, h), n in sorted(rest.items()) if r == name and n > 0}
            self._enter_counted(name, holders)

    def presume(self) -> None:
        """Take whatever nobody is known to hold as held, for want of word that it is not."""
        for part in self.slices:
            part.hold = Hold.POSSIBLE if part.hold is Hold.FREE else part.hold
            part.counted = part.left

    def marked(self) -> list[Gpu]:
        """Return the GPUs with what was entered."""
        marked = list(self.gpus)
        for part in self.slices:
            gpu = marked[part.gpu]
            if part.instance is None:
                hold, holders = _both(gpu, part)
                held = min(part.slots, part.exact.total() + part.counted)
                marked[part.gpu] = replace(gpu, hold=hold, holders=holders, slots_held=held)
            else:
                instances = list(gpu.instances)
                own = instances[part.instance]
                hold, holders = _both(own, part)
                instances[part.instance] = replace(own, hold=hold, holders=holders)
                marked[part.gpu] = replace(gpu, instances=tuple(instances))
        return marked

    def held(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield how many slots of each resource are in use."""
        renamed = any(gpu.renamed for gpu in self.gpus)
        for name in sorted({part.resource for part in self.slices}):
            parts = [part for part in self.slices if part.resource == name]
            exact = sum(min(part.slots, part.exact.total()) for part in parts)
            processes = sum(1 for part in parts if part.used and not part.exact)
            counted = sum(part.counted for part in parts)
            shown = resource.shared(name) if renamed and name == resource.WHOLE_GPU else name
            yield (self.node, shown), exact + max(processes, counted)

    @property
    def _complete(self) -> bool:
        """Whether the GPUs of the node are given, with all their slices."""
        return bool(self.gpus) and not any(
            gpu.mig_mode is MigMode.ON and gpu.problem for gpu in self.gpus
        )

    def _name(self, name: str) -> str:
        plain = resource.unshared(name)
        return self.names.get(plain, plain)

    def _unknown(self, claim: DeviceClaim, wanted: Counter[tuple[str, str]]) -> str:
        """Name the holder of a claim that no given pod has; the pod may be gone, or not given."""
        holder = f"pod with uid {claim.pod_uid}"
        wanted[self._name(claim.resource), holder] += len(claim.device_ids)
        self.notes.append(
            f"node {self.node}: the kubelet remembers {claim.resource} of a {holder}, which is not"
            " among the pods given; it is taken to run"
        )
        return holder

    def _enter_claim(
        self, claim: DeviceClaim, holder: str, exact: Counter[tuple[str, str]]
    ) -> None:
        name = self._name(claim.resource)
        for device in claim.device_ids:
            part = self._device(device.partition("::")[0], name)
            if part is not None:
                part.exact[holder] += 1
                exact[name, holder] += 1

    def _device(self, device: str, name: str) -> _Slice | None:
        for part in self.slices:
            if part.resource != name:
                continue
            gpu = self.gpus[part.gpu]
            instance = None if part.instance is None else gpu.instances[part.instance]
            if instance is None and device in (gpu.uuid, str(gpu.index)):
                return part
            if instance is not None and device in _uuids(gpu, instance):
                return part
        return None

    def _enter_place(self, pod: Pod, exact: Counter[tuple[str, str]]) -> None:
        """Enter a pod that says itself where it is, unless the kubelet has said so already."""
        if pod.gpu_index is None or any(holder == pod.full_name for _, holder in exact):
            return
        for name, count in sorted(pod.requests.items()):
            parts = [part for part in self.slices if self._is_at(part, pod, self._name(name))]
            if len(parts) == 1:
                held = min(count, parts[0].left)
                parts[0].exact[pod.full_name] += held
                exact[self._name(name), pod.full_name] += held

    def _is_at(self, part: _Slice, pod: Pod, name: str) -> bool:
        gpu = self.gpus[part.gpu]
        if part.resource != name or gpu.index != pod.gpu_index:
            return False
        if pod.placement_start is None or part.instance is None:
            return pod.placement_start is None
        placement = gpu.instances[part.instance].placement
        return placement is not None and placement.start == pod.placement_start

    def _enter_counted(self, name: str, holders: Mapping[str, int]) -> None:
        """Spread held slots that nobody places over the slots that are left."""
        parts = [part for part in self.slices if part.resource == name]
        count, room = sum(holders.values()), sum(part.left for part in parts)
        if count > room and self._complete and _is_ours(name):
            self.notes.append(
                f"node {self.node}: pods hold {count + _exact(parts)} of {name}, but there are only"
                f" {room + _exact(parts)}; some of the input is old"
            )
        for part in parts:
            sure = bool(part.exact) or (part.left > 0 and count > room - part.left)
            part.hold = Hold.HELD if sure else Hold.POSSIBLE if count else Hold.FREE
            maybe = holders if part.left else {}
            part.holders = tuple(dict.fromkeys((*sorted(part.exact), *maybe)))
        _fill(parts, min(count, room))


def _fill(parts: Sequence[_Slice], count: int) -> None:
    """Spread held slots evenly, as the kubelet does it unless it is told to pack them."""
    waiting = [(part.exact.total(), number) for number, part in enumerate(parts) if part.left]
    heapq.heapify(waiting)
    for _ in range(count):
        held, number = heapq.heappop(waiting)
        parts[number].counted += 1
        if held + 1 < parts[number].slots:
            heapq.heappush(waiting, (held + 1, number))


def _exact(parts: Iterable[_Slice]) -> int:
    return sum(min(part.slots, part.exact.total()) for part in parts)


def _is_ours(name: str) -> bool:
    return name == resource.WHOLE_GPU or resource.mig_profile(name) is not None


def _both(own: Gpu | GpuInstance, part: _Slice) -> tuple[Hold, tuple[str, ...]]:
    """Join what processes say with what pods say; the stronger counts."""
    order = (Hold.FREE, Hold.POSSIBLE, Hold.HELD)
    hold = max(own.hold, part.hold, key=order.index)
    explained = part.hold is Hold.HELD and own.hold is not Hold.HELD  # memory in use is the pod's
    return hold, tuple(dict.fromkeys((*part.holders, *(() if explained else own.holders))))


def _aliases(gpu: Gpu) -> Iterator[tuple[str, str]]:
    """Yield resource names under which other drivers serve a profile, with the catalogue's."""
    model = library.find(gpu.model or "")
    for profile in model.mig.profiles if model is not None and model.mig is not None else ():
        for alias in profile.aliases:
            yield resource.mig_resource(alias), resource.mig_resource(profile.name)


def _uuids(gpu: Gpu, instance: GpuInstance) -> Iterator[str]:
    """Yield the ids of an instance's MIG devices; drivers before 470 made them of numbers."""
    for compute in instance.compute_instances:
        if compute.uuid is not None:
            yield compute.uuid
        if gpu.uuid is not None and instance.instance_id is not None:
            yield f"MIG-{gpu.uuid}/{instance.instance_id}/{compute.instance_id}"
