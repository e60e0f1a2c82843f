"""A GPU is cut anew by the node agent while pods run on it and others wait for it."""

from collections.abc import Callable

from testbed.cluster import PODS, Cluster
from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import A100, HALVES, SEVENTHS, AgentUnderTest
from tests.kubernetes.kubelet_under_test import KubeletUnderTest

MakeAgent = Callable[..., AgentUnderTest]

_HALF = "nvidia.com/mig-3g.20gb"
_SEVENTH = "nvidia.com/mig-1g.5gb"


def _waits_for(pod: str) -> agents.Condition:
    """Return whether the only GPU waits for a pod, and all the rest is done."""

    def holds(status: agents.Status) -> bool:
        (gpu,) = status["gpus"]
        done = set(agents.profiles(status)) == {"1g.5gb"}
        return done and gpu["phase"] == "Waiting" and pod in gpu["reason"]

    return holds


def test_a_held_slice_stays_until_its_pod_has_ended(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """The rest is cut at once, the status names the pod, and no pod fails for it."""
    agent = make_agent(A100, wanted=HALVES)
    agent.serve()
    kubelet.await_resource(_HALF, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("holder", pods.container(_HALF)))
    held = kubelet.look_inside("holder")

    agent.want(SEVENTHS)

    agent.wait(_waits_for("default/holder"))
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable in {3, 4})
    kubelet.run(pods.pod("beside", pods.container(_SEVENTH, 3)))
    beside = kubelet.look_inside("beside")
    assert kubelet.look_inside("holder") == held

    kubelet.delete("holder")

    agent.wait(agents.is_ready)
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)
    kubelet.await_resource(_HALF, lambda it: it.allocatable == 0)
    kubelet.run(pods.pod("after", pods.container(_SEVENTH, 4)))
    after = kubelet.look_inside("after")
    assert kubelet.look_inside("beside") == beside
    told = (one.environment["NVIDIA_VISIBLE_DEVICES"].split(",") for one in (beside, after))
    assert len({name for names in told for name in names}) == 7


def test_pods_that_wait_for_slices_get_them_as_they_come(
    cluster: Cluster, kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """Seven pods are scheduled while the GPU is being cut, and none of them fails."""
    agent = make_agent(A100, wanted=HALVES)
    agent.serve()
    kubelet.await_resource(_HALF, lambda it: it.allocatable == 2)
    cluster.run(pods.pod("holder", pods.container(_HALF, 2)))
    cluster.await_pod("holder", pods.running)
    names = [f"pod-{number}" for number in range(7)]
    for name in names:
        cluster.run(pods.pod(name, pods.container(_SEVENTH)))
    agent.want(SEVENTHS)
    agent.wait(lambda status: agents.phases(status) == ["Waiting"])

    kubelet.delete("holder")

    for name in names:
        cluster.await_pod(name, lambda pod: pods.running(pod) or pods.failed(pod))
    found = cluster.api.get(PODS)["items"]
    assert {pod["metadata"]["name"] for pod in found if pods.running(pod)} == set(names)
