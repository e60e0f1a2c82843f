"""What ``partita gpus`` tells people of the catalogue: a list of boards, or one board in full.

What the catalogue does not know is ``unknown``; what it is not sure of carries a ``?``, and a
legend says why. For programs the same is in ``gpu_documents``.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.views import certainty, mig_profiles
from partita.views.style import Style, Tone
from partita.views.table import Align, Column, Table, facts, paragraph, table_of

__all__ = ["list_text", "model_text"]


def list_text(models: Sequence[GpuModel], *, width: int, style: Style) -> str:
    """Return the boards as tables, those with MIG first, with a legend."""
    cut = [(model, model.mig) for model in models if model.mig is not None]
    whole = [model for model in models if model.mig is None]
    blocks = []
    if cut:
        tables = [_mig_table(cut, detail) for detail in _Detail]
        table = next((t for t in tables if t.natural_width <= width), tables[-1])
        title = f"MIG: {_count(len(cut), 'board')}"
        blocks.append(_titled(title, table.lines(width=width, style=style), style))
    if whole:
        lines = _whole_table(whole).lines(width=width, style=style)
        blocks.append(_titled(f"No MIG: {_count(len(whole), 'board')}", lines, style))
    legend = _list_legend([mig for _, mig in cut])
    blocks.append(facts(legend, width=width, style=style))
    return _joined(blocks)


def model_text(model: GpuModel, sources: Mapping[str, str], *, width: int, style: Style) -> str:
    """Return one board in full: its facts, MIG and profiles, what is not sure, and the sources.

    Args:
        model: The board.
        sources: Source key → document, as ``catalog.library.sources`` returns it.
        width: Columns the text may take.
        style: How it is emphasised.
    """
    board = facts(_board_facts(model), width=width, style=style)
    blocks = [_titled(_headline(model), board, style)]
    if model.mig is not None:
        mig_facts = facts(_mig_facts(model, model.mig), width=width, style=style)
        profiles = mig_profiles.lines(model, model.mig, width=width, style=style)
        title = "Profiles (compute in slices, memory in units of the axis)"
        blocks += [_titled("MIG", mig_facts, style), _titled(title, profiles, style)]
    if doubts := certainty.doubts(model):
        lines = facts(doubts, width=width, style=style)
        blocks.append(_titled("? is not sure", lines, style))
    if model.notes:
        notes = [paragraph(note, width=width, indent=2, mark="- ") for note in model.notes]
        blocks.append(_titled("Notes", [line for note in notes for line in note], style))
    cited = [(key, sources[key]) for key in model.all_sources]
    blocks.append(_titled("Sources", facts(cited, width=width, style=style), style))
    return _joined(blocks)


# ---- The list -----------------------------------------------------------------------------------


class _Detail(Enum):
    """How much the list says of a board, most first: the width decides."""

    NAMED = "names and all profiles"
    FULL = "all profiles"
    SHORT = "range of profiles"


def _mig_table(boards: Sequence[tuple[GpuModel, MigCapability]], detail: _Detail) -> Table:
    axes = certainty.numbers([_axis(model, mig) for model, mig in boards])
    modes = [_mode_change(mig) for _, mig in boards]
    full = detail is not _Detail.SHORT
    profiles = [mig_profiles.summary(mig, full=full) for _, mig in boards]
    columns = [
        *_first_columns([model for model, _ in boards]),
        (Column(title="AXIS", align=Align.RIGHT), axes),
        (Column(title="MODE CHANGE"), modes),
        (Column(title="PROFILES", flexible=True), profiles),
    ]
    if detail is _Detail.NAMED:
        names = [model.names[0].removeprefix("NVIDIA ") for model, _ in boards]
        columns.insert(1, (Column(title="NAME"), names))
    return table_of(columns, indent=2)


def _whole_table(models: Sequence[GpuModel]) -> Table:
    instead = [" or ".join(model.sharing) for model in models]
    return table_of([*_first_columns(models), (Column(title="INSTEAD"), instead)], indent=2)


def _first_columns(models: Sequence[GpuModel]) -> list[tuple[Column, list[str]]]:
    memory = [_number(model, "memory_mib", model.memory_mib) for model in models]
    sms = [_number(model, "sm_count", model.sm_count) for model in models]
    return [
        (Column(title="MODEL"), [model.id for model in models]),
        (Column(title="MiB", align=Align.RIGHT), certainty.numbers(memory)),
        (Column(title="SMs", align=Align.RIGHT), certainty.numbers(sms)),
    ]


def _mode_change(mig: MigCapability) -> str:
    needs = "GPU reset" if mig.mode_change_needs_reset else "idle GPU"
    return needs + "*" if mig.min_vbios or mig.requires_display_mode_compute else needs


def _list_legend(capabilities: Sequence[MigCapability]) -> list[tuple[str, str]]:
    legend = []
    if capabilities:
        legend = [
            ("AXIS", "units of memory on which MIG instances are placed"),
            ("MODE CHANGE", "what switching MIG on or off takes; a reset needs an idle GPU too"),
        ]
    if any(_mode_change(mig).endswith("*") for mig in capabilities):
        legend.append(("*", "needs a certain video BIOS or display mode as well"))
    return [*legend, ("?", "not sure; `partita gpus MODEL` says why, and shows all there is")]


# ---- One board ----------------------------------------------------------------------------------


def _headline(model: GpuModel) -> str:
    if model.mig is None:
        return f"{model.names[0]}: no MIG"
    return f"{model.names[0]}: MIG, up to {model.mig.max_instances} instances"


def _board_facts(model: GpuModel) -> list[tuple[str, str]]:
    chip = certainty.marked(model.chip, doubtful="chip" in model.uncertain)
    capability = certainty.marked(
        model.compute_capability, doubtful="compute_capability" in model.uncertain
    )
    known_as = certainty.marked(", ".join(model.names), doubtful="names" in model.uncertain)
    memory = _number(model, "memory_mib", model.memory_mib)
    found = [
        ("Id", model.id),
        ("Names", known_as),
        ("Also called", ", ".join(model.aliases)),
        ("Form", model.form),
        ("PCI", ", ".join(model.pci_devices)),
        ("Chip", f"{chip}, {model.architecture}, compute capability {capability}"),
        ("Memory", memory if model.memory_mib is None else f"{memory} MiB"),
        ("SMs", _number(model, "sm_count", model.sm_count)),
    ]
    if model.mig is None:
        found += [("MIG", "none, this board cannot be cut"), ("Instead", _instead(model))]
    return [(label, value) for label, value in found if value]


def _instead(model: GpuModel) -> str:
    if "MPS" in model.sharing:
        return (
            "time-slicing (no limits on memory) or MPS (a share of memory and threads for each "
            "client; no isolation of faults)"
        )
    return "time-slicing (no limits on memory); MPS with limits needs Volta or later"


def _mig_facts(model: GpuModel, mig: MigCapability) -> list[tuple[str, str]]:
    driver = certainty.marked(mig.min_driver, doubtful="mig.min_driver" in model.uncertain)
    reset = "an idle GPU and a reset of it" if mig.mode_change_needs_reset else "an idle GPU"
    kept = "stays on" if mig.mode_survives_reboot else "is off again"
    found = [
        ("Driver", driver),
        ("Axis", f"{_axis(model, mig)} units of memory, {mig.compute_slices} compute slices"),
        ("Mode change", f"needs {reset}" + ("" if mig.mode_change_needs_reset else ", no reset")),
        ("After reboot", f"the mode {kept}, instances are gone in any case"),
    ]
    if mig.min_vbios:
        found.append(("Video BIOS", f">= {mig.min_vbios}"))
    if mig.requires_display_mode_compute:
        found.append(("Display mode", "must be compute before MIG can be switched on"))
    return found


# ---- Both ---------------------------------------------------------------------------------------


def _axis(model: GpuModel, mig: MigCapability) -> str:
    doubtful = mig.axis_is_nominal or "mig.placements" in model.uncertain
    return certainty.number(mig.memory_slices, doubtful=doubtful)


def _number(model: GpuModel, field: str, value: int | None) -> str:
    return certainty.number(value, doubtful=field in model.uncertain)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _titled(title: str, lines: Sequence[str], style: Style) -> list[str]:
    return [style.paint(title, Tone.TITLE), *lines]


def _joined(blocks: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks)
