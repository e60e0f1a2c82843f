"""Starts nodes with the GPUs that a test asks for, once per implementation of the driver."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.drivers.driver_under_test import DriverUnderTest
from tests.drivers.implementations import IMPLEMENTATIONS


@pytest.fixture(params=IMPLEMENTATIONS)
def start(request: pytest.FixtureRequest) -> Iterator[Callable[[str], DriverUnderTest]]:
    """Return a function from the GPUs of a node to the node, which ends with the test."""
    implementation = IMPLEMENTATIONS[request.param]
    with ExitStack() as nodes:
        yield lambda gpus: nodes.enter_context(implementation(gpus))


@pytest.fixture
def node(start: Callable[[str], DriverUnderTest]) -> DriverUnderTest:
    """Return a node with one A100 40GB."""
    return start("A100-SXM4-40GB")
