"""``status`` of a ``GPUNode``: what an agent says of itself, in Kubernetes' form."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from partita.config import condition_document
from partita.model.agent_status import AgentStatus, GpuStatus, ResourceStatus, SliceStatus
from partita.model.gpu import MigMode

__all__ = ["decode", "encode"]


def encode(status: AgentStatus) -> Mapping[str, object]:
    """Return the document of a status; what is unknown, empty or usual is left out."""
    agent: dict[str, object] = {
        "version": status.version,
        "processId": status.process_id,
        "reportedAt": status.at,
    }
    document = {
        "counts": _counts(status),
        "conditions": condition_document.encode_all(status.conditions),
        "gpus": [_gpu(gpu) for gpu in status.gpus],
        "resources": [_resource(one) for one in status.resources],
        "agent": agent | ({"source": status.source} if status.source else {}),
    }
    return {key: value for key, value in document.items() if value}


def decode(node: str, checked: Mapping[str, Any]) -> AgentStatus:
    """Return the status of what ``schema_reader`` has let pass; sums are not read back."""
    agent = checked["agent"]
    return AgentStatus(
        node=node,
        version=agent["version"],
        process_id=agent["processId"],
        at=agent["reportedAt"],
        source=agent.get("source", ""),
        conditions=tuple(map(condition_document.decode, checked.get("conditions", ()))),
        gpus=tuple(map(_decode_gpu, checked.get("gpus", ()))),
        resources=tuple(ResourceStatus(**one) for one in checked.get("resources", ())),
    )


def _counts(status: AgentStatus) -> Mapping[str, object]:
    """Return sums for tables; none while the driver is silent, since nothing is not 0."""
    answers = status.condition("DriverAnswers")
    if not status.gpus and (answers is None or answers.holds is not True):
        return {}
    slices = [one for gpu in status.gpus for one in gpu.slices]
    products = Counter(gpu.product.removeprefix("NVIDIA ") or "unknown" for gpu in status.gpus)
    return {
        "gpus": len(status.gpus),
        "slices": len(slices),
        "held": sum(bool(one.holders) for one in slices),
        "models": ", ".join(f"{count} x {product}" for product, count in products.items()),
    }


def _gpu(gpu: GpuStatus) -> Mapping[str, object]:
    optional = {
        "memoryMib": gpu.memory_mib,
        "migMode": gpu.mig_mode,
        "reason": gpu.reason,
        "since": gpu.since or None,
        "processes": list(gpu.processes) or None,
        "slices": [_slice(one) for one in gpu.slices] or None,
    }
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "product": gpu.product,
        "phase": gpu.phase,
        **_known(optional),
    }


def _slice(one: SliceStatus) -> Mapping[str, object]:
    optional = {
        "profile": one.profile,
        "placement": one.placement,
        "leaving": one.leaving or None,
        "holders": list(one.holders) or None,
        "budgetMib": one.budget_mib,
    }
    return {
        "deviceId": one.device_id,
        "resource": one.resource,
        "usable": one.usable,
        **_known(optional),
    }


def _resource(one: ResourceStatus) -> Mapping[str, object]:
    return {
        "name": one.name,
        "slices": one.slices,
        "usable": one.usable,
        "held": one.held,
        "connected": one.connected,
        **_known({"problem": one.problem}),
    }


def _known(document: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in document.items() if value is not None}


def _decode_gpu(checked: Mapping[str, Any]) -> GpuStatus:
    mode: MigMode | None = checked.get("migMode")
    return GpuStatus(
        index=checked["index"],
        uuid=checked["uuid"],
        product=checked["product"],
        memory_mib=checked.get("memoryMib"),
        mig_mode=mode.value if mode is not None else None,
        phase=checked["phase"],
        reason=checked.get("reason"),
        since=checked.get("since", ""),
        processes=tuple(checked.get("processes", ())),
        slices=tuple(map(_decode_slice, checked.get("slices", ()))),
    )


def _decode_slice(checked: Mapping[str, Any]) -> SliceStatus:
    return SliceStatus(
        device_id=checked["deviceId"],
        resource=checked["resource"],
        profile=checked.get("profile"),
        placement=checked.get("placement"),
        usable=checked["usable"],
        leaving=checked.get("leaving", False),
        holders=tuple(checked.get("holders", ())),
        budget_mib=checked.get("budgetMib"),
    )
