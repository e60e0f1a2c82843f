"""Reads the catalogue's data files once and looks GPU models up by any of their names."""

import difflib
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from partita.catalog.gpu_model import (
    ComputeInstanceProfile,
    Engines,
    GpuModel,
    MigCapability,
    Profile,
)
from partita.errors import UnknownModelError
from partita.model.placement import Placement

__all__ = ["find", "get", "models", "profile", "search", "sources"]

_MIG_SUFFIX = re.compile(r"-MIG-.*$")
_REMARK = re.compile(r"\s*\([^)]*\)$")  # some aliases say in brackets who uses them
_SHARED_SUFFIX = "-SHARED"


@cache
def models() -> tuple[GpuModel, ...]:
    """Return every model, MIG-capable ones first in the order of the data files."""
    folder = resources.files("partita.catalog") / "data"
    found: list[GpuModel] = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".json") and entry.name != "sources.json":
            document = json.loads(entry.read_text(encoding="utf-8"))
            found += [_model(raw, document["architecture"]) for raw in document["gpus"]]
    return tuple(sorted(found, key=lambda model: model.mig is None))


@cache
def sources() -> Mapping[str, str]:
    """Return where the figures come from: source key → document."""
    path = resources.files("partita.catalog") / "data" / "sources.json"
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=1024)  # an agent asks for the same boards at every look
def find(name: str) -> GpuModel | None:
    """Return the model of a catalogue id, product name, node-label value or PCI id, else None.

    Node labels write blanks as ``-`` and append ``-SHARED`` or ``-MIG-<profile>``; both are undone.
    PCI ids are known as NVML writes them (``0x20B210DE``) and as ``lspci`` does (``10de:20b2``).
    Without ``NVIDIA`` a product name counts only when it is no other board's too: ``H100`` is not
    the board that drivers call ``NVIDIA H100``.
    """
    return _index().get(_normal(name))


def search(text: str) -> tuple[GpuModel, ...]:
    """Return the models that a text may mean, in catalogue order; empty when none.

    A full name or id means its model alone. Otherwise whole words of the names decide (``h100`` is
    every H100 board, not the one whose driver name happens to be just that), and beginnings of
    words only where no whole word fits (``h10``).
    """
    wanted = _normal(text)
    exact = [model for model in models() if wanted in map(_normal, _full_names(model))]
    if exact or not wanted:
        return tuple(exact[:1])
    return _matching(_whole_words(wanted)) or _matching(re.compile(rf"(^|-){re.escape(wanted)}"))


def profile(model_id: str | None, name: str) -> Profile | None:
    """Return the MIG profile of a model by name or alias, None when either is not known."""
    model = find(model_id) if model_id is not None else None
    return model.mig.by_name.get(name) if model is not None and model.mig is not None else None


def get(name: str) -> GpuModel:
    """Return the model of a name.

    Raises:
        UnknownModelError: When the catalogue has no such model, or several; the hint names them,
            or the nearest.
    """
    found = find(name)
    if found is not None:
        return found
    near = [model.id for model in search(name)]
    if not near:
        close = difflib.get_close_matches(_normal(name), list(_index()), n=1, cutoff=0.5)
        near = [_index()[key].id for key in close]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UnknownModelError(
        message=f"no such GPU model in the catalogue: {name}",
        hint=hint + "`partita gpus` lists all models",
        name=name,
    )


@cache
def _index() -> Mapping[str, GpuModel]:
    index: dict[str, GpuModel] = {}
    for model in models():
        for name in _full_names(model):
            index.setdefault(_normal(name), model)
    for model in models():
        for name in model.names:
            short = _normal(name.removeprefix("NVIDIA "))
            if len(_matching(_whole_words(short))) == 1:
                index.setdefault(short, model)
    return index


def _whole_words(normal: str) -> re.Pattern[str]:
    return re.compile(rf"(^|-){re.escape(normal)}(-|$)")


def _matching(pattern: re.Pattern[str]) -> tuple[GpuModel, ...]:
    return tuple(
        model
        for model in models()
        if any(pattern.search(_normal(name)) for name in _full_names(model))
    )


def _full_names(model: GpuModel) -> tuple[str, ...]:
    aliases = (_REMARK.sub("", alias) for alias in model.aliases)
    pci_addresses = (f"{pci[6:]}:{pci[2:6]}" for pci in model.pci_devices)
    return (model.id, *model.names, *aliases, *model.pci_devices, *pci_addresses)


def _normal(name: str) -> str:
    stripped = _MIG_SUFFIX.sub("", name.removesuffix(_SHARED_SUFFIX))
    return re.sub(r"[\s_-]+", "-", stripped.strip()).lower()


def _model(raw: Mapping[str, Any], architecture: str) -> GpuModel:
    return GpuModel(
        id=raw["id"],
        names=tuple(raw["names"]),
        aliases=tuple(raw["aliases"]),
        form=raw["form"],
        pci_devices=tuple(raw["pci_devices"]),
        architecture=architecture,
        chip=raw["chip"],
        compute_capability=raw["compute_capability"],
        memory_mib=raw["memory_mib"],
        sm_count=raw["sm_count"],
        mig=_mig(raw["mig"]) if "mig" in raw else None,
        uncertain=raw["uncertain"],
        notes=tuple(raw["notes"]),
        sources=tuple(raw["sources"]),
    )


def _mig(raw: Mapping[str, Any]) -> MigCapability:
    return MigCapability(
        max_instances=raw["max_instances"],
        compute_slices=raw["compute_slices"],
        memory_slices=raw["memory_slices"],
        min_driver=raw["min_driver"],
        mode_change_needs_reset=raw["mode_change_needs_reset"],
        mode_survives_reboot=raw["mode_survives_reboot"],
        min_vbios=raw.get("min_vbios"),
        requires_display_mode_compute=raw.get("requires_display_mode_compute", False),
        axis_is_nominal=any(profile.get("axis_nominal", False) for profile in raw["profiles"]),
        profiles=tuple(_profile(profile) for profile in raw["profiles"]),
    )


def _profile(raw: Mapping[str, Any]) -> Profile:
    size = raw["memory_slices"]
    uncertain = tuple(raw.get("uncertain", ())) or (("all",) if "confidence" in raw else ())
    return Profile(
        name=raw["name"],
        profile_id=raw["id"],
        compute_slices=raw["compute_slices"],
        memory_slices=size,
        memory_mib=raw["memory_mib"],
        sm_count=raw["sm_count"],
        max_instances=raw["max_instances"],
        engines=Engines(**{name: count or 0 for name, count in raw["engines"].items()}),
        placements=tuple(Placement(start=start, size=size) for start in raw["starts"]),
        aliases=tuple(raw.get("aliases", ())),
        min_driver=raw.get("min_driver"),
        uncertain=uncertain,
        compute_instances=tuple(
            ComputeInstanceProfile(
                name=ci["name"],
                profile_id=ci["id"],
                compute_slices=ci["compute_slices"],
                starts=tuple(ci["starts"]),
            )
            for ci in raw["compute_instances"]
        ),
        sources=tuple(raw["sources"]),
    )
