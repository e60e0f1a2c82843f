"""The plan is the best there is: compared with an oracle that tries everything."""

from hypothesis import given
from tests.planner import oracle, worlds

from partita.model.fleet import Fleet
from partita.planner.planning import plan


@worlds.examples(500)
@given(fleet=worlds.fleets())
def test_no_plan_is_better(fleet: Fleet) -> None:
    """Pods left out, their age and every stage of the cost equal the least there can be."""
    found = plan(fleet)
    left_out = {unfit.pod.full_name for unfit in found.unfit}
    penalties = oracle.penalties(oracle.pending(fleet), left_out)
    assert oracle.Best(penalties=penalties, cost=found.cost) == oracle.best(fleet)


@worlds.examples(100)
@given(fleet=worlds.fleets())
def test_small_plans_are_proven(fleet: Fleet) -> None:
    """A fleet of up to three GPUs and five pods is searched to the end."""
    assert plan(fleet).proven
