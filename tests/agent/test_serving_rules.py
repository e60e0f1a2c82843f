"""The name and the number of what is served follow from the document alone."""

import pytest
from tests.agent.examples import GPU, SHARED_GPU, SMALL
from tests.agent.world import mig, shared, whole

from partita.agent.serving_rules import Family, ServingRule, of_document, of_policy
from partita.config import agent_document
from partita.config.agent_document import AgentDocument
from partita.config.device_plugin import MigStrategy
from partita.config.partition_policy import (
    Follow,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)

CONFIG = """\
version: v1
flags:
  migStrategy: {strategy}
sharing:
  timeSlicing:
    renameByDefault: {renamed}
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 4
    - name: nvidia.com/mig-1g.5gb
      replicas: 2
"""


def _rule(strategy: str, *, renamed: bool = False) -> ServingRule:
    text = CONFIG.format(strategy=strategy, renamed=str(renamed).lower())
    return of_document(agent_document.read(text, "config.yaml"))


def test_without_a_document_everything_is_served_once_under_its_own_name() -> None:
    """MIG devices by their profile, as under the strategy *mixed*."""
    rule = of_document(AgentDocument())

    assert rule == ServingRule()
    assert rule.gpu() == Family(resource=GPU, replicas=1)
    assert rule.mig_device("3g.20gb") == Family(resource="nvidia.com/mig-3g.20gb", replicas=1)
    assert rule.mig_device("1g.10gb+me").resource == "nvidia.com/mig-1g.10gb.me"


def test_mixed_shares_each_resource_by_its_own_number() -> None:
    """What the section does not name is not shared."""
    rule = _rule("mixed")

    assert rule.gpu() == Family(resource=GPU, replicas=4)
    assert rule.mig_device("1g.5gb") == Family(resource=SMALL, replicas=2)
    assert rule.mig_device("2g.10gb").replicas == 1


def test_single_serves_mig_devices_as_gpus_with_the_number_of_gpus() -> None:
    """Seven slices with four replicas are 28 ``nvidia.com/gpu``."""
    rule = _rule("single")

    assert rule.naming is MigStrategy.SINGLE
    assert rule.mig_device("1g.5gb") == Family(resource=GPU, replicas=4)


def test_the_strategy_is_none_unless_the_config_says_otherwise() -> None:
    """As with NVIDIA's plugin."""
    document = agent_document.read("version: v1\nflags: {}\n", "config.yaml")

    assert of_document(document).naming is MigStrategy.NONE


def test_only_what_is_shared_is_renamed() -> None:
    """``.shared`` says that the device is not the pod's alone."""
    rule = _rule("mixed", renamed=True)

    assert rule.gpu().resource == SHARED_GPU
    assert rule.mig_device("1g.5gb").resource == "nvidia.com/mig-1g.5gb.shared"
    assert rule.mig_device("2g.10gb").resource == "nvidia.com/mig-2g.10gb"


def test_more_than_one_slot_is_refused_only_if_asked_for() -> None:
    """Time-slicing lets a container have several slots by default."""
    assert _rule("none").one_each
    assert not of_policy([shared(4)]).one_each


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (whole(), ServingRule()),
        (mig({"1g.5gb": 7}), ServingRule(whole=False)),
        (shared(4), ServingRule(replicas={GPU: 4})),
        (shared(4, renamed=True), ServingRule(replicas={GPU: 4}, renamed=True)),
    ],
)
def test_a_policy_says_how_its_gpus_are_served(policy: PartitionPolicy, rule: ServingRule) -> None:
    """Under *MIG* a GPU is not served whole on its way there."""
    assert of_policy([policy]) == rule


def test_a_policy_can_share_mig_devices_and_refuse_more_than_one_slot() -> None:
    """Whatever cut them."""
    policy = PartitionPolicy(
        name="share",
        strategy=Strategy.TIME_SLICING,
        follow=Follow.FIXED,
        time_slicing=SharingParameters(
            resources=(SharedResource(name=SMALL, replicas=3),),
            fail_requests_greater_than_one=True,
        ),
    )
    rule = of_policy([policy])

    assert rule.mig_device("1g.5gb") == Family(resource=SMALL, replicas=3)
    assert rule.one_each


@pytest.mark.parametrize("policies", [[], [shared(4), mig({"1g.5gb": 7})]])
def test_unless_one_policy_selects_a_gpu_it_is_served_plainly(
    policies: list[PartitionPolicy],
) -> None:
    """Which of two is meant is not guessed."""
    assert of_policy(policies) == ServingRule()
