"""Seeded fleets that look lived in: GPUs cut over time, partly held, with pods that wait."""

import random
from collections import Counter

from partita.catalog import library
from partita.catalog.gpu_model import GpuModel, Profile
from partita.catalog.legality import Slot, is_legal
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.model.node import Node
from partita.model.pod import Phase, Pod
from partita.model.resource import mig_resource

__all__ = ["make"]

_MODELS = {"a100-40gb-sxm4": 3, "a100-80gb-sxm4": 3, "h100-80gb-sxm5": 3, "a30": 1}
_GPUS_PER_NODE = 8
_MIG_OFF = 0.3  # share of GPUs
_CUT_ATTEMPTS = 8  # placements tried at random while a GPU's past is made up; most do not fit
_GONE = 0.35  # share of instances that were destroyed again, which leaves holes
_HELD = 0.5  # share of the instances that stand
_PODS_PER_GPU = 1.86  # in the mean; a little more than fits, so that some pods stay out


def make(gpu_count: int, seed: int) -> Fleet:
    """Return a fleet of ``gpu_count`` GPUs on nodes of eight; equal arguments, equal fleet."""
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    gpus: list[Gpu] = []
    running: list[Pod] = []
    pending: list[Pod] = []
    for number in range(gpu_count):
        model = library.get(rng.choices(list(_MODELS), list(_MODELS.values()))[0])
        gpu = _gpu(rng, model, node=f"node-{number // _GPUS_PER_NODE:04}", index=number % 8)
        gpus.append(gpu)
        running += _holders(gpu)
        for _ in range(3):
            if rng.random() < _PODS_PER_GPU / 3:
                profile = rng.choice(_profiles(model)).name
                pending.append(_pod(f"waiting-{len(pending):05}", profile))
    nodes = tuple(Node(name=name) for name in dict.fromkeys(gpu.node for gpu in gpus))
    return Fleet(nodes=nodes, gpus=tuple(gpus), pods=(*running, *pending), held=_held(gpus))


def _gpu(rng: random.Random, model: GpuModel, *, node: str, index: int) -> Gpu:
    cut = rng.random() >= _MIG_OFF
    return Gpu(
        node=node,
        index=index,
        product=model.names[0],
        model=model.id,
        mig_mode=MigMode.ON if cut else MigMode.OFF,
        instances=_instances(rng, model, f"{node}-{index}") if cut else (),
        memory_mib=model.memory_mib,
    )


def _instances(rng: random.Random, model: GpuModel, name: str) -> tuple[GpuInstance, ...]:
    slots: list[Slot] = []
    for _ in range(rng.randint(0, _CUT_ATTEMPTS)):
        profile = rng.choice(_profiles(model))
        slot = Slot(placement=rng.choice(profile.placements), profile=profile.name)
        if model.mig is not None and is_legal(model.mig, [*slots, slot]):
            slots.append(slot)
    left = sorted(slot for slot in slots if rng.random() >= _GONE)
    return tuple(_instance(slot, name, held=rng.random() < _HELD) for slot in left)


def _instance(slot: Slot, name: str, *, held: bool) -> GpuInstance:
    return GpuInstance(
        profile=slot.profile,
        candidates=(slot.placement,),
        hold=Hold.HELD if held else Hold.FREE,
        holders=(f"bench/running-{name}-{slot.placement.start}",) if held else (),
    )


def _profiles(model: GpuModel) -> tuple[Profile, ...]:
    """The profiles without media variants, which few ask for."""
    profiles = model.mig.profiles if model.mig is not None else ()
    return tuple(profile for profile in profiles if "+" not in profile.name)


def _pod(name: str, profile: str) -> Pod:
    return Pod(namespace="bench", name=name, requests={mig_resource(profile): 1})


def _holders(gpu: Gpu) -> list[Pod]:
    return [
        Pod(
            namespace="bench",
            name=holder.removeprefix("bench/"),
            requests={mig_resource(instance.profile): 1},
            node=gpu.node,
            gpu_index=gpu.index,
            phase=Phase.RUNNING,
        )
        for instance in gpu.instances
        for holder in instance.holders
    ]


def _held(gpus: list[Gpu]) -> dict[tuple[str, str], int]:
    """Per node and resource that has slices there: how many are in use."""
    held: Counter[tuple[str, str]] = Counter()
    for gpu in gpus:
        for instance in gpu.instances:
            held[gpu.node, mig_resource(instance.profile)] += int(instance.hold.pinned)
    return dict(held)
