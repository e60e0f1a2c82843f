"""The catalogue: what is in it is consistent, and models are found by any of their names."""

import itertools
from collections.abc import Iterator

import pytest

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel, MigCapability, Profile
from partita.errors import UnknownModelError, UnknownProfileError

_MODELS = library.models()
_CAPABLE = [model for model in _MODELS if model.mig is not None]
_BY_ID = {model.id: model for model in _MODELS}
_SEVEN_SLICES = {19: "0123456", 20: "0123456", 15: "0246", 14: "024", 9: "04", 5: "0", 0: "0"}


def _mig(name: str) -> MigCapability:
    found = library.get(name).mig
    assert found is not None
    return found


def _profiles() -> Iterator[tuple[GpuModel, MigCapability, Profile]]:
    for model in _CAPABLE:
        mig = _mig(model.id)
        for profile in mig.profiles:
            yield model, mig, profile


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a100-80gb-sxm4", "a100-80gb-sxm4"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm4"),
        ("A100-SXM4-80GB", "a100-80gb-sxm4"),
        ("nvidia a100-sxm4-80gb", "a100-80gb-sxm4"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "a100-80gb-sxm4"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100-80gb-sxm5"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "h100-80gb-sxm5"),
        ("0x20B210DE", "a100-80gb-sxm4"),
        ("10de:20b2", "a100-80gb-sxm4"),
        ("H100-SXM5-80GB", "h100-80gb-sxm5"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA H100", "h100-94gb-sxm5"),
    ],
)
def test_found_by_name(name: str, expected: str) -> None:
    """Ids, product names, label values with suffixes and PCI ids all lead to the model."""
    found = library.find(name)
    assert found is not None
    assert found.id == expected


def test_unknown_name() -> None:
    """A name that is not in the catalogue is refused with the nearest one that is."""
    assert library.find("h100-80gb-sxm6") is None
    with pytest.raises(UnknownModelError) as caught:
        library.get("h100-80gb-sxm6")
    assert caught.value.name == "h100-80gb-sxm6"
    assert "did you mean h100-80gb-sxm5?" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("H200", "did you mean h200-141gb-sxm5 or h200-nvl-141gb? "),
        ("H20", "did you mean h20-96gb or h20-141gb? "),
    ],
)
def test_ambiguous_name(name: str, hint: str) -> None:
    """A bare family name is nobody's, though a driver calls one board of it just that."""
    assert library.find(name) is None
    assert library.find(f"NVIDIA {name}") is not None
    with pytest.raises(UnknownModelError) as caught:
        library.get(name)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a30", ["a30"]),
        ("RTX PRO 6000", ["rtx-pro-6000-se", "rtx-pro-6000-ws", "rtx-pro-6000-maxq"]),
        ("h20", ["h20-96gb", "h20-141gb"]),
        ("h200", ["h200-141gb-sxm5", "h200-nvl-141gb"]),
        ("rtx 50", ["rtx-5090"]),
        ("10de:2bb1", ["rtx-pro-6000-ws"]),
        ("100", []),
        ("h300", []),
        ("", []),
        (" ", []),
    ],
)
def test_search(text: str, expected: list[str]) -> None:
    """A full name means one board; else whole words decide, else the beginnings of words."""
    assert [model.id for model in library.search(text)] == expected


def test_search_of_a_family() -> None:
    """``h100`` means all H100 boards, though one has the bare driver name ``NVIDIA H100``."""
    expected = {model.id for model in _MODELS if model.id.startswith("h100-")}
    assert {model.id for model in library.search("H100")} == expected


def test_capable_boards_come_first() -> None:
    """The list of models starts with the boards that have MIG."""
    assert [model.mig is None for model in _MODELS] == sorted(
        model.mig is None for model in _MODELS
    )


def test_names_are_unambiguous() -> None:
    """No id, product name or PCI id belongs to two models."""
    names = [name for m in _MODELS for name in (m.id, *m.names, *m.pci_devices)]
    assert sorted(names) == sorted(set(names))


def test_sources_exist() -> None:
    """Every figure names its source, and every source named is in the list of sources."""
    assert all(model.sources for model in _MODELS)
    assert all(profile.sources for _, _, profile in _profiles())
    cited = {key for model in _MODELS for key in model.all_sources}
    assert cited <= set(library.sources())


def test_unknown_figures_are_explained() -> None:
    """A memory size that is missing is missing for a reason: a doubt or a note says so."""
    unexplained = [
        m.id for m in _MODELS if m.memory_mib is None and "memory_mib" not in m.uncertain
    ]
    assert [name for name in unexplained if not _BY_ID[name].notes] == []


def test_placements_lie_on_the_axis() -> None:
    """Every placement is as long as its profile's memory and ends on the axis; none is twice."""
    for model, mig, profile in _profiles():
        where = profile.placements
        assert list(where) == sorted(set(where)), (model.id, profile.name)
        assert all(p.size == profile.memory_slices for p in where), (model.id, profile.name)
        assert all(p.start >= 0 and p.end <= mig.memory_slices for p in where), model.id


def test_placements_are_laminar() -> None:
    """Any two placements of a model are nested or disjoint; they never overlap in part."""
    for model in _CAPABLE:
        masks = {p.mask for profile in _mig(model.id).profiles for p in profile.placements}
        for one, other in itertools.combinations(masks, 2):
            assert one & other in (0, one, other), model.id


def test_instance_limits() -> None:
    """A profile is limited to the number of its placements, with all media engines to one."""
    for model, mig, profile in _profiles():
        single = profile.name.endswith(("+me", "+me.all"))
        expected = 1 if single else len(profile.placements)
        assert profile.max_instances == expected, (model.id, profile.name)
        assert profile.max_instances * profile.compute_slices <= mig.compute_slices, model.id


def test_profiles_are_distinct() -> None:
    """Within a model, names and aliases are unique, and so are the ids that are known."""
    for model in _CAPABLE:
        profiles = _mig(model.id).profiles
        names = [name for profile in profiles for name in (profile.name, *profile.aliases)]
        ids = [profile.profile_id for profile in profiles if profile.profile_id is not None]
        assert len(names) == len(set(names)), model.id
        assert len(ids) == len(set(ids)), model.id


def test_memory_adds_up() -> None:
    """All instances of a profile together never have more memory than the board."""
    for model, _, profile in _profiles():
        if profile.memory_mib is not None and model.memory_mib is not None:
            total = profile.memory_mib * profile.max_instances
            assert total <= model.memory_mib, (model.id, profile.name)


def test_multiprocessors_add_up() -> None:
    """All instances of a profile together never have more SMs than the board."""
    for model, _, profile in _profiles():
        if profile.sm_count is not None and model.sm_count is not None:
            total = profile.sm_count * profile.max_instances
            assert total <= model.sm_count, (model.id, profile.name)


def test_seven_slice_boards_share_one_geometry() -> None:
    """A100 to GB300: seven compute slices on eight memory units, and the same ids and starts."""
    for model in _CAPABLE:
        mig = _mig(model.id)
        if mig.compute_slices == 7:
            starts = {
                profile.profile_id: "".join(str(p.start) for p in profile.placements)
                for profile in mig.profiles
            }
            assert (mig.memory_slices, starts) == (8, _SEVEN_SLICES), model.id


@pytest.mark.parametrize(
    ("board", "units"),
    [("a30", 4), ("a100-40gb-sxm4", 8), ("b200", 8), ("rtx-pro-6000-se", 12)],
)
def test_axis_lengths(board: str, units: int) -> None:
    """The axis has 4 units on an A30, 8 on seven-slice boards, 12 on an RTX PRO 6000."""
    assert _mig(board).memory_slices == units


def test_same_name_other_profile() -> None:
    """``1g.10gb`` is the double-memory profile of an A100 40GB and the plain one of an 80GB."""
    small = library.get("a100-40gb-sxm4").profile("1g.10gb")
    large = library.get("a100-80gb-sxm4").profile("1g.10gb")
    assert (small.profile_id, small.memory_slices, small.max_instances) == (15, 2, 4)
    assert (large.profile_id, large.memory_slices, large.max_instances) == (19, 1, 7)


def test_ampere_alone_resets_and_remembers() -> None:
    """Only Ampere needs a reset to switch MIG, and only Ampere keeps the mode over a reboot."""
    for model in _CAPABLE:
        ampere = model.architecture == "Ampere"
        mig = _mig(model.id)
        assert (mig.mode_change_needs_reset, mig.mode_survives_reboot) == (ampere, ampere)


@pytest.mark.parametrize("name", ["l40s", "l4", "a10", "a16", "a40", "rtx-5090", "t4", "v100"])
def test_boards_without_mig(name: str) -> None:
    """Being Ampere or newer does not make a board MIG-capable."""
    assert library.get(name).mig is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p100", ("time-slicing",)),
        ("v100", ("time-slicing", "MPS")),
        ("rtx-5090", ("time-slicing", "MPS")),
        ("h100-80gb-sxm5", ("time-slicing", "MPS")),
    ],
)
def test_other_ways_to_share(name: str, expected: tuple[str, ...]) -> None:
    """Time-slicing works everywhere; MPS with limits needs Volta or later."""
    assert library.get(name).sharing == expected


def test_profile_aliases() -> None:
    """A profile answers to the names that other drivers give it."""
    model = library.get("a100-80gb-sxm4")
    assert model.profile("7g.79gb") is model.profile("7g.80gb")


@pytest.mark.parametrize(
    ("name", "hint"), [("a30", "it has 1g.6gb, 1g.6gb+me"), ("l40s", "use time-slicing")]
)
def test_unknown_profile(name: str, hint: str) -> None:
    """A profile that a model lacks is refused with what it has instead."""
    with pytest.raises(UnknownProfileError) as caught:
        library.get(name).profile("3g.24gb")
    assert (caught.value.model, caught.value.profile) == (name, "3g.24gb")
    assert caught.value.hint.startswith(hint)
