"""Statuses of agents in several conditions."""

from dataclasses import replace

from partita.model.agent_status import (
    AgentStatus,
    Condition,
    GpuStatus,
    ResourceStatus,
    SliceStatus,
)

SINCE = "2026-03-01T10:00:00.000Z"
READY = Condition(type="Ready", holds=True, reason="Serving", since=SINCE)


def _slice(gpu: int, number: int, holder: str | None = None, *, usable: bool = True) -> SliceStatus:
    return SliceStatus(
        device_id=f"MIG-{gpu}{number}aa0000-1111-5222-8333-444455556666",
        resource="nvidia.com/mig-1g.5gb",
        profile="1g.5gb",
        placement=f"{number}:1",
        usable=usable,
        holders=(holder,) if holder is not None else (),
        budget_mib=4864,
    )


def _gpu(index: int, *, held: int = 0, lost: bool = False) -> GpuStatus:
    return GpuStatus(
        index=index,
        uuid=f"GPU-{index}0000000-1111-2222-3333-444455556666",
        product="NVIDIA A100-SXM4-40GB",
        memory_mib=40960,
        mig_mode=None if lost else "on",
        phase="Sick" if lost else "Ready",
        reason="the driver says: GPU is lost" if lost else None,
        since=SINCE,
        slices=tuple(
            _slice(index, number, f"ml/train-{number}" if number < held else None, usable=not lost)
            for number in range(7)
        ),
    )


CUT = AgentStatus(
    node="gpu-a1",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    source="/etc/partita/config.yaml",
    conditions=(READY,),
    gpus=tuple(_gpu(index, held=index % 3) for index in range(8)),
    resources=(
        ResourceStatus(name="nvidia.com/mig-1g.5gb", slices=56, usable=56, held=7, connected=True),
    ),
)

ONE_LOST = AgentStatus(
    node="gpu-a1",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    conditions=(
        READY,
        Condition(
            type="GpusHealthy", holds=False, reason="Sick", message="1 of 3 GPUs", since=SINCE
        ),
    ),
    gpus=(_gpu(0), _gpu(1, lost=True), _gpu(2, held=2)),
    resources=(
        ResourceStatus(name="nvidia.com/mig-1g.5gb", slices=21, usable=14, held=2, connected=True),
    ),
)

RIVAL = AgentStatus(
    node="gpu-a1",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    conditions=(
        Condition(
            type="Ready",
            holds=False,
            reason="OtherOwner",
            message="nvidia-device-plugin runs on this node as process 4711",
            hint="label the node nvidia.com/gpu.deploy.device-plugin=false",
            since=SINCE,
        ),
    ),
)

SHARED = AgentStatus(
    node="gpu-t4",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    conditions=(READY,),
    gpus=(
        GpuStatus(
            index=0,
            uuid="GPU-90000000-1111-2222-3333-444455556666",
            product="Tesla T4",
            mig_mode="unsupported",
            phase="Waiting",
            reason="default/notebook-with-quite-a-long-name, default/other-notebook",
            since="2026-03-01T12:29:55.000Z",
            slices=tuple(
                SliceStatus(
                    device_id=f"GPU-90000000-1111-2222-3333-444455556666::{slot}",
                    resource="nvidia.com/gpu.shared",
                    leaving=slot > 1,
                    holders=(f"default/notebook-{slot}",),
                )
                for slot in range(4)
            ),
        ),
    ),
    resources=(
        ResourceStatus(
            name="nvidia.com/gpu.shared",
            slices=4,
            usable=4,
            held=4,
            connected=False,
            problem="the kubelet is not there",
        ),
    ),
)

EMPTY = AgentStatus(
    node="cpu-1",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    conditions=(READY,),
)


_MIXED_PROFILES = (
    ("1g.10gb", "0:1", "ml/notebook-7c9f4b6d5-x2x8k", "nvidia.com/mig-1g.10gb.shared"),
    ("1g.10gb+me", "1:1", "ml/video-6", "nvidia.com/mig-1g.10gb.me"),
    ("2g.20gb", "2:2", None, "nvidia.com/mig-2g.20gb"),
    ("3g.40gb", "4:4", "research-language/pretraining-worker-of-many-0", "nvidia.com/mig-3g.40gb"),
)
_BUSY = "3g.40gb at 4:4 is held by research-language/pretraining-worker-of-many-0"

MIXED = AgentStatus(
    node="gpu-h2.cluster.example",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    source="/etc/partita/config.yaml",
    conditions=(
        READY,
        Condition(
            type="LayoutsFollowed",
            holds=False,
            reason="NotUnderstood",
            message="/etc/partita/config.yaml:12:7: unknown profile of h100-80gb-sxm5: 1g.5gb",
            hint="what stood in the file before is followed",
            since="2026-03-01T12:21:00.000Z",
        ),
        Condition(type="GpusAsWanted", holds=False, reason="NotYet", message="2 of 3 GPUs are not"),
    ),
    gpus=(
        GpuStatus(
            index=0,
            uuid="GPU-a0000000-1111-2222-3333-444455556666",
            product="NVIDIA H100 80GB HBM3",
            mig_mode="on",
            phase="Waiting",
            reason=f"7 x 1g.10gb must wait: {_BUSY}",
            since="2026-02-26T12:29:55.000Z",
            slices=tuple(
                SliceStatus(
                    device_id=f"MIG-{number}aaaaaaa-1111-5222-8333-444455556666",
                    resource=name,
                    profile=profile,
                    placement=place,
                    usable=number != 2,
                    leaving=number == 3,
                    holders=() if holder is None else (holder, "process 4711 (python3)"),
                    budget_mib=9728 * (1 + number // 2),
                )
                for number, (profile, place, holder, name) in enumerate(_MIXED_PROFILES)
            ),
        ),
        GpuStatus(
            index=1,
            uuid="GPU-b0000000-1111-2222-3333-444455556666",
            product="NVIDIA H100 80GB HBM3",
            mig_mode="on",
            phase="Failed",
            reason="create 1g.10gb at 6:1: GPU-b0000000-1111-2222-3333-444455556666 refuses",
            since="2026-03-01T12:29:55.000Z",
        ),
        GpuStatus(
            index=2,
            uuid="GPU-c0000000-1111-2222-3333-444455556666",
            product="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            mig_mode="off",
            phase="Kept",
            reason="no policy says what to do with it",
            since=SINCE,
            slices=(
                SliceStatus(
                    device_id="GPU-c0000000-1111-2222-3333-444455556666",
                    resource="nvidia.com/gpu",
                ),
            ),
        ),
    ),
    resources=(
        ResourceStatus(name="nvidia.com/gpu", slices=1, usable=1, held=0, connected=True),
        *(
            ResourceStatus(
                name=name, slices=1, usable=1, held=int(holder is not None), connected=True
            )
            for _, _, holder, name in _MIXED_PROFILES
        ),
    ),
)

_SILENT = "the kubelet gives no answer to List, UNAVAILABLE: connection refused"

KUBELET_DOWN = replace(
    CUT,
    conditions=(
        Condition(
            type="Ready",
            holds=False,
            reason="HoldersUnknown",
            message=_SILENT,
            hint="see whether the kubelet runs, and whether its socket is mounted here",
            since="2026-03-01T12:28:30.000Z",
        ),
        Condition(type="KubeletAnswers", holds=False, reason="NoAnswer", message=_SILENT),
        Condition(type="GpusHealthy", holds=True, reason="Healthy"),
    ),
    gpus=tuple(replace(gpu, phase="Unknown", reason=_SILENT) for gpu in CUT.gpus),
    resources=tuple(
        replace(one, connected=False, problem="nobody listens at kubelet.sock")
        for one in CUT.resources
    ),
)

SHARED_8 = AgentStatus(
    node="gpu-t8",
    version="0.1.0",
    process_id=1,
    at="2026-03-01T12:30:00.000Z",
    conditions=(READY,),
    gpus=tuple(
        replace(
            SHARED.gpus[0],
            index=index,
            phase="Ready",
            reason=None,
            slices=tuple(
                replace(
                    one,
                    device_id=f"GPU-9000000{index}-1111-2222-3333-444455556666::{slot}",
                    leaving=False,
                )
                for slot, one in enumerate(SHARED.gpus[0].slices)
            ),
        )
        for index in range(8)
    ),
    resources=(replace(SHARED.resources[0], slices=32, usable=32, held=32, connected=True),),
)

ALL = (CUT, ONE_LOST, RIVAL, SHARED, EMPTY, MIXED, KUBELET_DOWN, SHARED_8)
