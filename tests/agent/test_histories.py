"""Whatever happens, and wherever the agent's process ends: nothing held is touched, all ends well.

A history is a list of things that happen to a node. ``PARTITA_TEST_EFFORT`` multiplies how many
are tried; ``make test`` tries 10,000.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.agent.world import NOTHING, World, mig, shared, wants, whole

from partita.agent.decision import Decision, Phase
from partita.agent.target import profile_of
from partita.config.agent_document import AgentDocument
from partita.model.gpu import MigMode
from partita.model.slice import device_of
from partita.ports.gpu_driver import DriverFailure, HealthEvent, Recovery
from partita.ports.neighbours import Signs
from partita.ports.slice_server import REFUSED_GONE, REFUSED_RETIRED
from partita.simulator.kubelet.admission import Allocate, KubeletCrashedError

_EFFORT = float(os.environ.get("PARTITA_TEST_EFFORT", "1"))

DOCUMENTS: Sequence[AgentDocument] = (
    NOTHING,
    wants(whole()),
    wants(shared(2)),
    wants(shared(4)),
    wants(shared(3, renamed=True)),
    wants(mig({"1g.5gb": 7})),
    wants(mig({"3g.20gb": 2})),
    wants(mig({"3g.20gb": 1, "2g.10gb": 1, "1g.5gb": 2})),
    wants(mig({"7g.40gb": 1})),
    wants(mig({"1g.5gb": 4}, may_reset=False)),
)
BOARDS = (
    (("A100-SXM4-40GB", 1),),
    (("A100-SXM4-40GB", 2),),
    (("A100-SXM4-40GB", 1), ("T4", 1)),
)
_OPERATIONS = ("create_instance", "destroy_instance", "set_mig_mode", "reset", "gpus", "processes")

Happening = tuple[str, int, int]
_KINDS = (
    *["look"] * 3,
    *["calm"] * 4,
    *["pod"] * 4,
    *["begin", "ask", "take"],
    *["end"] * 3,
    "wait",
    *["edit"] * 2,
    *["crash"] * 2,
    *["restart", "restart", "learn"],
    "deaf",
    "lose",
    "find",
    "refuse",
    "xid",
    "sick",
    *["hide"] * 2,
    "rival",
    "process",
    "stray",
)

happening = st.tuples(st.sampled_from(_KINDS), st.integers(0, 15), st.integers(0, 15))
histories = st.integers(0, 40).flatmap(  # st.lists alone would make few of them longer than ten
    lambda length: st.lists(happening, min_size=length, max_size=length)
)


@pytest.mark.timeout(1200)  # 3,400 histories each under ``make test``
@pytest.mark.parametrize("boards", BOARDS)
@settings(
    max_examples=int(34 * _EFFORT),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(first=st.integers(0, 9), history=histories)
def test_nothing_held_is_touched_and_quiet_leads_to_what_is_wanted(
    boards: Sequence[tuple[str, int]], first: int, history: list[Happening]
) -> None:
    """No history harms a pod; left in peace, the node is as wanted or says why it is not."""
    world = World(boards=boards, document=DOCUMENTS[first])
    for kind, a, b in history:
        _HAPPENINGS[kind](world, a, b)
        _forbid_refusals(world)
    _make_peace(world)
    decision = world.settle()
    _is_explained(world, decision)

    for uid in list(world.kubelet.pods):
        world.end(uid)
    for board in world.gpus.boards.values():
        for process_id in list(board.processes):
            world.gpus.end_process(process_id)
    decision = world.settle()
    _is_as_wanted(world, decision)


# ---- what can happen ------------------------------------------------------------------------


def _look(world: World, a: int, b: int) -> None:
    """Let the agent look and act a few times, and time pass as it may while a pod is admitted."""
    for _ in range(1 + b % 4):
        world.look()
        if world.kubelet.question is None:
            seconds = (0.05, 0.2, 0.2, 1.0)[a % 4]
            world.clock.advance(0.06 if world.kubelet.unread() else seconds)
        world.read_one()


def _calm(world: World, a: int, _: int) -> None:
    """Let the agent look until it has nothing more to do just now."""
    for _ in range(3 + a % 8):
        decision = world.look()
        if world.kubelet.question is None and not world.kubelet.unread():
            world.clock.advance(max(decision.wake_seconds, 0.05))
        world.read_one()


def _pod(world: World, a: int, b: int) -> None:
    """Bind a pod as a scheduler would that knows the node's status of just now."""
    free = sorted(world.free().items())
    if not free or world.kubelet.question is not None:
        return
    name, count = free[a % len(free)]
    world.run(name, min(count, 1 + b % 2))


def _begin(world: World, a: int, _: int) -> None:
    free = sorted(world.free())
    if free and world.kubelet.question is None:
        world.bind(free[a % len(free)])


def _ask(world: World, _: int, __: int) -> None:
    if world.kubelet.question is not None and not world.is_answered:
        world.ask()


def _take(world: World, _: int, __: int) -> None:
    if world.is_answered:
        world.take()
    elif world.kubelet.question is None and world.knows_pods and world.kubelet.waiting:
        world.admit_next()


def _end(world: World, a: int, _: int) -> None:
    pods = [uid for uid in world.kubelet.pods if uid != world.arriving]
    if pods:
        uid = pods[a % len(pods)]
        for board in world.gpus.boards.values():
            for process_id in [one for one in board.processes if one % 1000 == int(uid[4:])]:
                world.gpus.end_process(process_id)
        world.end(uid)


def _wait(world: World, a: int, _: int) -> None:
    if world.kubelet.question is None and not world.kubelet.unread():
        world.clock.advance((0.5, 5.0, 61.0, 400.0)[a % 4])


def _edit(world: World, a: int, _: int) -> None:
    world.layouts.document = DOCUMENTS[a % len(DOCUMENTS)]


def _crash(world: World, a: int, b: int) -> None:
    """Let the agent's process be gone before or after one of its next acts."""
    world.crash_in = a
    for _ in range(b % 4):
        world.look()


def _restart(world: World, a: int, _: int) -> None:
    """Restart the kubelet, which at first knows no pods; now and then it stays away for a while."""
    if world.kubelet.process is not None:
        world.stop_kubelet()
    if a % 3:
        world.kubelet.start()


def _learn(world: World, _: int, __: int) -> None:
    """Let the kubelet hear from the API server which pods there are."""
    if world.kubelet.process is not None and not world.knows_pods:
        world.teach_kubelet()


def _deaf(world: World, a: int, _: int) -> None:
    """Let lists lie unread, or be read."""
    world.kubelet.reads_at_once = a % 2 == 0
    if world.kubelet.reads_at_once and world.kubelet.process is not None:
        world.kubelet.read()


def _lose(world: World, a: int, _: int) -> None:
    world.gpus.lose(_gpu(world, a))


def _find(world: World, a: int, _: int) -> None:
    world.gpus.recover(_gpu(world, a))


def _refuse(world: World, a: int, b: int) -> None:
    """Let the driver refuse one of its next calls."""
    operation = _OPERATIONS[b % len(_OPERATIONS)]
    failures = (DriverFailure.UNKNOWN, DriverFailure.IN_USE, DriverFailure.INSUFFICIENT_RESOURCES)
    world.gpus.fail_next(_gpu(world, a), operation, failures[a % 3])  # type: ignore[arg-type]


def _xid(world: World, a: int, b: int) -> None:
    world.gpus.emit(HealthEvent(uuid=_gpu_or_none(world, a), xid=(79, 48, 31, 94)[b % 4]))


def _gpu_or_none(world: World, a: int) -> str | None:
    """Return the UUID of a GPU, or now and then that the driver does not say which."""
    return None if a == 15 else _gpu(world, a)


def _sick(world: World, a: int, b: int) -> None:
    world.gpus.need(_gpu(world, a), (Recovery.NONE, Recovery.RESET)[b % 2])


def _hide(world: World, a: int, _: int) -> None:
    """Let the driver not enumerate a MIG device once, as it may while others are created."""
    found = [
        mig.uuid
        for board in world.gpus.boards.values()
        for instance in board.instances.values()
        for mig in instance.mig_devices
    ]
    if found:
        world.hidden = found[a % len(found)]
        world.was_disturbed = True


def _rival(world: World, a: int, _: int) -> None:
    """Let another owner of the GPUs come, or go."""
    there = Signs(programs={"nvidia-device-plugin": 4711})
    world.was_disturbed = True
    world.neighbours.signs = there if a % 3 == 0 else Signs()


def _process(world: World, a: int, _: int) -> None:
    """Let a pod use what it was given."""
    users = [(uid, devices) for uid, devices in world.given.items() if devices]
    if not users:
        return
    uid, devices = users[a % len(users)]
    device = devices[0].partition("::")[0]
    for board in world.gpus.boards.values():
        ids = [
            i
            for i, one in board.instances.items()
            if device in {mig.uuid for mig in one.mig_devices}
        ]
        process_id = int(uid[4:]) + 1000
        if (ids or board.uuid == device) and process_id not in board.processes and not board.lost:
            world.gpus.add_process(board.uuid, process_id, instance_id=ids[0] if ids else None)


def _stray(world: World, a: int, b: int) -> None:
    """Let somebody use a GPU without any pod, or end."""
    board = world.gpus.boards[_gpu(world, a)]
    if 999_000 in board.processes:
        world.gpus.end_process(999_000)
    elif not board.lost and not any(999_000 in one.processes for one in world.gpus.boards.values()):
        instances = sorted(board.instances)
        instance_id = instances[b % len(instances)] if instances and b % 2 else None
        world.gpus.add_process(board.uuid, 999_000, instance_id=instance_id)


def _gpu(world: World, a: int) -> str:
    return list(world.gpus.boards)[a % len(world.gpus.boards)]


_HAPPENINGS: dict[str, Callable[[World, int, int], None]] = {
    "look": _look,
    "calm": _calm,
    "pod": _pod,
    "begin": _begin,
    "ask": _ask,
    "take": _take,
    "end": _end,
    "wait": _wait,
    "edit": _edit,
    "crash": _crash,
    "restart": _restart,
    "learn": _learn,
    "deaf": _deaf,
    "lose": _lose,
    "find": _find,
    "refuse": _refuse,
    "xid": _xid,
    "sick": _sick,
    "hide": _hide,
    "rival": _rival,
    "process": _process,
    "stray": _stray,
}


# ---- what must hold ---------------------------------------------------------------------------


def _forbid_refusals(world: World) -> None:
    """No pod that the kubelet had a device for is turned away because of a cut.

    Beside another owner, and when a device has gone, that is not promised.
    """
    for uid, why in world.kubelet.refused.items():
        assert REFUSED_RETIRED not in why, (uid, why)
        assert REFUSED_GONE not in why or world.was_disturbed, (uid, why)


def _make_peace(world: World) -> None:
    """End all trouble that comes from outside; pods stay."""
    world.crash_in = None
    world.hidden = None
    world.neighbours.signs = Signs()
    world.kubelet.reads_at_once = True
    if world.kubelet.process is None:
        world.kubelet.start()
    if not world.knows_pods:
        world.teach_kubelet()
    world.kubelet.read()
    world.look()
    world.answer_all()
    while world.kubelet.waiting:
        world.admit_next()
        world.answer_all()
    for uuid in world.gpus.boards:
        world.gpus.recover(uuid)
        world.gpus.need(uuid, Recovery.NONE)


def _is_explained(world: World, decision: Decision) -> None:
    """Each GPU is as wanted, or says why it is not."""
    assert decision.problem is None
    for gpu in world.gpus.boards.values():
        state = decision.states[gpu.uuid]
        if state.phase in (Phase.KEPT, Phase.READY) and state.reason is None:
            _stands_as_wanted(world, gpu.uuid)
        else:
            assert state.reason, state


def _is_as_wanted(world: World, decision: Decision) -> None:
    """With nobody in the way each GPU is as wanted, but for a reset that is not allowed."""
    for uuid in world.gpus.boards:
        state = decision.states[uuid]
        if state.phase is Phase.KEPT and state.reason is not None:
            assert "must be reset" in state.reason or "not have" in state.reason, state
            continue
        assert state.phase in (Phase.READY, Phase.KEPT), state
        _stands_as_wanted(world, uuid)


def _stands_as_wanted(world: World, uuid: str) -> None:
    document = world.layouts.document
    board = world.gpus.boards[uuid]
    (gpu,) = [one for one in world.agent.seen.gpus or () if one.uuid == uuid]
    devices = {uuid, *(mig.uuid for one in gpu.instances for mig in one.mig_devices)}
    given = [
        one.device_id
        for of_resource in world.kubelet.process.allocatable().values()
        for one in of_resource
        if device_of(one.device_id) in devices
    ]
    stands = Counter(profile_of(gpu, instance) for instance in gpu.instances)
    if not document.policies:
        assert len(given) == (len(gpu.instances) if gpu.mig_mode is MigMode.ON else 1)
        return
    (policy,) = document.policies
    if policy.mig.layout is not None:
        assert board.mode is MigMode.ON
        assert stands == Counter(policy.mig.layout)
        assert len(given) == sum(policy.mig.layout.values())
    else:
        replicas = policy.time_slicing.resources[0].replicas if policy.time_slicing else 1
        assert board.mode is not MigMode.ON
        assert len(given) == replicas, (given, replicas)


def test_a_crash_of_the_kubelet_would_be_seen() -> None:
    """The trap that these histories avoid is in the world: a dropped device ends the kubelet."""
    world = World(document=wants(whole()))
    world.settle()
    (resource,) = world.free()
    world.bind(resource)
    while not isinstance(world.kubelet.question, Allocate):
        world.ask()
        world.take()
    world.ask()
    world.server.drop(world.kubelet.question.devices[0])

    with pytest.raises(KubeletCrashedError):
        world.take()
