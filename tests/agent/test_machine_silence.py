"""What the machine keeps in mind, and tells, while it has only half of an answer."""

from dataclasses import replace

from tests.agent.examples import SMALL, a100, holding, instance, look, remembered
from tests.agent.world import World, mig, shared, wants

from partita.agent import machine
from partita.agent.decision import Phase
from partita.agent.instruction import DestroyInstance
from partita.agent.memory import Memory
from partita.agent.observation import KubeletEvidence
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import HealthEvent
from partita.ports.kubelet import Holding


def test_an_instance_whose_held_device_is_not_enumerated_is_not_destroyed() -> None:
    """A device may be missing from one look; its pod holds it all the same."""
    wish = wants(mig({"1g.5gb": 2}))
    whole = a100(mode=MigMode.ON, instances=(instance(1, 0), instance(2, 1)))
    evidence = KubeletEvidence(
        holdings=(holding("MIG-1", resource=SMALL),),
        remembered=(remembered("MIG-1", resource=SMALL),),
    )
    memory = machine.decide(look(whole, at=100.0, kubelet=evidence), wish, Memory()).memory
    half = a100(mode=MigMode.ON, instances=(instance(1, 0, devices=()), instance(2, 1)))
    for at in (101.0, 102.0, 103.0):
        decision = machine.decide(look(half, at=at, kubelet=evidence), wish, memory)
        memory = decision.memory

        assert not any(isinstance(one, DestroyInstance) for one in decision.instructions)

    anew = machine.decide(look(half, at=104.0, kubelet=evidence), wish, Memory())
    for at in (105.0, 106.0):
        anew = machine.decide(look(half, at=at, kubelet=evidence), wish, anew.memory)
        assert not any(isinstance(one, DestroyInstance) for one in anew.instructions)


def test_one_slot_each_holds_while_the_kubelet_is_silent() -> None:
    """What is offered then is what was offered before, in every respect."""
    policy = shared(4)
    assert policy.time_slicing is not None
    strict = replace(policy.time_slicing, fail_requests_greater_than_one=True)
    wish = wants(replace(policy, time_slicing=strict))
    before = machine.decide(look(a100(), at=1.0), wish, Memory())
    silent = replace(look(a100(), at=2.0), kubelet=None, kubelet_problem="no answer")
    after = machine.decide(silent, wish, before.memory)

    assert [offer.one_each for offer in before.offers or ()] == [True]
    assert after.offers == before.offers


def test_an_xid_is_not_lost_while_the_driver_is_silent() -> None:
    """It is told only once, so it is kept for when the GPUs can be read again."""
    wish = wants(shared(2))
    before = machine.decide(look(a100(), at=1.0), wish, Memory())
    event = HealthEvent(uuid="GPU-0", xid=79)
    silent = replace(look(at=2.0), gpus=None, driver_problem="a call hangs", events=(event,))
    memory = machine.decide(silent, wish, before.memory).memory
    after = machine.decide(look(a100(), at=3.0), wish, memory)

    assert after.states["GPU-0"].reason == "it reported XID 79"
    assert not any(one.usable for offer in after.offers or () for one in offer.slices)


def test_a_claim_that_is_no_gpu_hides_nothing() -> None:
    """NVIDIA's DRA driver also hands out channels between nodes."""
    claim = Holding(
        namespace="ml",
        pod="train",
        container="main",
        resource="compute-domain.nvidia.com",
        device_id="node/channel-0",
        claimed=True,
    )
    seen = look(a100(), at=1.0, kubelet=KubeletEvidence(holdings=(claim,)))

    assert machine.decide(seen, wants(shared(2)), Memory()).problem is None


def test_a_gpu_that_must_stay_as_it_is_still_says_for_whom_its_names_wait() -> None:
    """That a cut is not allowed is one thing; who holds what is served no longer is another."""
    world = World(document=wants(shared(2)))
    world.settle()
    world.run("nvidia.com/gpu")
    world.layouts.document = wants(mig({"1g.5gb": 7}, may_reset=False))
    (state,) = world.settle().states.values()

    assert state.phase is Phase.WAITING
    assert (state.reason or "").startswith("default/pod-1; to switch MIG on this GPU must be reset")
