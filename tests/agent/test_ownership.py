"""Whoever else deals with the GPUs is named, with the way to hand over."""

import pytest
from tests.agent.examples import a100, look

from partita.agent.observation import KubeletEvidence, Observation
from partita.agent.ownership import rival
from partita.ports.neighbours import Signs


def _look(signs: Signs | None = None, allocatable: dict[str, int] | None = None) -> Observation:
    evidence = KubeletEvidence(
        allocatable={
            name: frozenset(f"id-{number}" for number in range(count))
            for name, count in (allocatable or {}).items()
        }
    )
    seen = look(a100(), kubelet=evidence)
    return Observation(at=seen.at, kubelet=evidence, gpus=seen.gpus, signs=signs or Signs())


@pytest.mark.parametrize(
    ("signs", "who", "hint"),
    [
        (
            Signs(rival_agent="pid 4711 since 09:00"),
            "another agent of partita has this node: pid 4711 since 09:00",
            "nothing to do: this one takes over when that one ends",
        ),
        (
            Signs(programs={"nvidia-device-plugin": 4711}),
            "nvidia-device-plugin runs on this node as process 4711",
            "label the node nvidia.com/gpu.deploy.device-plugin=false",
        ),
        (
            Signs(programs={"nvidia-mig-manager": 4711}),
            "nvidia-mig-manager runs on this node as process 4711",
            "label the node nvidia.com/gpu.deploy.mig-manager=false",
        ),
        (
            Signs(programs={"gpu-kubelet-plugin": 4711}),
            "gpu-kubelet-plugin runs on this node as process 4711",
            "take the node out of the DRA driver's DaemonSet",
        ),
        (
            Signs(programs={"some-other-plugin": 4711}),
            "some-other-plugin runs on this node as process 4711",
            "end it on this node, by its DaemonSet's node selector",
        ),
        (
            Signs(plugin_sockets=("nvidia-gpu.sock",)),
            "another device plugin answers at nvidia-gpu.sock",
            "label the node nvidia.com/gpu.deploy.device-plugin=false",
        ),
        (
            Signs(registry_sockets=("gpu.nvidia.com-reg.sock",)),
            "the DRA driver answers at gpu.nvidia.com-reg.sock",
            "take the node out of the DRA driver's DaemonSet",
        ),
        (
            Signs(labels={"nvidia.com/mig.config.state": "pending"}),
            "mig-manager is at work, label nvidia.com/mig.config.state: pending",
            "wait until it has finished",
        ),
        (
            Signs(labels={"nvidia.com/mig.config.state": "rebooting"}),
            "mig-manager is at work, label nvidia.com/mig.config.state: rebooting",
            "wait until it has finished",
        ),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_each_kind_of_rival_is_named_with_the_way_to_hand_over(
    signs: Signs, who: str, hint: str, *, begun: bool
) -> None:
    """Whether this agent serves already or not."""
    assert rival(_look(signs), begun=begun) == (who, hint)


@pytest.mark.parametrize(
    "signs",
    [
        Signs(),
        Signs(plugin_sockets=("rdma.sock", "kubevirt-kvm.sock")),
        Signs(registry_sockets=("csi.example-reg.sock", "compute-domain.nvidia.com-reg.sock")),
        Signs(labels={"nvidia.com/mig.config.state": "success", "nvidia.com/mig.config": "all"}),
        Signs(labels={}),
    ],
)
def test_who_does_not_deal_with_gpus_is_no_rival(signs: Signs) -> None:
    """Other device plugins and drivers of the node are none of our business."""
    assert rival(_look(signs), begun=False) is None


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb.shared"]
)
def test_usable_devices_before_we_offered_any_are_those_of_another_plugin(resource: str) -> None:
    """Its socket may have any name; the kubelet's list shows that it is there."""
    assert rival(_look(allocatable={resource: 4}), begun=False) == (
        f"another device plugin serves 4 devices of {resource}",
        "label the node nvidia.com/gpu.deploy.device-plugin=false",
    )


def test_what_the_kubelet_knows_once_we_serve_is_our_own() -> None:
    """The kubelet does not say whose the devices are."""
    assert rival(_look(allocatable={"nvidia.com/gpu": 4}), begun=True) is None


@pytest.mark.parametrize("allocatable", [{"nvidia.com/gpu": 0}, {"example.com/nic": 4}, {}])
def test_a_name_without_devices_or_of_other_hardware_is_no_sign(
    allocatable: dict[str, int],
) -> None:
    """The kubelet keeps names of plugins that have gone for a while."""
    assert rival(_look(allocatable=allocatable), begun=False) is None


def test_a_silent_kubelet_names_nobody() -> None:
    """Nothing is concluded from what is not known."""
    assert rival(Observation(at=0.0), begun=False) is None
