"""``partita gpus``: the catalogue, as a list or one board in full."""

import click

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel
from partita.cli import options, output
from partita.views import gpu_documents, gpus

__all__ = ["command"]


@click.command("gpus")
@click.argument("model", required=False)
@options.output
def command(model: str | None, form: output.Format) -> None:
    """Show what is known of GPU models: memory, MIG profiles, where they fit.

    MODEL is a catalogue id, a product name, the value of the node label nvidia.com/gpu.product, a
    PCI id (0x20B210DE or 10de:20b2), or a word of the name. Without MODEL, all are listed.
    """
    if model is None:
        _show_list(library.models(), form)
        return
    found = library.search(model) or (library.get(model),)
    if len(found) == 1:
        _show_model(found[0], form)
        return
    click.echo(f"{len(found)} boards fit, name one of them for the details: {model}", err=True)
    _show_list(found, form)


def _show_list(models: tuple[GpuModel, ...], form: output.Format) -> None:
    if form is output.Format.TEXT:
        output.show_text(gpus.list_text(models, width=output.width(), style=output.style()))
    else:
        output.show_document(gpu_documents.list_document(models), form)


def _show_model(model: GpuModel, form: output.Format) -> None:
    if form is output.Format.TEXT:
        text = gpus.model_text(model, library.sources(), width=output.width(), style=output.style())
        output.show_text(text)
    else:
        output.show_document(gpu_documents.model_document(model), form)
