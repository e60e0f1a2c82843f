"""The figures as text and as a document."""

import dataclasses
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from bench.agent.allocation import Allocation
from bench.agent.cut import Cut
from bench.agent.node import MODEL, PER_GPU, PROFILE
from bench.agent.rest import Cost

__all__ = ["Report"]

_CUT_SECONDS = 1.0
_P99_SECONDS = 0.005
_CPU_SHARE = 0.005
_RESIDENT_BYTES = 64 << 20
_MEBIBYTE = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was measured in one run.

    Attributes:
        cut: The cut of a node.
        allocation: Answers to Allocate.
        costs: Of agents at rest.
    """

    cut: Cut
    allocation: Allocation
    costs: Sequence[Cost]

    def document(self) -> dict[str, object]:
        """Return the figures as plain values."""
        return {"machine": _machine(), **dataclasses.asdict(self)}

    def lines(self) -> Iterator[str]:
        """Yield the report line by line."""
        yield ", ".join(f"{name} {value}" for name, value in _machine().items())
        yield ""
        yield from _cut(self.cut)
        yield ""
        yield from _allocation(self.allocation)
        yield ""
        yield from _costs(self.costs)


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "load": round(os.getloadavg()[0], 1),
        "Linux": platform.release(),
        "Python": platform.python_version(),
        "gRPC": metadata.version("grpcio"),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    names = (line for line in text.splitlines() if line.startswith("model name"))
    return next(names, ": unknown").partition(": ")[2]


def _cut(cut: Cut) -> Iterator[str]:
    ours, least = statistics.median(cut.cut), statistics.median(cut.peer)
    yield (
        f"{cut.gpus} x {MODEL}, whole, into {PER_GPU} x {PROFILE} each, from the edit until the"
        f" kubelet lists slices: {cut.slices}; calls of the driver take no time"
    )
    yield f"  partita    median {ours:6.3f} s, {_range(cut.cut)}{_verdict(ours, _CUT_SECONDS, 's')}"
    ratio = f"partita/least {ours / least:.1f}"
    yield f"  the least  median {least:6.3f} s, {_range(cut.peer)}; {ratio}"
    yield f"  and back   median {statistics.median(cut.uncut):6.3f} s, {_range(cut.uncut)}"
    yield (
        "  not measured: mig-manager pauses four operands of the node and waits up to 5 min for"
        " each to leave, and"
    )
    yield (
        "  30 s more when it stops host services and the mode changes (NVIDIA/mig-parted,"
        " pkg/mig/reconfigure/reconfigure.go)"
    )


def _allocation(found: Allocation) -> Iterator[str]:
    ours, least = _percentiles(found.seconds), _percentiles(found.peer)
    yield (
        f"Allocate of 1 of {found.devices} devices over the socket, from another process, calls:"
        f" {len(found.seconds)}"
    )
    p99 = _verdict(ours[1] * 1e3, _P99_SECONDS * 1e3, "ms")
    yield f"  partita    p50 {ours[0] * 1e3:6.3f} ms, p99 {ours[1] * 1e3:6.3f} ms{p99}"
    yield (
        f"  the least  p50 {least[0] * 1e3:6.3f} ms, p99 {least[1] * 1e3:6.3f} ms;"
        f" partita/least p50 {ours[0] / least[0]:.1f}, p99 {ours[1] / least[1]:.1f}"
    )


def _costs(costs: Sequence[Cost]) -> Iterator[str]:
    watched = costs[0].seconds
    yield f"partita agent at rest with {costs[0].gpus} GPUs cut, watched for {watched:.0f} s"
    for cost in costs:
        share = _verdict(100 * cost.cpu_share, 100 * _CPU_SHARE, "%")
        yield f"  CPU of one core, {cost.driver:9}  {100 * cost.cpu_share:6.2f} %{share}"
    for cost in costs:
        resident, proportional = (
            size / _MEBIBYTE for size in (cost.resident_bytes, cost.proportional_bytes)
        )
        size = _verdict(resident, _RESIDENT_BYTES / _MEBIBYTE, "MiB")
        yield (
            f"  memory, {cost.driver:9}  resident {resident:5.1f} MiB,"
            f" proportional {proportional:5.1f} MiB{size}"
        )
    if len(costs) == 1:
        yield "  stub NVML: not measured, there is no C compiler: cc"


def _verdict(value: float, goal: float, unit: str) -> str:
    """Say what the goal is, and whether it is met."""
    return f"; goal under {goal:g} {unit}: {'met' if value < goal else 'MISSED'}"


def _range(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.3f} to {max(seconds):.3f} of {len(seconds)}"


def _percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the 50th and the 99th."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
