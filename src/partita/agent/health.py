"""Which GPUs are sick, from what the driver shows and from the XIDs that it reported. Pure.

What the driver shows (lost, unreadable, in need of a reset) counts as long as it is shown. An XID
is over in a moment, so it is remembered until its cause is gone:

============================================  ===================================================
the driver tells what the GPU needs           until it needs nothing, and no XID came for 30 s
the driver cannot tell                        until no XID came for 5 minutes
the GPU was reset                             no longer
============================================  ===================================================

XIDs that a program brings on itself are not the GPU's: 13, 31, 43, 45, 68 and 109 are left out as
by NVIDIA's plugin (k8s-device-plugin v0.20.0, ``internal/rm/health.go``), which also knows the two
variables that change the list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partita.errors import UsageError
from partita.ports.gpu_driver import DriverGpu, HealthEvent, Recovery

__all__ = [
    "IGNORED_XIDS",
    "HealthRules",
    "Sickness",
    "Verdicts",
    "after_reset",
    "ignored",
    "judge",
    "remember",
]

IGNORED_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs that say something of a program, not of the GPU."""

_ALL = ("all", "xids")
_NEEDS = {
    Recovery.RESET: "it needs a reset",
    Recovery.DRAIN: "it needs a reset once its programs have ended",
    Recovery.REBOOT: "it needs a reboot of the node",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRules:
    """What counts as sick.

    Attributes:
        ignored: XIDs that are left out, None = all of them.
        quiet_seconds: How long after the last XID a GPU is well again that needs nothing.
        blind_seconds: The same where the driver does not tell what it needs.
    """

    ignored: frozenset[int] | None = IGNORED_XIDS
    quiet_seconds: float = 30.0
    blind_seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sickness:
    """An XID that is not over.

    Attributes:
        uuid: The GPU.
        instance_id: GPU instance it is confined to, None for the whole GPU.
        xid: The last XID.
        since: Monotonic time of the last one, in seconds.
    """

    uuid: str
    instance_id: int | None
    xid: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Why GPUs and instances are sick; who is not in it is well.

    Attributes:
        gpus: GPU UUID → why.
        instances: (GPU UUID, instance id) → why.
    """

    gpus: Mapping[str, str] = field(default_factory=dict)
    instances: Mapping[tuple[str, int], str] = field(default_factory=dict)


def ignored(disable: str = "", enable: str = "") -> frozenset[int] | None:
    """Return the XIDs to leave out, from NVIDIA's two variables; None = all.

    Args:
        disable: ``DP_DISABLE_HEALTHCHECKS``: ``all``, ``xids``, or XIDs to leave out as well.
        enable: ``DP_ENABLE_HEALTHCHECKS``: ``all``, ``xids``, or XIDs to heed after all.

    Raises:
        UsageError: When a word is none of these.
    """
    all_left_out, left_out = _named(disable, "--ignore-xids (DP_DISABLE_HEALTHCHECKS)")
    all_heeded, heeded = _named(enable, "--heed-xids (DP_ENABLE_HEALTHCHECKS)")
    if all_heeded:
        return frozenset()
    if all_left_out:
        return None if not heeded else frozenset(range(1000)) - heeded
    return (IGNORED_XIDS | left_out) - heeded


def remember(
    known: Sequence[Sickness],
    events: Sequence[HealthEvent],
    gpus: Sequence[DriverGpu],
    rules: HealthRules,
    now: float,
) -> tuple[Sickness, ...]:
    """Return the XIDs that are not over, the new ones included."""
    sick = {(one.uuid, one.instance_id): one for one in known}
    for event in events:
        if rules.ignored is None or event.xid in rules.ignored:
            continue
        for uuid in [event.uuid] if event.uuid is not None else [gpu.uuid for gpu in gpus]:
            new = Sickness(uuid=uuid, instance_id=event.instance_id, xid=event.xid, since=now)
            sick[uuid, event.instance_id] = new
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    return tuple(one for one in sick.values() if not _is_over(one, by_uuid, rules, now))


def judge(known: Sequence[Sickness], gpus: Sequence[DriverGpu]) -> Verdicts:
    """Return who is sick, and why."""
    sick: dict[str, str] = {}
    confined: dict[tuple[str, int], str] = {}
    for one in known:
        said = f"it reported XID {one.xid}"
        if one.instance_id is None:
            sick[one.uuid] = said
        else:
            confined[one.uuid, one.instance_id] = said
    for gpu in gpus:
        if gpu.failure is not None:
            sick[gpu.uuid] = f"the driver says: {gpu.failure.value}"
        elif gpu.recovery not in (None, Recovery.NONE):
            needs = _NEEDS[gpu.recovery]
            sick[gpu.uuid] = f"{sick[gpu.uuid]}; {needs}" if gpu.uuid in sick else needs
    return Verdicts(gpus=sick, instances=confined)


def after_reset(known: Sequence[Sickness], uuid: str) -> tuple[Sickness, ...]:
    """Return what is left when a GPU was reset."""
    return tuple(one for one in known if one.uuid != uuid)


def _is_over(one: Sickness, gpus: Mapping[str, DriverGpu], rules: HealthRules, now: float) -> bool:
    gpu = gpus.get(one.uuid)
    if gpu is None or gpu.failure is not None:
        return False
    if one.instance_id is not None and not any(
        instance.instance_id == one.instance_id for instance in gpu.instances
    ):
        return True  # the instance that it was confined to has gone
    if gpu.recovery is None:
        return now - one.since >= rules.blind_seconds
    return gpu.recovery is Recovery.NONE and now - one.since >= rules.quiet_seconds


def _named(text: str, option: str) -> tuple[bool, frozenset[int]]:
    """Return whether all XIDs are named, and those that are named by their number."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    numbers = frozenset(int(word) for word in words if word.isascii() and word.isdigit())
    for word in words:
        if word not in _ALL and not (word.isascii() and word.isdigit()):
            raise UsageError(
                message=f"neither an XID nor `all`: {word}",
                hint=f"give numbers with commas, such as 13,31: {option}",
            )
    return any(word in _ALL for word in words), numbers
