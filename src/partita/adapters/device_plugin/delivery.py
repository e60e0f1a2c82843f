"""How devices get into containers on this node: options, device nodes, and the CDI file."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from partita.adapters.device_plugin import cdi, node_files, response
from partita.adapters.device_plugin.node_files import DeviceNodes, NodeRoots
from partita.config.serving_options import ServingOptions
from partita.model.slice import Slice
from partita.wire import device_plugin

__all__ = ["Delivery"]

_LOG = logging.getLogger(__name__)


class Delivery:
    """Prepares what the options ask for, and says how a container gets its slices.

    A device that cannot be prepared is a problem that is logged, never one of the other devices.
    """

    def __init__(
        self,
        options: ServingOptions,
        roots: NodeRoots,
        *,
        cdi_folder: Path = Path("/var/run/cdi"),
    ) -> None:
        """Prepare nothing yet.

        Args:
            options: How containers are told of their devices.
            roots: Where the files of the node are.
            cdi_folder: Where the CDI file is written.
        """
        self._options = options
        self._roots = roots
        self._cdi_folder = cdi_folder
        self._needs_nodes = options.uses_cdi or options.pass_device_specs
        self._nodes = DeviceNodes()
        self._undeliverable: dict[str, str] = {}
        self._prepared: tuple[Slice, ...] | None = None

    @property
    def undeliverable(self) -> Mapping[str, str]:
        """UUID of a device that was to be prepared and could not be → why; a copy."""
        return dict(self._undeliverable)

    def obstacle(self, device: str) -> str | None:
        """Return why no container can be given a device now, None when one can."""
        if not self._needs_nodes or device in self._nodes.by_device:
            return self._undeliverable.get(device)
        return self._undeliverable.get(device, "its device nodes were not looked for yet")

    async def prepare(self, slices: Sequence[Slice]) -> None:
        """Look for the files of all slices that are offered, and write the CDI file.

        What failed before is tried again.
        """
        if not self._needs_nodes:
            return
        if self._prepared == tuple(slices) and not self._undeliverable:
            return
        before = self._undeliverable
        self._nodes, self._undeliverable = await asyncio.to_thread(self._look, slices)
        self._prepared = tuple(slices)
        for why in dict.fromkeys(self._undeliverable.values()):
            new = [name for name, said in self._undeliverable.items() if said == why]
            new = [name for name in new if before.get(name) != why]
            if new:
                _LOG.warning("cannot be given to containers: %s: %s", ", ".join(new), why)

    def response(
        self, slices: Sequence[Slice], response_id: str
    ) -> device_plugin.ContainerAllocateResponse:
        """Return the answer to Allocate for one container."""
        return response.respond(slices, self._options, self._nodes, response_id)

    def _look(self, slices: Sequence[Slice]) -> tuple[DeviceNodes, dict[str, str]]:
        """Return the nodes that there are, and by device why it cannot be given."""
        nodes = DeviceNodes()
        try:
            nodes = node_files.devices(slices, self._roots)
            if self._options.uses_cdi:
                self._write(nodes)
        except OSError as error:
            why = f"cannot write the CDI file in {self._cdi_folder}: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is of these devices only
            why = f"its files cannot be prepared: {type(error).__name__}: {error}"
        else:
            return nodes, dict(nodes.lacking)
        return nodes, {one.device: nodes.lacking.get(one.device, why) for one in slices}

    def _write(self, nodes: DeviceNodes) -> None:
        hook = cdi.hook_on_node(self._options.nvidia_cdi_hook_path, self._roots)
        document = cdi.spec(nodes, node_files.driver_files(self._roots), hook)
        if document is not None:
            cdi.write(self._cdi_folder, document)
