"""What is public is listed: ``__all__`` of every module is sorted, and what it names exists."""

import importlib
import pkgutil

import pytest

import partita

_MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(partita.__path__, prefix="partita.")
    if not module.ispkg and not module.name.endswith(".__main__")
)


def _rank(name: str) -> tuple[int, str]:
    """Constants before classes before functions, each by alphabet: as ruff sorts ``__all__``."""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return (kind, name)


@pytest.mark.parametrize("name", ["partita", *_MODULES])
def test_public_names(name: str) -> None:
    """Every module lists its public names, in order, each once, and has them."""
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert listed == sorted(set(listed), key=_rank)
    assert [public for public in listed if not hasattr(module, public)] == []
