"""The two ways to solve a program agree: complete search, and branching on the relaxation."""

from hypothesis import given
from hypothesis import strategies as st
from tests.planner import worlds

from partita.planner import relaxation, search
from partita.planner.program import Column, Group, Program, total_cost


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a small program; costs below 0 stand for future that a destruction gives back."""
    stages = draw(st.integers(1, 6))
    kinds = draw(st.integers(1, 5))
    cost = st.tuples(*[st.integers(-2, 3)] * stages)
    penalty = st.tuples(*[st.integers(0, 2)] * stages)
    supply = st.dictionaries(st.integers(0, kinds - 1), st.integers(1, 4), max_size=kinds)
    column = st.builds(
        lambda amounts, costs: Column(tuple(sorted(amounts.items())), costs), supply, cost
    )
    group = st.builds(
        lambda count, columns: Group(count, tuple(columns)),
        st.integers(1, 3),
        st.lists(column, min_size=1, max_size=6),
    )
    return Program(
        stages,
        tuple(tuple(sorted(draw(st.lists(penalty, max_size=5)))) for _ in range(kinds)),
        tuple(draw(st.lists(group, min_size=1, max_size=4))),
    )


@worlds.examples(300)
@given(program=programs())
def test_what_branching_proves_is_true(program: Program) -> None:
    """A choice that branching calls proven costs what complete search finds; none costs less."""
    best = search.solve(program)
    found = search.branch(program)
    assert found.costs == total_cost(program, found.counts)
    assert found.costs >= best.costs
    assert not found.proven or found.costs == best.costs


@worlds.examples(300)
@given(program=programs())
def test_every_member_takes_one_column(program: Program) -> None:
    """A choice decides every member of every group, no more and no less."""
    counts = search.branch(program).counts
    assert [sum(row) for row in counts] == [group.count for group in program.groups]
    assert all(count >= 0 for row in counts for count in row)


@worlds.examples(300)
@given(program=programs())
def test_the_relaxation_is_a_lower_bound(program: Program) -> None:
    """No choice undercuts the relaxation, stage after stage."""
    assert relaxation.relax(program).least <= search.solve(program).costs
