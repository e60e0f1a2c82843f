"""The kubelet comes and goes under the node agent."""

import json
from collections.abc import Callable

from tests.kubernetes import agent as agents
from tests.kubernetes import monitor, pods
from tests.kubernetes.agent import A100, SEVENTHS, AgentUnderTest
from tests.kubernetes.kubelet_under_test import Container, KubeletUnderTest

MakeAgent = Callable[..., AgentUnderTest]

_SEVENTH = "nvidia.com/mig-1g.5gb"


def _begin(kubelet: KubeletUnderTest, *names: str) -> None:
    for name in names:
        kubelet.run(pods.pod(name, pods.container(_SEVENTH)))


def _living(kubelet: KubeletUnderTest, *names: str) -> dict[str, Container]:
    """Return those that run, once it is clear of all of them whether they do."""
    found = {}
    for name in names:
        pod = kubelet.await_pod(name, lambda pod: pods.running(pod) or pods.failed(pod))
        if pods.running(pod):
            found[name] = kubelet.look_inside(name)
    return found


def test_a_kubelet_is_killed_in_the_midst_of_its_work(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """Running pods keep their slices, new ones get others, and none is given away twice.

    Pods that were on their way may fail: a kubelet that has just begun knows of no slices.
    """
    agent = make_agent(A100, wanted=SEVENTHS)
    agent.serve()
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)
    _begin(kubelet, "one", "two")
    running = _living(kubelet, "one", "two")

    for life in ("second", "third"):
        _begin(kubelet, f"{life}-a", f"{life}-b")
        kubelet.stop()
        kubelet.start()
        agent.wait_until(lambda: len(monitor.allocatable(kubelet, _SEVENTH)) == 7)
        more = _living(kubelet, f"{life}-a", f"{life}-b")
        assert _living(kubelet, *running) == running
        running |= more

    rest = [f"pod-{number}" for number in range(7 - len(running))]
    _begin(kubelet, *rest)
    running |= _living(kubelet, *rest)
    assert len({one.environment["NVIDIA_VISIBLE_DEVICES"] for one in running.values()}) == 7
    agent.wait(lambda status: all(len(one["holders"]) == 1 for one in agents.slices(status)))


def test_the_log_stays_as_it_was_asked_for(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """Every line is an object, also when a connection breaks: gRPC is not heard beside it."""
    agent = make_agent(A100, options=["--log-form=json"])
    agent.serve()
    kubelet.stop()
    agent.wait(lambda status: agents.condition(status, "KubeletAnswers")["holds"] is False)
    kubelet.start()
    agent.wait(agents.is_ready)

    lines = [json.loads(line) for line in agent.log.splitlines()]

    assert any("stopped listening" in line["message"] for line in lines)
