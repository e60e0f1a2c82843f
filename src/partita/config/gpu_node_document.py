"""``GPUNode`` documents (``partita.dev/v1alpha1``): read strictly, and written.

What is wanted of GPUs is refused at the first key that nobody reads, since a half-understood layout
must not be carried out. In ``status``, such a key is a warning only: agents are renewed one by one,
so whoever reads it must bear a newer one.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from partita.config import (
    gpu_node_status,
    mig_layouts,
    object_header,
    plain_nodes,
    plain_reader,
    schema_reader,
    yaml_nodes,
)
from partita.config.gpu_node_schema import KIND, OVERLAP, SECTIONS, SPEC, STATUS, LayoutKind
from partita.config.inspection import Decoded, Inspection, sorted_findings
from partita.config.partition_policy import API_VERSION
from partita.config.yaml_nodes import Position, YamlMapping, YamlNode
from partita.model.agent_status import AgentStatus
from partita.model.gpu_node import (
    GpuNode,
    Layout,
    MigLayout,
    PlacedProfile,
    SharedDevices,
    TimeSlicedLayout,
    WantedGpu,
    WholeLayout,
)
from partita.model.placement import Placement

__all__ = [
    "decode",
    "decode_object",
    "encode",
    "encode_spec",
    "encode_status",
    "looks_like",
    "read",
]

_TAKE_SPEC = plain_reader.of(SPEC)
_TAKE_STATUS = plain_reader.of(STATUS)


def decode(text: str, path: str) -> Decoded[GpuNode]:
    """Read the nodes of a YAML text.

    Raises:
        InputError: When the text is not YAML.
    """
    inspection = Inspection(path=path)
    values = []
    for document in yaml_nodes.compose(text, path):
        if isinstance(document, YamlMapping) and looks_like(document):
            node = read(document, inspection)
            values += [node] if node is not None else []
        else:
            inspection.ignored(document)
    return Decoded(values=tuple(values), findings=sorted_findings(inspection.findings))


def decode_object(value: Mapping[str, object], path: str = "GPUNode") -> Decoded[GpuNode]:
    """Read one object as an API server returns it.

    Raises:
        InputError: When it is nested too deeply.
    """
    quick = _read_quickly(value)
    if quick is not None:
        return Decoded(values=(quick,))
    inspection = Inspection(path=path)
    root = plain_nodes.of(value, path)
    if isinstance(root, YamlMapping) and looks_like(root):
        node = read(root, inspection)
    else:
        inspection.ignored(root)
        node = None
    findings = plain_nodes.placeless(inspection.findings)
    return Decoded(values=() if node is None else (node,), findings=findings)


def looks_like(node: YamlNode) -> bool:
    """Tell whether a document is a ``GPUNode``, whatever its version."""
    return object_header.is_kind(node, KIND)


def read(root: YamlMapping, inspection: Inspection) -> GpuNode | None:
    """Read one node that is composed already; None when it has an error."""
    before = len(inspection.findings)
    inspection.known_keys(root, "", object_header.TOP)
    object_header.check_version(root, API_VERSION, inspection)
    name = object_header.name(root, "a GPUNode", inspection)
    inner = inspection.inside(name) if name else inspection
    spec = inner.mapping(root.get("spec"), "spec")
    wanted = schema_reader.read(SPEC, spec, "spec", inner) if spec is not None else None
    gpus = _gpus(wanted or {}, root.at, inner)
    told = _told(inner.mapping(root.get("status"), "status"), inner)
    generation = object_header.generation(root, inspection)
    if inspection.has_errors_since(before):
        return None
    return _node(name, generation, gpus, told)


def _read_quickly(value: Mapping[str, object]) -> GpuNode | None:
    """Return the node of an object that is as it should be, None when it may not be."""
    named = object_header.plain(value, API_VERSION, KIND)
    spec = _TAKE_SPEC(value.get("spec", {}))
    told = _TAKE_STATUS(value["status"]) if value.get("status") else {}
    if named is None or spec is None or told is None:
        return None
    inspection = Inspection(path="")
    gpus = _gpus(spec, plain_nodes.NOWHERE, inspection)
    if inspection.findings:
        return None
    return _node(*named, gpus, told)


def _node(
    name: str, generation: int | None, gpus: tuple[WantedGpu, ...], told: Mapping[str, Any] | None
) -> GpuNode:
    return GpuNode(
        name=name,
        gpus=gpus,
        generation=generation,
        observed_generation=told.get("observedGeneration") if told else None,
        status=gpu_node_status.decode(name, told) if told else None,
    )


def encode(node: GpuNode) -> Mapping[str, object]:
    """Return the document of a node; what equals the default is left out."""
    metadata: dict[str, object] = {"name": node.name}
    if node.generation is not None:
        metadata["generation"] = node.generation
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": encode_spec(node.gpus),
    }
    if node.status is None:
        return document
    return {**document, "status": encode_status(node.status, node.observed_generation)}


def encode_spec(gpus: tuple[WantedGpu, ...]) -> Mapping[str, object]:
    """Return ``spec`` alone."""
    return {"gpus": [_encode_gpu(gpu) for gpu in gpus]} if gpus else {}


def encode_status(status: AgentStatus, observed_generation: int | None) -> Mapping[str, object]:
    """Return ``status`` alone."""
    seen = {} if observed_generation is None else {"observedGeneration": observed_generation}
    return {**seen, **gpu_node_status.encode(status)}


def _told(status: YamlMapping | None, inspection: Inspection) -> Mapping[str, Any] | None:
    if status is None or not status.entries:
        return None
    return schema_reader.read(STATUS, status, "status", inspection, newer_keys=True)


def _gpus(
    checked: Mapping[str, Any], at: Position, inspection: Inspection
) -> tuple[WantedGpu, ...]:
    found = []
    for number, gpu in enumerate(checked.get("gpus", ())):
        where = f"spec.gpus[{number}]"
        if _sections_fit(gpu, where, at, inspection):
            layout = _layout(gpu, where, at, inspection)
            found.append(
                WantedGpu(
                    uuid=gpu["uuid"],
                    layout=layout,
                    may_reset=gpu.get("mayReset", False),
                    policy=gpu.get("policy"),
                )
            )
    return tuple(found)


def _sections_fit(gpu: Mapping[str, Any], where: str, at: Position, inspection: Inspection) -> bool:
    fits = True
    for kind, key in SECTIONS.items():
        if (gpu["layout"] is kind) != (key in gpu):
            chosen = gpu["layout"].value
            message = f"{where}.{key} belongs to layout {kind.value}, and only to it"
            hint = f"remove {key}" if key in gpu else f"add {key}, or change the layout: {chosen}"
            inspection.error("layout-section", message, at, hint, where)
            fits = False
    return fits


def _layout(gpu: Mapping[str, Any], where: str, at: Position, inspection: Inspection) -> Layout:
    kind: LayoutKind = gpu["layout"]
    match kind:
        case LayoutKind.WHOLE:
            return WholeLayout()
        case LayoutKind.TIME_SLICING:
            section = gpu["timeSlicing"]
            return TimeSlicedLayout(replicas=section["replicas"], **_manners(section))
        case LayoutKind.MIG:
            section = gpu["mig"]
            instances = tuple(_instance(one) for one in section["instances"])
            _check_instances(instances, f"{where}.mig.instances", at, inspection)
            shared = tuple(SharedDevices(**one) for one in section.get("shared", ()))
            return MigLayout(instances=instances, shared=shared, **_manners(section))


def _manners(section: Mapping[str, Any]) -> dict[str, bool]:
    return {
        "renamed": section.get("renamed", False),
        "one_each": section.get("oneEach", False),
    }


def _instance(one: Mapping[str, Any]) -> PlacedProfile:
    placement = Placement(start=one["start"], size=one["size"])
    return PlacedProfile(profile=one["profile"], placement=placement)


def _check_instances(
    instances: tuple[PlacedProfile, ...], where: str, at: Position, inspection: Inspection
) -> None:
    for profile in dict.fromkeys(instance.profile for instance in instances):
        if not mig_layouts.boards_with([profile]):
            message = f"no board of the catalogue has this profile: {profile}"
            hint = "`partita gpus` lists the profiles of every board"
            inspection.error("profile-unknown", message, at, hint, where)
    for one, other in combinations(instances, 2):
        if one.placement.overlaps(other.placement):
            places = f"{one.placement} and {other.placement}"
            message = f"{OVERLAP.message}: {places}"
            inspection.error("instances-overlap", message, at, "move one of them", where)


def _encode_gpu(gpu: WantedGpu) -> Mapping[str, object]:
    document: dict[str, object] = {"uuid": gpu.uuid}
    match gpu.layout:
        case WholeLayout():
            document["layout"] = LayoutKind.WHOLE.value
        case TimeSlicedLayout() as sliced:
            document["layout"] = LayoutKind.TIME_SLICING.value
            document["timeSlicing"] = {"replicas": sliced.replicas, **_encode_manners(sliced)}
        case MigLayout() as cut:
            document["layout"] = LayoutKind.MIG.value
            document["mig"] = _encode_mig(cut)
    if gpu.may_reset:
        document["mayReset"] = True
    if gpu.policy is not None:
        document["policy"] = gpu.policy
    return document


def _encode_mig(layout: MigLayout) -> Mapping[str, object]:
    instances = [
        {"profile": one.profile, "start": one.placement.start, "size": one.placement.size}
        for one in layout.instances
    ]
    shared = [{"name": one.name, "replicas": one.replicas} for one in layout.shared]
    return {
        "instances": instances,
        **({"shared": shared} if shared else {}),
        **_encode_manners(layout),
    }


def _encode_manners(layout: MigLayout | TimeSlicedLayout) -> Mapping[str, object]:
    flags = {"renamed": layout.renamed, "oneEach": layout.one_each}
    return {key: value for key, value in flags.items() if value}
