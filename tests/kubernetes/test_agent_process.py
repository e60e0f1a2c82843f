"""How the node agent begins and ends, and what it does with what it cannot follow."""

from collections.abc import Callable

from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import A100, SEVENTHS, AgentUnderTest, condition, time_sliced
from tests.kubernetes.kubelet_under_test import KubeletUnderTest

MakeAgent = Callable[..., AgentUnderTest]

_GPU = "nvidia.com/gpu"
_SEVENTH = "nvidia.com/mig-1g.5gb"
_WRONG = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, "


def test_an_agent_that_is_ended_leaves_pods_and_no_sockets(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """On SIGTERM it exits with 0; the next one serves what is left beside the pods."""
    agent = make_agent("T4", wanted=time_sliced(4))
    agent.serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)
    kubelet.run(pods.pod("one", pods.container(_GPU)))
    before = kubelet.look_inside("one")

    assert agent.stop() == 0

    assert agent.sockets == []
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 0)
    assert kubelet.look_inside("one") == before
    agent.serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)
    kubelet.run(pods.pod("three", pods.container(_GPU, 3)))
    kubelet.await_pod("three", pods.running)


def test_an_agent_ends_although_its_driver_hangs(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """A call that never returns is left behind; until then pods are given what was served."""
    agent = make_agent("T4")
    agent.serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 1)
    agent.hang("nvmlDeviceGetMigMode")
    agent.wait_for_hang()
    kubelet.run(pods.pod("one", pods.container(_GPU)))
    kubelet.await_pod("one", pods.running)

    assert agent.stop() == 0


def test_an_agent_waits_for_a_kubelet_that_does_not_run_yet(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """It says so meanwhile, and serves as soon as the kubelet is there."""
    kubelet.stop()
    agent = make_agent("T4", wanted=time_sliced(4))
    agent.start()
    status = agent.wait(lambda status: condition(status, "KubeletAnswers")["holds"] is False)
    assert condition(status, "Ready")["holds"] is False

    kubelet.start()

    agent.wait(agents.is_ready)
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)


def test_an_agent_does_not_begin_with_what_it_cannot_follow(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """It exits with 2, and says in which line and what to do."""
    del kubelet
    agent = make_agent("T4", wanted=time_sliced(4).replace("replicas", "replica"))
    agent.start()

    assert agent.wait_for_end() == 2

    assert f"{agent.config}:5:" in agent.log
    assert "hint: " in agent.log


def test_an_edit_that_cannot_be_followed_changes_nothing(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """What was wanted before stays in force, the agent says why, and a better edit is followed."""
    agent = make_agent(A100, wanted=SEVENTHS)
    agent.serve()
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)

    agent.want(SEVENTHS.replace('"1g.5gb": 7', '"1g.5gb": 8'))

    status = agent.wait(lambda status: condition(status, "LayoutsFollowed")["holds"] is False)
    said = condition(status, "LayoutsFollowed")
    assert str(agent.config) in said["message"]
    assert said["hint"]
    assert condition(status, "Ready")["holds"] is True
    kubelet.run(pods.pod("one", pods.container(_SEVENTH, 7)))
    kubelet.await_pod("one", pods.running)

    agent.want(SEVENTHS)
    agent.wait(lambda status: condition(status, "LayoutsFollowed")["holds"] is True)
