"""Worlds that the stub NVML library shows, and drivers over them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.nvml import library
from tests.nvml.world import STATE_VARIABLE, World

from partita.adapters.nvml import NvmlDriver


@pytest.fixture
def make_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    """Return what makes the world that the stub shows to this process and its children."""

    def make(*models: str, by_user: bool = False) -> World:
        path = tmp_path / "state.txt"
        monkeypatch.setenv(STATE_VARIABLE, str(path))
        monkeypatch.setenv("LD_LIBRARY_PATH", str(library.load().parent))
        return World(path, *models, by_user=by_user)

    return make


@pytest.fixture
def make_driver(tmp_path: Path) -> Iterator[Callable[[World], NvmlDriver]]:
    """Return what makes a driver over a world; it is closed after the test."""
    drivers: list[NvmlDriver] = []

    def make(world: World) -> NvmlDriver:
        driver = NvmlDriver(reset_command=world.reset, sysfs=tmp_path / "sys")
        drivers.append(driver)
        return driver

    yield make
    for driver in drivers:
        driver.close()
