"""Which of the free slices a container is best given. Pure.

Slices that are to go come last, so that they become free. Whole GPUs and MIG devices are packed:
the GPU with the fewest free slices first, so that others stay whole or can be cut anew. Shared
slots are spread: the device with the fewest slots in use first (or packed, if so configured), and
a container that asks for several gets them on different devices, and those on different GPUs, as
long as there are any.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from partita.config.serving_options import SharedDevicesPolicy
from partita.ports.slice_server import OfferedSlice, PreferenceRequest

__all__ = ["Preference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What is preferred.

    Attributes:
        shared: How shared slots are given out.
    """

    shared: SharedDevicesPolicy = SharedDevicesPolicy.DISTRIBUTED

    def __call__(self, request: PreferenceRequest) -> Sequence[str]:
        """Return the preferred device IDs, as many as are asked for, as far as there are any."""
        offered = {one.slice.device_id: one for one in request.offer.slices}
        chosen = list(request.must_include)
        free = [one for one in request.available if one in offered and one not in chosen]
        while len(chosen) < request.count and free:
            best = min(free, key=self._order(offered, frozenset(free), chosen))
            chosen.append(best)
            free.remove(best)
        return chosen

    def _order(
        self, offered: Mapping[str, OfferedSlice], free: frozenset[str], chosen: Sequence[str]
    ) -> Callable[[str], tuple[int, ...]]:
        """Return the order in which free slices are preferred; the smallest is best."""
        mine = [offered[name].slice for name in chosen if name in offered]
        nodes = {one.numa_node for one in mine}
        on_device = Counter(one.device for one in mine)
        on_gpu = Counter(one.gpu_uuid for one in mine)
        free_of_gpu = Counter(offered[name].slice.gpu_uuid for name in free)
        given = (one.slice for name, one in offered.items() if one.usable and name not in free)
        in_use = Counter(one.device for one in given)
        turn = -1 if self.shared is SharedDevicesPolicy.PACKED else 1

        def rank(name: str) -> tuple[int, ...]:
            one, leaving = offered[name].slice, int(offered[name].leaving)
            elsewhere = int(bool(nodes) and one.numa_node not in nodes)
            place = (elsewhere, one.gpu_index, one.instance_id or 0, one.slot or 0)
            if one.slot is None:
                return (leaving, free_of_gpu[one.gpu_uuid], *place)
            others = in_use[one.device] - on_device[one.device]
            return (on_device[one.device], on_gpu[one.gpu_uuid], leaving, turn * others, *place)

        return rank
