"""Whatever stands on a GPU, what is concluded from a report never excludes it."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from partita.catalog import legality, library
from partita.catalog.gpu_model import GpuModel, MigCapability
from partita.catalog.legality import Slot
from partita.inventory import assembly
from partita.model.gpu import ComputeInstance, Gpu, Hold, MigMode
from partita.model.node import Node
from partita.model.pod import Phase, Pod
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation
from partita.model.resource import mig_resource

_MODELS = [m for m in library.models() if m.mig is not None]

# Ids as published listings show them: by half, then by quarter, then by eighth of the board.
_EIGHTHS = {
    "A": {"0:8": 0, "0:4": 1, "4:4": 2, "0:2": 3, "2:2": 4, "4:2": 5, "6:2": 6},
    "B": {"0:8": 0, "0:4": 2, "4:4": 1, "0:2": 5, "2:2": 6, "4:2": 3, "6:2": 4},
}
_FIRST_EIGHTHS = {"A": (7, 8, 9, 10, 11, 12, 13, 14), "B": (11, 12, 13, 14, 7, 8, 9, 10)}
_QUARTERS = {
    4: {"0:4": 0, "0:2": 1, "2:2": 2, "0:1": 3, "1:1": 4, "2:1": 5, "3:1": 6},
    12: {"0:12": 0, "0:6": 1, "6:6": 2, "0:3": 3, "3:3": 4, "6:3": 5, "9:3": 6},
    2: {"0:2": 0, "0:1": 1, "1:1": 2},
}


def _id(mig: MigCapability, slot: Slot, numbering: str) -> int:
    if mig.memory_slices != 8:
        return _QUARTERS[mig.memory_slices][str(slot.placement)]
    if slot.placement.size == 1:
        return _FIRST_EIGHTHS[numbering][slot.placement.start]
    return _EIGHTHS[numbering][str(slot.placement)]


def _mig(model: GpuModel) -> MigCapability:
    assert model.mig is not None
    return model.mig


@st.composite
def _layouts(draw: st.DrawFn) -> tuple[GpuModel, list[Slot]]:
    """A model and a legal layout of it."""
    model = draw(st.sampled_from(_MODELS))
    mig = _mig(model)
    slots = [
        Slot(placement=placement, profile=profile.name)
        for profile in mig.profiles
        for placement in profile.placements
    ]
    standing: list[Slot] = []
    for slot in draw(st.permutations(slots)):
        if legality.is_legal(mig, [*standing, slot]):
            standing.append(slot)
    return model, standing[: draw(st.integers(0, len(standing)))]


def _as_xml(mig: MigCapability, slot: Slot, numbering: str) -> InstanceReport:
    profile = mig.by_name[slot.profile]
    return InstanceReport(
        instance_id=_id(mig, slot, numbering),
        memory_mib=profile.memory_mib,
        decoder_count=profile.engines.decoder,
        copy_engine_count=profile.engines.copy,
        jpeg_count=profile.engines.jpeg,
        compute_instances=(ComputeInstance(instance_id=0, sm_count=profile.sm_count),),
    )


def _observation(
    model: GpuModel, listed: Sequence[InstanceReport], *pods: Pod, node: Node | None = None
) -> Observation:
    gpu = GpuReport(
        index=0,
        product=model.names[0],
        uuid="GPU-0",
        mig_mode=MigMode.ON,
        instances=tuple(listed),
    )
    report = NodeReport(node="n", source="n.xml", gpus=(gpu,))
    return Observation(
        reports=(report,),
        pods=pods,
        pod_namespaces=frozenset({"ml", "kube-system"}),
        nodes=(node,) if node is not None else (),
    )


def _fits(gpu: Gpu, slots: Sequence[Slot]) -> bool:
    """Whether the slots can be matched one to one to instances that may be them."""
    if not slots:
        return True
    first, *others = slots
    for position, instance in enumerate(gpu.instances):
        if first.profile == instance.profile and first.placement in instance.candidates:
            rest = gpu.instances[:position] + gpu.instances[position + 1 :]
            if _fits(Gpu(node="", index=0, product="", model=None, instances=rest), others):
                return True
    return False


@settings(deadline=None)  # the first example reads the catalogue
@given(_layouts(), st.sampled_from("AB"))
def test_the_xml_never_excludes_what_stands(
    layout: tuple[GpuModel, list[Slot]], numbering: str
) -> None:
    """Placement and profile are among the candidates; a profile that is not sure is pinned."""
    model, standing = layout
    mig = _mig(model)
    truth = {_id(mig, slot, numbering): slot for slot in standing}
    listed = [_as_xml(mig, slot, numbering) for slot in standing]
    (gpu,) = assembly.assemble([_observation(model, listed)]).gpus
    assert len(gpu.instances) == len(standing)
    for instance in gpu.instances:
        assert instance.instance_id is not None
        slot = truth[instance.instance_id]
        assert slot.placement in instance.candidates
        if instance.profile != slot.profile:
            assert instance.hold is Hold.POSSIBLE
            assert any(slot.profile in note for note in gpu.notes)


@settings(deadline=None)  # the first example reads the catalogue
@given(_layouts())
def test_names_alone_never_exclude_what_stands(layout: tuple[GpuModel, list[Slot]]) -> None:
    """Every instance may be where it is, wherever the others are."""
    model, standing = layout
    listed = [
        InstanceReport(
            profile=slot.profile,
            compute_instances=(ComputeInstance(instance_id=0, uuid=f"MIG-{number}"),),
        )
        for number, slot in enumerate(standing)
    ]
    (gpu,) = assembly.assemble([_observation(model, listed)]).gpus
    by_uuid = {i.compute_instances[0].uuid: i for i in gpu.instances}
    for number, slot in enumerate(standing):
        instance = by_uuid[f"MIG-{number}"]
        assert (instance.profile, slot.placement in instance.candidates) == (slot.profile, True)


@settings(deadline=None)  # the first example reads the catalogue
@given(_layouts())
def test_counts_never_exclude_what_stands(layout: tuple[GpuModel, list[Slot]]) -> None:
    """Slices that a node only counts can be matched to what stands."""
    model, standing = layout
    counts = Counter(mig_resource(slot.profile) for slot in standing)
    labels = {
        "nvidia.com/gpu.product": model.names[0].replace(" ", "-"),
        "nvidia.com/gpu.count": "1",
    }
    node = Node(name="n", labels=labels, allocatable=dict(counts))
    (gpu,) = assembly.assemble([Observation(nodes=(node,))]).gpus
    assert len(gpu.instances) == len(standing)
    assert _fits(gpu, standing)


@settings(deadline=None)  # the first example reads the catalogue
@given(_layouts(), st.data())
def test_a_held_slice_is_never_free(
    layout: tuple[GpuModel, list[Slot]], data: st.DataObject
) -> None:
    """Whichever slices pods hold, none of them is concluded to be free."""
    model, standing = layout
    held = [slot for slot in standing if data.draw(st.booleans())]
    pods = [
        Pod(
            namespace="ml",
            name=f"p{number}",
            requests={mig_resource(slot.profile): 1},
            node="n",
            phase=Phase.RUNNING,
        )
        for number, slot in enumerate(held)
    ]
    listed = [InstanceReport(profile=s.profile, placement=s.placement) for s in standing]
    fleet = assembly.assemble([_observation(model, listed, *pods)])
    holds = {(i.profile, i.placement): i.hold for i in fleet.gpus[0].instances}
    assert [slot for slot in held if holds[slot.profile, slot.placement] is Hold.FREE] == []
    for name in {mig_resource(slot.profile) for slot in standing}:
        expected = sum(1 for slot in held if mig_resource(slot.profile) == name)
        assert fleet.held["n", name] == expected
