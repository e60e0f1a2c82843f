"""Sick GPUs beside well ones, through the node agent."""

from collections.abc import Callable

from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import A100, SEVENTHS, AgentUnderTest
from tests.kubernetes.kubelet_under_test import KubeletUnderTest, Resource
from tests.nvml.world import gpu_uuid

MakeAgent = Callable[..., AgentUnderTest]

_GPU = "nvidia.com/gpu"
_SEVENTH = "nvidia.com/mig-1g.5gb"


def _sick(status: agents.Status) -> list[int]:
    return [index for index, phase in enumerate(agents.phases(status)) if phase == "Sick"]


def test_one_lost_gpu_of_eight_takes_along_its_own_slices_only(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """The seven others go on serving new pods; when it comes back, all of it is served again."""
    agent = make_agent(*[A100] * 8, wanted=SEVENTHS)
    for index in range(8):
        agent.world.turn_mig_on(index)
    agent.serve()
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 56)

    agent.world.lose(3)

    found = kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 49)
    assert found == Resource(capacity=56, allocatable=49)
    assert _sick(agent.wait(lambda status: bool(_sick(status)))) == [3]
    kubelet.run(pods.pod("one", pods.container(_SEVENTH, 49)))
    told = kubelet.look_inside("one").environment["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert len(set(told)) == 49

    agent.world.lose(3, lost=False)

    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 56)
    kubelet.run(pods.pod("two", pods.container(_SEVENTH, 7)))
    more = kubelet.look_inside("two").environment["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert not set(told) & set(more)


def test_an_xid_of_the_hardware_makes_a_gpu_sick_and_one_of_a_program_does_not(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """After XID 31 on one GPU and 79 on another only the second has lost its place."""
    agent = make_agent("T4", "T4", "T4")
    agent.serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 3)

    agent.world.raise_xid(0, 31)
    agent.world.raise_xid(2, 79)  # told after the first

    kubelet.await_resource(_GPU, lambda it: it == Resource(capacity=3, allocatable=2))
    assert _sick(agent.wait(lambda status: bool(_sick(status)))) == [2]
    kubelet.run(pods.pod("one", pods.container(_GPU, 2)))
    told = kubelet.look_inside("one").environment["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert sorted(told) == [gpu_uuid(0), gpu_uuid(1)]
