"""``partita agent``: cuts the GPUs of this node and serves the slices to its kubelet."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import click

from partita.cli import options
from partita.cli.agent_settings import Settings
from partita.cli.logs import LogForm, configure
from partita.config.serving_options import DeviceIdStrategy, DeviceListStrategy
from partita.errors import UsageError

__all__ = ["command"]

_KUBELET = Path("/var/lib/kubelet")
_PORT = 9410
_LISTS = ", ".join(one.value for one in DeviceListStrategy)


@click.command("agent")
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="CONFIG_FILE",
    help="What is wanted: policies, or NVIDIA's device-plugin or mig-parted config. Edits are "
    "followed. Without it what stands is served as it is.",
)
@click.option("--config-name", envvar="PARTITA_CONFIG_NAME", help="Which of several configs in it.")
@click.option(
    "--allow-reset",
    is_flag=True,
    help="Allow the reset of a GPU for a mig-parted config, where its mode needs one (Ampere).",
)
@click.option(
    "--simulate",
    metavar="GPUS",
    help="Simulate GPUs, such as A100-SXM4-40GB:8 or T4,L4:2, and without --kubelet-folder a "
    "kubelet as well. Nothing of this machine is touched.",
)
@click.option("--node-name", envvar="NODE_NAME", help="Name of this node; else the host's.")
@click.option(
    "--node-label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="A label of this node, for node selectors of policies; without any, all select it.",
)
@click.option(
    "--kubelet-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Folder of the kubelet; {_KUBELET} unless simulated.",
)
@click.option(
    "--listen",
    default=f"127.0.0.1:{_PORT}",
    show_default=True,
    envvar="PARTITA_LISTEN",
    help="Address of /healthz, /readyz and /status; empty for none.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File that `partita status` reads; {options.STATE_FILE} unless simulated.",
)
@click.option(
    "--device-list-strategy",
    "lists",
    multiple=True,
    metavar="STRATEGY",
    envvar="DEVICE_LIST_STRATEGY",
    help=f"How a container is told of its devices: {_LISTS}; several with commas. Overrides the "
    "file.",
)
@click.option(
    "--device-id-strategy",
    "ids",
    type=click.Choice([one.value for one in DeviceIdStrategy]),
    envvar="DEVICE_ID_STRATEGY",
    help="What devices are called there; overrides the file.",
)
@click.option(
    "--pass-device-specs/--no-pass-device-specs",
    "specs",
    default=None,
    envvar="PASS_DEVICE_SPECS",
    help="Whether device nodes are named too; overrides the file.",
)
@click.option("--driver-root", envvar="NVIDIA_DRIVER_ROOT", help="Where the node has its driver.")
@click.option("--dev-root", envvar="NVIDIA_DEV_ROOT", help="Folder of the node in which dev lies.")
@click.option(
    "--cdi-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where CDI files are written; /var/run/cdi unless simulated.",
)
@click.option(
    "--host-root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/"),
    help="Where the node's own files are seen: / on the node, a mount in a container.",
)
@click.option(
    "--ignore-xids",
    default="",
    envvar="DP_DISABLE_HEALTHCHECKS",
    help="More XIDs that say nothing of the GPU, or `all`.",
)
@click.option(
    "--heed-xids",
    default="",
    envvar="DP_ENABLE_HEALTHCHECKS",
    help="XIDs that count although they are ignored otherwise, or `all`.",
)
@click.option("--log-form", type=click.Choice(LogForm, case_sensitive=False), default=LogForm.TEXT)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info"
)
def command(  # noqa: PLR0913 - one argument per option
    *,
    config: Path | None,
    config_name: str | None,
    allow_reset: bool,
    simulate: str | None,
    node_name: str | None,
    labels: tuple[str, ...],
    kubelet_folder: Path | None,
    listen: str,
    state: Path | None,
    lists: tuple[str, ...],
    ids: str | None,
    specs: bool | None,
    driver_root: str | None,
    dev_root: str | None,
    cdi_folder: Path | None,
    host_root: Path,
    ignore_xids: str,
    heed_xids: str,
    log_form: LogForm,
    log_level: str,
) -> None:
    """Cut the GPUs of this node as wanted, and serve the slices to its kubelet.

    Runs until it is ended. A slice that a pod holds is never touched; a change waits for it. As
    long as another program serves or cuts the GPUs of this node, the agent waits and says for whom.
    """
    settings = Settings(
        config=config,
        config_name=config_name,
        allow_reset=allow_reset,
        simulate=_simulated(simulate),
        node_name=node_name or os.uname().nodename,
        labels=_labels(labels),
        kubelet_folder=kubelet_folder or (None if simulate else _KUBELET),
        listen=_address(listen),
        state=state or (_simulated_state() if simulate else options.STATE_FILE),
        lists=_lists(lists),
        ids=DeviceIdStrategy(ids) if ids is not None else None,
        specs=specs,
        driver_root=driver_root,
        dev_root=dev_root,
        cdi_folder=cdi_folder,
        host_root=host_root,
        ignore_xids=ignore_xids,
        heed_xids=heed_xids,
    )
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write between the lines of our log
    from partita.cli import agent_wiring  # noqa: PLC0415 - gRPC and NVML, which no other command needs

    given = agent_wiring.given(settings)  # before anything is begun or said
    configure(log_form, level=log_level)
    if simulate and state is None:
        click.echo(f"to see how it goes: partita status --state {settings.state}", err=True)
    asyncio.run(_until_ended(partial(agent_wiring.run, settings, given)))


async def _until_ended(run: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await run(ended)


def _labels(texts: tuple[str, ...]) -> Mapping[str, str] | None:
    pairs = [text.partition("=") for text in texts]
    odd = next((text for text in texts if "=" not in text), None)
    if odd is not None:
        raise UsageError(message=f"not a label: {odd}", hint="write --node-label KEY=VALUE")
    return {key: value for key, _, value in pairs} or None


def _lists(texts: tuple[str, ...]) -> tuple[DeviceListStrategy, ...]:
    names = [name.strip() for text in texts for name in text.split(",")]
    known = {one.value: one for one in DeviceListStrategy}
    odd = next((name for name in names if name not in known), None)
    if odd is not None:
        raise UsageError(message=f"no such device list strategy: {odd}", hint=f"use {_LISTS}")
    return tuple(known[name] for name in dict.fromkeys(names))


def _simulated(text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise UsageError(
            message="no GPU to simulate is named", hint="write --simulate A100-SXM4-40GB:8"
        )
    return text


def _simulated_state() -> Path:
    """Return where a simulated agent says how it goes."""
    return Path(tempfile.gettempdir(), "partita-agent.json")


def _address(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(
            message=f"not an address: {text}", hint=f"write --listen 127.0.0.1:{_PORT}"
        )
    return (host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - as asked for
