"""A Kubernetes pod object to the pod noun, when the pod asks for a resource of NVIDIA's.

Requests are summed as the scheduler does it: containers and sidecars (init containers that are
restarted always) run together, other init containers one by one before them, beside the sidecars
that have started by then. Source: Kubernetes, "Init Containers" (resource sharing) and KEP-753.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from partita.adapters.kubectl import nodes
from partita.config import untyped_parser
from partita.config.untyped import Untyped
from partita.errors import InputError
from partita.model import resource
from partita.model.pod import NodeRequirement, Phase, Pod, Toleration

__all__ = ["read"]

_ASSIGNMENT = "runai-mig-device"  # annotation of Run:ai schedulers before 2.9
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_PHASES = {
    "Pending": Phase.PENDING,
    "Running": Phase.RUNNING,
    "Unknown": Phase.RUNNING,  # its node is out of reach, so it may well run and hold its slice
    "Succeeded": Phase.FINISHED,
    "Failed": Phase.FINISHED,
}
_NOWHERE = NodeRequirement(key="metadata.name", operator="In")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assignment:
    """The slice that an annotation says the pod got."""

    resource: str
    gpu_index: int
    placement_start: int


def read(item: Untyped) -> tuple[Pod | None, tuple[str, ...]]:
    """Return the pod, or None when it asks for nothing of ``nvidia.com/``, and notes.

    Raises:
        InputError: When the object lacks name or containers or a value has the wrong type.
    """
    metadata, spec = item.need("metadata"), item.need("spec")
    name = metadata.need("name").name()
    namespace = _text(metadata, "namespace") or "default"
    requests = _requests(spec)
    assignment, notes = _assignment(metadata, f"pod {namespace}/{name}", requests)
    if not requests and assignment is None:
        claims = spec.get("resourceClaims")
        if claims is not None and claims.value:
            notes = (*notes, f"pod {namespace}/{name} asks through resource claims, not read here")
        return None, notes
    pod = Pod(
        namespace=namespace,
        name=name,
        uid=_text(metadata, "uid"),
        requests=requests or {assignment.resource: 1 for assignment in (assignment,) if assignment},
        node=_text(spec, "nodeName"),
        gpu_index=assignment.gpu_index if assignment else None,
        placement_start=assignment.placement_start if assignment else None,
        phase=_phase(item),
        priority=priority.whole() if (priority := spec.get("priority")) is not None else 0,
        created=_text(metadata, "creationTimestamp"),
        node_selector=nodes.texts(spec.get("nodeSelector")),
        node_affinity=_affinity(spec),
        tolerations=_tolerations(spec),
    )
    return pod, notes


def _text(item: Untyped, key: str) -> str | None:
    found = item.get(key)
    return None if found is None or found.value == "" else found.name()


def _phase(item: Untyped) -> Phase:
    status = item.get("status")
    written = status.get("phase") if status is not None else None
    if written is None:
        return Phase.PENDING
    phase = _PHASES.get(written.text())
    return phase if phase is not None else written.fail("expected a pod phase, got", written.value)


def _requests(spec: Untyped) -> Mapping[str, int]:
    started: Counter[str] = Counter()  # sidecars so far
    peak: Counter[str] = Counter()
    initial = spec.get("initContainers")
    for container in initial.elements() if initial is not None else ():
        own = _of_container(container)
        if _text(container, "restartPolicy") == "Always":
            started += own
            peak |= started
        else:
            peak |= started + own
    together = started
    for container in spec.need("containers").elements():
        together = together + _of_container(container)
    return dict(together | peak)


def _of_container(container: Untyped) -> Counter[str]:
    resources = container.get("resources")
    if resources is None:
        return Counter()
    limits = nodes.resources(resources.get("limits"))
    return Counter({**nodes.resources(resources.get("requests")), **limits})


def _assignment(
    metadata: Untyped, pod: str, requests: Mapping[str, int]
) -> tuple[_Assignment | None, tuple[str, ...]]:
    annotations = metadata.get("annotations")
    written = annotations.get(_ASSIGNMENT) if annotations is not None else None
    if written is None:
        return None, ()
    try:
        found = _parsed(written)
    except InputError as error:
        return None, (f"{pod}: annotation {_ASSIGNMENT} is not usable: {error.message}",)
    if requests and found.resource not in requests:
        return None, (f"{pod}: annotation {_ASSIGNMENT} contradicts its limits and is ignored",)
    if requests:
        return found, ()
    slice_name = f"{found.resource} at {found.placement_start} of GPU {found.gpu_index}"
    return found, (f"{pod}: that it holds {slice_name} is only in annotation {_ASSIGNMENT}",)


def _parsed(written: Untyped) -> _Assignment:
    documents = untyped_parser.parse(written.text(), path=written.path)
    if len(documents) != 1:
        written.fail("expected one JSON object, got", written.value)
    name = documents[0].need("name")
    written_name = name.name()
    full = written_name if "/" in written_name else resource.DOMAIN + written_name
    if resource.mig_profile(full) is None:
        name.fail("expected a MIG resource, got", written_name)
    return _Assignment(
        resource=full,
        gpu_index=documents[0].need("gpuindex").count(),
        placement_start=documents[0].need("position").count(),
    )


def _affinity(spec: Untyped) -> tuple[tuple[NodeRequirement, ...], ...]:
    step: Untyped | None = spec
    for key in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        step = step.get(key) if step is not None else None
    if step is None:
        return ()
    terms = [tuple(_expressions(term)) for term in step.need("nodeSelectorTerms").elements()]
    # Kubernetes lets an empty term match no node; an empty tuple would match every node.
    return tuple(term for term in terms if term) or ((_NOWHERE,),)


def _expressions(term: Untyped) -> Iterator[NodeRequirement]:
    for part in ("matchExpressions", "matchFields"):
        listed = term.get(part)
        for expression in listed.elements() if listed is not None else ():
            operator = expression.need("operator")
            if operator.text() not in _OPERATORS:
                operator.fail(f"expected one of {', '.join(_OPERATORS)}, got", operator.value)
            values = expression.get("values")
            yield NodeRequirement(
                key=expression.need("key").text(),
                operator=operator.text(),
                values=tuple(value.scalar() for value in values.elements()) if values else (),
            )


def _tolerations(spec: Untyped) -> tuple[Toleration, ...]:
    listed = spec.get("tolerations")
    return tuple(
        Toleration(
            key=_text(toleration, "key") or "",
            operator=_text(toleration, "operator") or "Equal",
            value=_text(toleration, "value") or "",
            effect=_text(toleration, "effect") or "",
        )
        for toleration in (listed.elements() if listed is not None else ())
    )
