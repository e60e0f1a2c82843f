"""Which device was promised to a container, and which no container may get any more.

A request is granted or refused in one go, with no other request and no ``retire`` in between: there
is nothing to wait for in here.
"""

from collections.abc import Collection, Mapping, Sequence

from partita.ports.clock import Clock
from partita.ports.slice_server import REFUSED_GONE, REFUSED_MANY, REFUSED_RETIRED, Offer

__all__ = ["Ledger", "Refusal"]


class Refusal(Exception):  # noqa: N818 - not an error of ours: the kubelet asks for what is not
    """When a container asks for what it cannot get; the text is for the events of the pod."""


class Ledger:
    """Promises and retirements, by device ID."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._promised: dict[str, float] = {}
        self._retired: set[str] = set()

    @property
    def promised(self) -> Mapping[str, float]:
        """Device ID → monotonic time of the last promise; a copy."""
        return dict(self._promised)

    def grant(self, offer: Offer, containers: Sequence[Sequence[str]]) -> None:
        """Promise the devices of every container, or none.

        A device that new pods should not get is granted all the same while it exists: the kubelet
        may have chosen it before it heard.

        Raises:
            Refusal: When a device is not offered or retired, or a container asks for too many.
        """
        for device_ids in containers:
            self._check(offer, device_ids)
        now = self._clock.monotonic()
        self._promised |= {name: now for device_ids in containers for name in device_ids}

    def retire(self, device_ids: Collection[str]) -> bool:
        """Refuse these from now on, unless one of them is promised."""
        if not self._promised.keys().isdisjoint(device_ids):
            return False
        self._retired.update(device_ids)
        return True

    def revive(self, device_ids: Collection[str]) -> None:
        """Grant these again."""
        self._retired.difference_update(device_ids)

    def keep(self, device_ids: Collection[str]) -> None:
        """Forget the retirement of what is neither among these, the offered ones, nor promised.

        It is refused all the same, for it is not offered; IDs of destroyed slices never come back.
        """
        self._retired.intersection_update({*device_ids, *self._promised})

    def forget(self, promised: Mapping[str, float]) -> None:
        """Drop promises that were not made again after the time given."""
        for name, time in promised.items():
            if self._promised.get(name, time) <= time:
                self._promised.pop(name, None)

    def _check(self, offer: Offer, device_ids: Sequence[str]) -> None:
        offered = {one.slice.device_id for one in offer.slices}
        for name in device_ids:
            if name not in offered:
                raise Refusal(f"{REFUSED_GONE}: {name}")
            if name in self._retired:
                raise Refusal(f"{REFUSED_RETIRED}: {name}")
        if offer.one_each and len(device_ids) > 1:
            raise Refusal(
                f"{REFUSED_MANY}; set the limit of each container to 1, not: {len(device_ids)}"
            )
