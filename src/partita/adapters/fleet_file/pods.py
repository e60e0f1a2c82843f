"""The ``pods`` of a fleet file: what waits, and what runs where."""

import difflib
import math
import re
from collections.abc import Mapping
from fractions import Fraction

from partita.adapters.fleet_file.record import Field, Record
from partita.adapters.fleet_file.world import World
from partita.config.untyped import shown
from partita.model import resource
from partita.model.gpu import MigMode
from partita.model.pod import Phase, Pod

__all__ = ["KEYS", "read"]

KEYS = (
    "name",
    "namespace",
    "request",
    "count",
    "priority",
    "created",
    "memory",
    "node",
    "gpu",
    "start",
)

_CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", re.ASCII)
_MEMORY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KMGT]i|[kMGT])\Z", re.ASCII)
_PRIORITY = re.compile(r"-?\d{1,10}\Z", re.ASCII)
_PROFILE = re.compile(r"\d{1,2}g\.\d{1,4}gb([+.][a-z]+)*(-[a-z]+)?\Z", re.ASCII)
_SUFFIX = re.compile(r"[a-z0-9][a-z0-9._-]{0,100}\Z", re.ASCII)
_UNITS = {
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


def read(entry: Record, world: World) -> None:
    """Add the pods of one entry.

    Raises:
        InputError: When a value is unknown or wrong, or the pod cannot run where it is said to.
    """
    name, namespace, count = entry.need("name"), entry.get("namespace"), entry.get("count")
    requests = _requests(entry.need("request"))
    node, gpu, start = _place(entry, world, requests)
    copies = 1 if count is None else count.whole(least=1)
    world.spend(copies, count or name)
    for suffix in [""] if count is None else [f"-{number}" for number in range(copies)]:
        pod = Pod(
            namespace=namespace.name() if namespace is not None else "default",
            name=name.name() + suffix,
            requests=requests,
            memory_mib=_memory_mib(entry.get("memory")),
            node=node,
            gpu_index=gpu,
            placement_start=start,
            phase=Phase.PENDING if node is None else Phase.RUNNING,
            priority=_priority(entry.get("priority")),
            created=_created(entry.get("created")),
        )
        world.add_pod(pod, name)


def _requests(field: Field) -> Mapping[str, int]:
    if not field.is_mapping:
        return {_resource(field.text(), field): 1}
    found: dict[str, int] = {}
    for item in field.mapping():
        name = _resource(item.key, item)
        if name in found:
            item.fail(f"the resource stands twice: {name}", "keep one of them")
        found[name] = item.whole(least=1)
    return found or field.fail("request: expected a resource", _request_hint())


def _resource(text: str, at: Field) -> str:
    """Return the full name of ``gpu``, ``mig-1g.10gb``, ``1g.10gb`` or ``nvidia.com/gpu``."""
    short = text.removeprefix(resource.DOMAIN)
    bare = resource.unshared(short)
    profile = bare.removeprefix("mig-")
    shared = resource.SHARED_SUFFIX if short.endswith(resource.SHARED_SUFFIX) else ""
    if _PROFILE.match(profile):
        return resource.mig_resource(profile) + shared
    if bare == "gpu":
        return resource.WHOLE_GPU + shared
    if short != text and _SUFFIX.match(short):
        return text
    return at.fail(f"request: not a GPU resource: {shown(text)}", _request_hint())


def _request_hint() -> str:
    return "write gpu, a MIG profile like 1g.10gb, or a full name like nvidia.com/gpu.shared"


def _memory_mib(field: Field | None) -> int | None:
    if field is None:
        return None
    match = _MEMORY.match(field.text())
    if match is None:
        field.fail(f"memory: expected an amount, got: {shown(field.text())}", "write it like 10Gi")
    return math.ceil(Fraction(match[1]) * _UNITS[match[2]] / (1 << 20))


def _priority(field: Field | None) -> int:
    if field is None:
        return 0
    if not _PRIORITY.match(field.text()):
        field.fail(f"priority: expected a whole number, got: {shown(field.text())}")
    return int(field.text())


def _created(field: Field | None) -> str | None:
    if field is not None and not _CREATED.match(field.text()):
        message = f"created: expected a time, got: {shown(field.text())}"
        field.fail(message, "write it in UTC like 2024-05-01T08:00:00Z")
    return None if field is None else field.text()


def _place(
    entry: Record, world: World, requests: Mapping[str, int]
) -> tuple[str | None, int | None, int | None]:
    node, gpu, start = entry.get("node"), entry.get("gpu"), entry.get("start")
    if gpu is not None and node is None:
        gpu.fail("gpu: it says nothing without a node", "add `node`")
    if start is not None and gpu is None:
        start.fail("start: it says nothing without a GPU", "add `gpu`")
    if node is None:
        return None, None, None
    if world.gpus and node.name() not in world.gpus:
        node.fail(f"there is no node named: {node.name()}", _near(node.name(), list(world.gpus)))
    index = gpu.whole() if gpu is not None else None
    first = start.whole() if start is not None else None
    if gpu is not None and index is not None and world.gpus:
        _check(world, node.name(), gpu, start, requests)
    return node.name(), index, first


def _check(
    world: World, node: str, gpu: Field, start: Field | None, requests: Mapping[str, int]
) -> None:
    """Refuse a pod on a slice that is not there, or is not what the pod asks for."""
    gpus = world.gpus[node]
    if gpu.whole() >= len(gpus):
        gpu.fail(f"{node} has no such GPU: {gpu.whole()}", f"it has {len(gpus)}, counted from 0")
    if sum(requests.values()) != 1:
        gpu.fail("a pod whose GPU is known holds one slice", "lower `request`, or drop `gpu`")
    if start is None:
        if gpus[gpu.whole()].mig_mode is MigMode.ON:
            gpu.fail("the GPU has MIG on, so the slice is needed too", "add `start`")
        return
    instances = gpus[gpu.whole()].instances or ()
    found = [i for i in instances if i.placement and i.placement.start == start.whole()]
    if not found or found[0].profile is None:
        start.fail(
            f"no instance starts there: {start.whole()}", "it has " + _starts(world, node, gpu)
        )
    name = resource.mig_resource(found[0].profile)
    if name not in requests:
        start.fail(f"the pod asks for something else than: {name}", "correct `request` or `start`")


def _starts(world: World, node: str, gpu: Field) -> str:
    instances = world.gpus[node][gpu.whole()].instances or ()
    return ", ".join(f"{i.profile} at {i.placement}" for i in instances) or "none"


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else "the nodes are listed under `nodes`"
