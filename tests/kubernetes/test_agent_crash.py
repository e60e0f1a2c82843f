"""The node agent is killed in the midst of a change, and the next one comes to the same end."""

from collections.abc import Callable
from itertools import product

import pytest
from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import A100, HALVES, SEVENTHS, AgentUnderTest
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.simulated_kubelet import SimulatedKubeletUnderTest

MakeAgent = Callable[..., AgentUnderTest]

_HALF = "nvidia.com/mig-3g.20gb"
_SEVENTH = "nvidia.com/mig-1g.5gb"
_DESTROY = ("nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy")
_CREATE = ("nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance")
_TO_SEVENTHS = [*product(_DESTROY, [1]), *product(_CREATE, [1, 2, 3])]
_TO_HALVES = [*product(_DESTROY, [1, 2, 3]), *product(_CREATE, [1])]
_MOST_LIVES = 12


def _in_halves_with_a_pod(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> tuple[AgentUnderTest, str]:
    """Return an agent whose GPU stands in halves, and the UUID of the half that a pod holds."""
    agent = make_agent(A100, wanted=HALVES)
    agent.world.turn_mig_on(0)
    agent.serve()
    kubelet.await_resource(_HALF, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("holder", pods.container(_HALF)))
    held = kubelet.look_inside("holder").environment["NVIDIA_VISIBLE_DEVICES"]
    agent.wait(lambda status: _holders(status) == [["default/holder"]])
    return agent, held


def _holders(status: agents.Status) -> list[list[str]]:
    return [one["holders"] for one in agents.slices(status) if one["holders"]]


def _is_in_sevenths_around(held: str) -> agents.Condition:
    """Return whether all of the GPU is in sevenths but the half that is held."""

    def holds(status: agents.Status) -> bool:
        leaving = [one["device_id"] for one in agents.slices(status) if one["leaving"]]
        standing = set(agents.profiles(status)) == {"1g.5gb"}
        return standing and leaving == [held] and agents.phases(status) == ["Waiting"]

    return holds


def _is_in_halves(status: agents.Status) -> bool:
    return agents.is_ready(status) and agents.profiles(status) == ["3g.20gb"] * 2


def _standing(agent: AgentUnderTest) -> set[str]:
    """Return the MIG UUIDs that the driver has; one that was destroyed never comes back."""
    return {row[7] for row in agent.world.rows("compute-instance")}


def _die(agent: AgentUnderTest, wanted: str, call: str, number: int) -> None:
    """Let it begin a change, and end at the n-th such call, before the call has an effect."""
    agent.hang(call, number)
    agent.want(wanted)
    agent.wait_for_hang()
    agent.kill()


@pytest.mark.timeout(180)
def test_an_agent_that_is_killed_at_any_call_of_a_recut(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """The next one comes to the wanted layout around the slice of a pod, which stays as it is."""
    agent, held = _in_halves_with_a_pod(kubelet, make_agent)
    points = list(zip(_TO_SEVENTHS, _TO_HALVES, strict=True))
    for there, back in points[1::5] if isinstance(kubelet, SimulatedKubeletUnderTest) else points:
        _die(agent, SEVENTHS, *there)
        agent.start()
        agent.wait(_is_in_sevenths_around(held))
        assert held in _standing(agent)
        _die(agent, HALVES, *back)
        agent.start()
        agent.wait(_is_in_halves)
        assert held in _standing(agent)

    kubelet.await_pod("holder", pods.running)
    kubelet.run(pods.pod("other", pods.container(_HALF)))
    other = kubelet.look_inside("other").environment["NVIDIA_VISIBLE_DEVICES"]
    assert {held, other} == _standing(agent)
    assert len(agent.sockets) == 1


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("cluster")
def test_agents_that_are_killed_after_each_effect_of_a_recut(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """Each does at least one thing, so that after enough of them all is done."""
    agent, held = _in_halves_with_a_pod(kubelet, make_agent)
    is_done = _is_in_sevenths_around(held)
    agent.want(SEVENTHS)
    for _ in range(_MOST_LIVES):
        before = _facts(agent)
        agent.wait_until(lambda before=before: _facts(agent) != before or _says(agent, is_done))
        if _says(agent, is_done):
            break
        agent.kill()
        assert held in _standing(agent)
        agent.start()
    agent.wait(is_done)

    assert held in _standing(agent)
    kubelet.await_pod("holder", pods.running)
    kubelet.delete("holder")
    agent.wait(lambda status: agents.is_ready(status) and len(agents.profiles(status)) == 7)
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)


def test_an_agent_that_is_killed_at_any_call_of_a_change_of_mode(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """It makes no difference whether the mode was asked for, or the GPU was reset."""
    agent = make_agent(A100, by_user=True)
    agent.serve()
    kubelet.await_resource("nvidia.com/gpu", lambda it: it.allocatable == 1)
    agent.kill()

    agent.want(SEVENTHS)
    for arm in (
        lambda: agent.hang("nvmlDeviceSetMigMode"),
        lambda: agent.hang_reset("before"),
        lambda: agent.hang_reset("after"),
        lambda: agent.hang("nvmlGpuInstanceCreateComputeInstance"),
    ):
        arm()
        agent.start()
        agent.wait_for_hang()
        agent.kill()
    agent.serve()

    kubelet.await_resource("nvidia.com/gpu", lambda it: it.allocatable == 0)
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)
    assert len(_standing(agent)) == 7


def _says(agent: AgentUnderTest, condition: agents.Condition) -> bool:
    return agent.status is not None and condition(agent.status)


def _facts(agent: AgentUnderTest) -> object:
    return agent.world.rows("instance"), agent.world.rows("compute-instance")
