"""Runs coroutines as tests, and makes folders whose paths are short enough for sockets."""

import asyncio
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder for sockets."""
    with tempfile.TemporaryDirectory(prefix="dp") as name:
        yield Path(name)
