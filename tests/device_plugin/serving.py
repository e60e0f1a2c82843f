"""Servers for the tests, and slices to offer."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.device_plugin.kubelet_side import KubeletSide

from partita.adapters.device_plugin.calls import Objection, Prefer
from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.node_files import NodeRoots
from partita.adapters.device_plugin.registration import Pace
from partita.adapters.device_plugin.server import DevicePluginServer, Hooks
from partita.config.serving_options import ServingOptions
from partita.model.slice import Slice, slot_id
from partita.ports.slice_server import Offer, OfferedSlice, PreferenceRequest

__all__ = [
    "GPU",
    "HEALTHY",
    "MIG",
    "PACE",
    "UNHEALTHY",
    "ManualClock",
    "heard",
    "names_in",
    "offer",
    "serving",
    "shared",
]

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"

PACE = Pace(
    poll=0.02, first_pause=0.01, longest_pause=0.05, register=5, listen=0.5, take=1, last_words=0.5
)


@dataclasses.dataclass
class ManualClock:
    """A clock that stands still until a test moves it."""

    seconds: float = 100.0

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.seconds

    def now(self) -> datetime:
        """Return the seconds as a time of day."""
        return datetime.fromtimestamp(self.seconds, UTC)


def offer(
    *device_ids: str,
    resource: str = GPU,
    unusable: Sequence[str] = (),
    numa_node: int | None = None,
    one_each: bool = False,
) -> Offer:
    """Return an offer of slices with these device IDs; ``unusable`` ones come last."""
    return Offer(
        resource=resource,
        one_each=one_each,
        slices=tuple(
            OfferedSlice(
                slice=Slice(
                    device_id=name,
                    resource=resource,
                    gpu_uuid=name,
                    gpu_index=0,
                    minor=0,
                    numa_node=numa_node,
                ),
                usable=name not in unusable,
            )
            for name in (*device_ids, *unusable)
        ),
    )


def shared(device: str, slots: int, *, one_each: bool = False) -> Offer:
    """Return an offer of the slots of one device."""
    return offer(*(slot_id(device, number) for number in range(slots)), one_each=one_each)


def _first(request: PreferenceRequest) -> Sequence[str]:
    return request.available[: request.count]


async def _none(_: Sequence[str]) -> str | None:
    return None


@contextlib.asynccontextmanager
async def serving(
    folder: Path,
    *offers: Offer,
    kubelet: KubeletSide | None = None,
    clock: ManualClock | None = None,
    prefer: Prefer = _first,
    pace: Pace = PACE,
    objection: Objection | None = None,
) -> AsyncIterator[tuple[DevicePluginServer, KubeletSide]]:
    """Serve offers to a kubelet, which runs and listens to all of them unless it is given."""
    side = kubelet or KubeletSide(folder)
    server = DevicePluginServer(
        folder,
        clock or ManualClock(),
        prefer,
        Delivery(ServingOptions(), NodeRoots(), cdi_folder=folder / "cdi"),
        hooks=Hooks(
            objection=objection or _none, on_change=side.moved.send, on_promise=side.moved.send
        ),
        pace=pace,
    )
    if kubelet is None:
        await side.start()
    await server.start()
    await server.offer(offers)
    try:
        if kubelet is None:
            await side.until(lambda: heard(server) and len(side.lists) == len(offers))
        yield server, side
    finally:
        await server.close()
        await side.stop()


def heard(server: DevicePluginServer) -> bool:
    """Tell whether everything that is offered was delivered."""
    return all(one.delivered for one in server.state().sessions.values())


def names_in(folder: Path) -> set[str]:
    """Return what lies in a folder."""
    return {path.name for path in folder.iterdir()}
