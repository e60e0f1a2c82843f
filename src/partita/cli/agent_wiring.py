"""Builds the agent of a node from real parts or simulated ones, and runs it until it is ended."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import partita
from partita.adapters import agent_http, agent_state
from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.node_files import NodeRoots
from partita.adapters.device_plugin.server import DevicePluginServer, Hooks
from partita.adapters.layout_file import LayoutFile
from partita.adapters.local_kubelet import LocalKubelet
from partita.adapters.neighbours import KubeletNeighbours
from partita.adapters.nvml import NvmlDriver
from partita.adapters.processes import ProcProcessTable
from partita.adapters.system_clock import SystemClock
from partita.agent import health, status
from partita.agent.decision import Decision
from partita.agent.driver_thread import DriverThread
from partita.agent.event_watch import watch
from partita.agent.health import HealthRules
from partita.agent.loop import Agent, Node
from partita.agent.observation import Observation
from partita.agent.preference import Preference
from partita.agent.status import Identity
from partita.cli.agent_settings import Settings
from partita.config.agent_document import AgentDocument
from partita.config.serving_options import ServingOptions
from partita.errors import PartitaError
from partita.model.agent_status import AgentStatus, Condition
from partita.model.finding import Severity
from partita.ports.clock import Clock
from partita.ports.gpu_driver import GpuDriver
from partita.ports.layout_source import LayoutSource
from partita.ports.process_table import ProcessTable
from partita.views import agent_status

if TYPE_CHECKING:  # a node has real GPUs, and does without the simulator
    from partita.simulator.gpus import SimulatedGpus

__all__ = ["Given", "given", "run"]

_LOG = logging.getLogger(__name__)
_CLOSING_SECONDS = 2.0
_WORDS = {True: "true", False: "false", None: "unknown"}
_PASSING = ("Changing", "Offering", "Withdrawing")  # too short to log; steps are logged
_STALE_SECONDS = 60.0  # a loop that has not looked for so long is stuck


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line names, read and found to be usable.

    Attributes:
        layouts: What is wanted.
        rules: What counts as sick.
        gpus: Simulated GPUs, None for the real ones.
    """

    layouts: LayoutSource
    rules: HealthRules
    gpus: "SimulatedGpus | None"


def given(settings: Settings) -> Given:
    """Read what the command line names.

    Raises:
        PartitaError: When something of it cannot be used.
    """
    rules = HealthRules(ignored=health.ignored(settings.ignore_xids, settings.heed_xids))
    return Given(layouts=_layouts(settings), rules=rules, gpus=_simulated_gpus(settings.simulate))


def _layouts(settings: Settings) -> LayoutSource:
    if settings.config is None:
        return _NoFile()
    return LayoutFile(
        settings.config,
        name=settings.config_name,
        labels=settings.labels,
        allow_reset=settings.allow_reset,
    )


def _simulated_gpus(text: str | None) -> "SimulatedGpus | None":
    if text is None:
        return None
    from partita.simulator import gpus  # noqa: PLC0415 - a node has real ones

    return gpus.SimulatedGpus(gpus.parse(text))


async def run(settings: Settings, given: Given, ended: asyncio.Event) -> None:
    """Run the agent until the event is set.

    Raises:
        PartitaError: When it cannot begin: the driver, or the address.
    """
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        folder = settings.kubelet_folder
        if folder is None:
            folder = await stack.enter_async_context(_simulated_kubelet(clock))
        driver, processes = _driver(settings, given.gpus, stack)
        wired = _wire(settings, given, folder, driver, processes, clock)
        gc.freeze()  # what is loaded stays, so that no search for garbage looks at it again
        loop = await stack.enter_async_context(wired.running())
        await _until_one_ends(loop, asyncio.create_task(ended.wait()))
        _LOG.info("ending", extra={"node": settings.node_name})


class _NoFile:
    """The layouts of nobody: what stands is wanted."""

    def __init__(self) -> None:
        self._document = AgentDocument()

    def current(self) -> AgentDocument:
        """Return that nothing is wanted."""
        return self._document

    def problem(self) -> str | None:
        """Return that there is none."""
        return None


@asynccontextmanager
async def _simulated_kubelet(clock: Clock) -> AsyncIterator[Path]:
    from partita.simulator.kubelet.folders import Folders  # noqa: PLC0415 - a node has a real one
    from partita.simulator.kubelet.kubelet import SimulatedKubelet  # noqa: PLC0415
    from partita.simulator.kubelet.process import Settings as KubeletSettings  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="partita-") as base:
        folders = Folders(base=Path(base))
        kubelet = SimulatedKubelet(
            KubeletSettings(folders=folders, clock=clock), report_seconds=1.0
        )
        await kubelet.start()
        _LOG.info("a simulated kubelet has its folder at %s", base)
        try:
            yield Path(base)
        finally:
            await kubelet.stop()


def _driver(
    settings: Settings, gpus: "SimulatedGpus | None", stack: AsyncExitStack
) -> tuple[GpuDriver, ProcessTable]:
    if gpus is not None:
        from partita.simulator import surroundings  # noqa: PLC0415 - a node has real ones
        from partita.simulator.gpu_driver import SimulatedGpuDriver  # noqa: PLC0415

        return SimulatedGpuDriver(gpus), surroundings.SimulatedProcesses()
    driver = NvmlDriver(sysfs=settings.host_root / "sys")
    stack.callback(_close, driver)
    return driver, ProcProcessTable(settings.host_root / "proc")


def _close(driver: NvmlDriver) -> None:
    """Close the driver; when one of its calls hangs for good, end the program without it.

    Nothing else is left to do by then, and Python would wait for the call's thread for ever.
    """
    closing = threading.Thread(target=driver.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
    if closing.is_alive():
        _LOG.warning("a call of the GPU driver hangs; ending without it")
        logging.shutdown()
        os._exit(0)


def _wire(
    settings: Settings,
    given: Given,
    folder: Path,
    driver: GpuDriver,
    processes: ProcessTable,
    clock: Clock,
) -> "_Wired":
    cdi = settings.cdi_folder or (folder / "cdi" if settings.simulate else Path("/var/run/cdi"))
    layouts = given.layouts
    options = _serving(settings, layouts.current())
    wired = _Wired(
        settings=settings, driver=driver, clock=clock, layouts=layouts, cdi=cdi, options=options
    )
    server = DevicePluginServer(
        folder / "device-plugins",
        clock,
        Preference(shared=options.shared_devices_allocation_policy),
        Delivery(options, _roots(settings, options), cdi_folder=cdi),
        hooks=Hooks(objection=wired.object_to, on_change=wired.wake, on_promise=wired.wake_soon),
    )
    wired.server = server
    wired.kubelet = LocalKubelet(
        folder / "pod-resources" / "kubelet.sock", folder / "device-plugins"
    )
    wired.agent = Agent(
        node=Node(
            driver=driver,
            kubelet=wired.kubelet,
            server=server,
            processes=processes,
            neighbours=KubeletNeighbours(
                processes,
                labels=lambda: settings.labels,
                device_plugins=folder / "device-plugins",
                registry=folder / "plugins_registry",
            ),
            clock=clock,
            layouts=layouts,
        ),
        call=wired.thread,
        aside=asyncio.to_thread,
        prepare=wired.follow_document,
        rules=given.rules,
        publish=wired.publish,
    )
    return wired


def _serving(settings: Settings, document: AgentDocument) -> ServingOptions:
    """Return how slices are delivered: flag or variable before file before default."""
    options = document.plugin.serving if document.plugin is not None else ServingOptions()
    if settings.lists:
        options = replace(options, device_list_strategies=settings.lists)
    if settings.ids is not None:
        options = replace(options, device_id_strategy=settings.ids)
    if settings.specs is not None:
        options = replace(options, pass_device_specs=settings.specs)
    if settings.driver_root is not None:
        options = replace(options, driver_root=settings.driver_root)
    if settings.dev_root is not None:
        options = replace(options, dev_root=settings.dev_root)
    return options


def _roots(settings: Settings, options: ServingOptions) -> NodeRoots:
    """Return where this program sees the node's files, and what the node calls them."""
    host = settings.host_root
    return NodeRoots(
        dev=_below(host, options.dev_root) / "dev",
        proc=host / "proc",
        driver=_below(host, options.driver_root),
        node=host,
        dev_on_node=str(Path(options.dev_root) / "dev"),
        driver_on_node=options.driver_root,
    )


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


@dataclass(slots=True, kw_only=True)
class _Wired:
    """The parts of a running agent, and what it says of itself to the outside."""

    settings: Settings
    driver: GpuDriver
    clock: Clock
    layouts: LayoutSource
    cdi: Path
    options: ServingOptions
    agent: Agent = field(init=False)
    server: DevicePluginServer = field(init=False)
    kubelet: LocalKubelet = field(init=False)
    thread: DriverThread = field(default_factory=DriverThread)
    said: AgentStatus | None = None
    _document: AgentDocument | None = None
    looked_at: float | None = None
    _logged: dict[str, str] = field(default_factory=dict)
    _written: AgentStatus | None = None
    _written_at: float = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Serve, watch and loop as long as the context is open; yield the loop."""
        async with AsyncExitStack() as stack:
            stack.callback(self.thread.close)
            stack.push_async_callback(self.kubelet.close)
            await self.server.start()
            stack.push_async_callback(self.server.close)
            if self.settings.listen is not None:
                pages = {"/healthz": self.healthz, "/readyz": self.readyz, "/status": self.status}
                stack.enter_context(agent_http.serve(self.settings.listen, pages))
            stack.enter_context(watch(self.driver, self.agent.report))
            task = asyncio.create_task(self.agent.run())
            stack.push_async_callback(_cancelled, task)
            yield task
            self._take_leave()

    async def object_to(self, device_ids: Sequence[str]) -> str | None:
        """Return what the agent has against giving these away."""
        return await self.agent.objection(device_ids)

    def wake(self) -> None:
        """Look again now."""
        self.agent.wake()

    def wake_soon(self) -> None:
        """Look again once the kubelet has noted what it has just given away."""
        asyncio.get_running_loop().call_later(0.5, self.agent.wake)

    async def follow_document(self) -> None:
        """Deliver as the file says now, and say what its reader noted: it may have been edited."""
        document = self.layouts.current()
        if document is self._document:
            return
        self._document = document
        for finding in document.findings:
            if finding.severity is Severity.WARNING:
                place = ":".join(str(part) for part in (finding.path, finding.line) if part)
                _LOG.warning("%s: %s (%s)", place, finding.message, finding.hint or finding.rule)
        options = _serving(self.settings, document)
        if options != self.options:
            self.options = options
            await self.server.deliver_by(
                Delivery(options, _roots(self.settings, options), cdi_folder=self.cdi),
                Preference(shared=options.shared_devices_allocation_policy),
            )
            _LOG.info("containers are told of their devices in another way now")

    def _take_leave(self) -> None:
        """Say in the state file that nobody writes it any more."""
        if self.said is None:
            return
        now = self._now()
        ended = Condition(
            type="Ready", holds=False, reason="Ended", message="the agent has ended", since=now
        )
        others = tuple(one for one in self.said.conditions if one.type != "Ready")
        said = replace(self.said, at=now, conditions=(ended, *others))
        with contextlib.suppress(PartitaError):  # it has been told before that it cannot be written
            agent_state.write(self.settings.state, self._text(said))

    def publish(self, seen: Observation, decision: Decision) -> None:
        """Tell of a look and its decision: to the state file, to the log, and over HTTP."""
        self.looked_at = seen.at
        who = Identity(
            node=self.settings.node_name, version=partita.__version__, process_id=os.getpid()
        )
        self.said = status.status(
            who,
            seen,
            decision,
            status.Wish(document=self.layouts.current(), problem=self.layouts.problem()),
            before=self.said,
            now=self._now(),
        )
        self._log(self.said)
        self._write(self.said, seen.at)

    def _log(self, said: AgentStatus) -> None:
        """Log what has changed since it was last logged."""
        texts = {
            one.type: f"{one.type} is {_WORDS[one.holds]}: {one.reason} {one.message}".strip()
            for one in said.conditions
        }
        texts |= {
            gpu.uuid: f"GPU {gpu.index} is {gpu.phase}" + (f": {gpu.reason}" if gpu.reason else "")
            for gpu in said.gpus
            if gpu.phase not in _PASSING
        }
        for key, text in texts.items():
            if self._logged.get(key) != text:
                _LOG.info("%s", text, extra={"gpu": key if key.startswith("GPU-") else ""})
        self._logged |= texts

    def _write(self, said: AgentStatus, at: float) -> None:
        """Write the state file when something has changed, and now and then to show life."""
        without_time = replace(said, at="")
        if without_time == self._written and at - self._written_at < _STALE_SECONDS / 4:
            return
        self._written, self._written_at = without_time, at
        try:
            agent_state.write(self.settings.state, self._text(said))
        except PartitaError as error:
            if self._logged.get("state") != error.message:
                _LOG.warning("%s", error.message)
            self._logged["state"] = error.message

    def _now(self) -> str:
        return self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _text(self, said: AgentStatus) -> str:
        return json.dumps(agent_status.document(said), ensure_ascii=False, indent=1) + "\n"

    def healthz(self) -> tuple[int, str, str]:
        """Tell whether the loop goes round."""
        looked_at = self.looked_at
        if looked_at is None or self.clock.monotonic() - looked_at < _STALE_SECONDS:
            return 200, "text/plain", "ok\n"
        return 503, "text/plain", "the agent has not looked at the node for a minute\n"

    def readyz(self) -> tuple[int, str, str]:
        """Tell whether the node's GPUs are served."""
        ready = self.said.condition("Ready") if self.said is not None else None
        if ready is not None and ready.holds:
            return 200, "text/plain", "ok\n"
        why = f"{ready.reason}: {ready.message}" if ready is not None else "Starting"
        return 503, "text/plain", f"{why}\n"

    def status(self) -> tuple[int, str, str]:
        """Return what the agent says of itself."""
        if self.said is None:
            return 503, "text/plain", "Starting\n"
        return 200, "application/json", self._text(self.said)


async def _until_one_ends(loop: asyncio.Task[None], end: asyncio.Task[object]) -> None:
    """Wait for the end; a loop that ends by itself met a fault, and the program ends with it."""
    await asyncio.wait([loop, end], return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if loop.done():
        loop.result()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
