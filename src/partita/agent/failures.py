"""Which steps have failed, and when they are tried again. Pure."""

from collections.abc import Mapping

from partita.agent.instruction import Announce, Reconnect
from partita.agent.memory import Failure, Memory
from partita.agent.observation import Observation
from partita.agent.steps import broken_promise

__all__ = ["failures"]

_LONGEST_RETRY_SECONDS = 60.0
_MOST_DOUBLINGS = 10  # more make no difference


def failures(seen: Observation, memory: Memory) -> Mapping[str, Failure]:
    """Return the failures that stand after the outcomes of the last instructions."""
    by_uuid = {gpu.uuid: gpu for gpu in seen.gpus or ()}
    failures = {
        uuid: one for uuid, one in memory.failures.items() if seen.gpus is None or uuid in by_uuid
    }
    for outcome in seen.outcomes:
        if isinstance(outcome.instruction, Announce | Reconnect) or outcome.withheld:
            continue
        uuid = outcome.instruction.uuid
        gpu = by_uuid.get(uuid)
        if outcome.error is None and (gpu is None or gpu.failure is not None):
            continue  # whether it is as it should be cannot be seen now
        reason = outcome.error
        if reason is None and gpu is not None:
            reason = broken_promise(outcome, gpu)
        if reason is None:
            failures.pop(uuid, None)
            continue
        count = failures[uuid].count + 1 if uuid in failures else 1
        failures[uuid] = Failure(
            step=str(outcome.instruction),
            reason=reason,
            count=count,
            retry_at=seen.at + min(2.0 ** min(count - 1, _MOST_DOUBLINGS), _LONGEST_RETRY_SECONDS),
        )
    return failures
