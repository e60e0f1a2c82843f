"""What is concluded of GPUs and MIG instances from sources that each tell only a part."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from partita.catalog import library
from partita.inventory import assembly
from partita.model.fleet import Fleet
from partita.model.gpu import ComputeInstance, Gpu, GpuInstance, Hold, MigMode, Sharing
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.report import GpuReport, InstanceReport, NodeReport, Observation

_A100_40 = "NVIDIA A100-SXM4-40GB"
_A100_80 = "NVIDIA A100-SXM4-80GB"
_H100 = "NVIDIA H100 80GB HBM3"


def _node(
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, int] | None = None,
    capacity: Mapping[str, int] | None = None,
) -> Node:
    """A node ``n``; keys without their ``nvidia.com/``."""
    return Node(
        name="n",
        labels={f"nvidia.com/{key}": value for key, value in (labels or {}).items()},
        allocatable={f"nvidia.com/{key}": n for key, n in (allocatable or {}).items()},
        capacity={f"nvidia.com/{key}": n for key, n in (capacity or allocatable or {}).items()},
    )


def _report(*gpus: GpuReport, source: str = "n.xml") -> NodeReport:
    return NodeReport(node="n", source=source, gpus=gpus)


def _gpu(product: str, *instances: InstanceReport, index: int = 0) -> GpuReport:
    return GpuReport(
        index=index,
        product=product,
        uuid=f"GPU-{index}",
        mig_mode=MigMode.ON if instances else MigMode.OFF,
        instances=instances,
    )


def _xml(
    instance_id: int, memory_mib: int, *, sms: int, decoders: int, copies: int
) -> InstanceReport:
    return InstanceReport(
        instance_id=instance_id,
        memory_mib=memory_mib,
        decoder_count=decoders,
        copy_engine_count=copies,
        compute_instances=(ComputeInstance(instance_id=0, sm_count=sms),),
    )


def _lgi(profile: str, profile_id: int, instance_id: int, place: str) -> InstanceReport:
    return InstanceReport(
        profile=profile,
        profile_id=profile_id,
        instance_id=instance_id,
        placement=_place(place),
    )


def _place(text: str) -> Placement:
    start, size = text.split(":")
    return Placement(start=int(start), size=int(size))


def _assemble(*reports: NodeReport, nodes: Sequence[Node] = (), notes: Sequence[str] = ()) -> Fleet:
    """Assemble with a list of pods that has none."""
    observations = [Observation(reports=(report,)) for report in reports]
    said = Observation(nodes=tuple(nodes), notes=tuple(notes), pod_namespaces=frozenset())
    return assembly.assemble([said, *observations])


def _standing(gpu: Gpu) -> list[str]:
    """``profile@candidates`` of each instance, in order."""
    return [_shown(instance) for instance in gpu.instances]


def _shown(instance: GpuInstance) -> str:
    return f"{instance.profile}@{','.join(map(str, instance.candidates))}"


def _labels(product: str, count: int, **more: str) -> Mapping[str, str]:
    return {"gpu.product": product, "gpu.count": str(count), **more}


# ---- Which GPUs there are ------------------------------------------------------------------------


def test_gpus_of_several_reports_are_joined_by_index() -> None:
    """What one source leaves open another fills, and GPUs come in order."""
    listed = GpuReport(index=0, product=_A100_40, uuid="GPU-a")
    xml = GpuReport(index=0, memory_mib=40960, reserved_memory_mib=500)
    other = GpuReport(index=1, product=_A100_40, uuid="GPU-b", problem="GPU is lost")
    fleet = _assemble(_report(other, listed, source="n.list"), _report(xml, source="n.xml"))
    assert [(g.index, g.uuid, g.reserved_memory_mib) for g in fleet.gpus] == [
        (0, "GPU-a", 500),
        (1, "GPU-b", None),
    ]
    assert [g.problem for g in fleet.gpus] == [None, "GPU is lost"]


def test_contradicting_products_name_both_sources() -> None:
    """The first of two sources of equal trust counts."""
    one = GpuReport(index=0, product=_A100_40, uuid="GPU-a")
    other = GpuReport(index=0, product=_H100, uuid="GPU-a")
    fleet = _assemble(_report(one, source="a.xml"), _report(other, source="b.xml"))
    assert fleet.gpus[0].model == "a100-40gb-sxm4"
    assert [note for note in fleet.notes if "a.xml" in note and "b.xml" in note] != []


def test_the_driver_is_trusted_over_labels() -> None:
    """Product and number of GPUs come from the report; the notes name what the labels say."""
    node = _node(_labels("NVIDIA-H100-80GB-HBM3", 2))
    fleet = _assemble(_report(_gpu(_A100_40)), nodes=[node])
    assert [gpu.model for gpu in fleet.gpus] == ["a100-40gb-sxm4"]
    assert any("NVIDIA-H100-80GB-HBM3 in its label" in note for note in fleet.notes)
    assert any("label says 2 GPUs, n.xml has 1" in note for note in fleet.notes)


def test_a_list_of_instances_does_not_list_gpus() -> None:
    """``-lgi`` shows only GPUs with instances; the others are known from the labels."""
    lgi = GpuReport(index=1, mig_mode=MigMode.ON, instances=(_lgi("3g.20gb", 9, 2, "4:4"),))
    node = _node(_labels("NVIDIA-A100-SXM4-40GB", 2), {"gpu": 1, "mig-3g.20gb": 1})
    fleet = _assemble(_report(lgi, source="n.lgi"), nodes=[node])
    assert [gpu.mig_mode for gpu in fleet.gpus] == [MigMode.OFF, MigMode.ON]
    assert _standing(fleet.gpus[1]) == ["3g.20gb@4:4"]


def test_labels_alone_tell_whole_gpus() -> None:
    """Product, number and memory come from GPU feature discovery when there is no report."""
    fleet = _assemble(nodes=[_node({**_labels("Tesla-T4", 2), "gpu.memory": "15109"})])
    assert [(g.model, g.mig_mode, g.memory_mib) for g in fleet.gpus] == [
        ("t4", MigMode.UNSUPPORTED, 15109)
    ] * 2


def test_a_number_of_gpus_that_is_concluded_is_said_to_be() -> None:
    """Allocatable counts alone give the least number of GPUs that is possible."""
    counts = {"gpu": 2, "mig-1g.10gb": 6, "mig-2g.20gb": 4}
    fleet = _assemble(nodes=[_node({"gpu.product": "NVIDIA-A100-SXM4-80GB"}, counts)])
    assert len(fleet.gpus) == 4
    assert any("how many GPUs it has is not given" in note for note in fleet.notes)


def test_an_unknown_product_is_shown_and_noted() -> None:
    """Nothing follows on a board that the catalogue does not have; its instances stay alone."""
    fleet = _assemble(_report(_gpu("NVIDIA Z1", InstanceReport(profile="1g.5gb"))))
    assert (fleet.gpus[0].model, fleet.gpus[0].product) == (None, "NVIDIA Z1")
    assert fleet.gpus[0].instances[0].hold is Hold.POSSIBLE
    assert any("NVIDIA Z1 is not in the catalogue" in note for note in fleet.notes)


def test_a_pci_id_tells_the_model_too() -> None:
    """A product that NVML names in an unknown way is found by its PCI id."""
    gpu = GpuReport(index=0, product="Graphics Device", pci_device="0x20B210DE", uuid="GPU-a")
    assert _assemble(_report(gpu)).gpus[0].model == "a100-80gb-sxm4"


def test_a_node_without_gpus_stays_a_node() -> None:
    """It has no GPU and no note."""
    fleet = _assemble(nodes=[Node(name="cpu")], notes=["read"])
    assert (fleet.nodes[0].name, fleet.gpus, fleet.notes) == ("cpu", (), ("read",))


# ---- What the instances of reports are -----------------------------------------------------------


def test_four_double_memory_instances_are_at_all_quarters() -> None:
    """Memory, engines and multiprocessors tell 1g.20gb from 2g.20gb; ids tell two mirror places."""
    listed = [_xml(number, 19968, sms=14, decoders=1, copies=1) for number in (3, 4, 5, 6)]
    (gpu,) = _assemble(_report(_gpu(_A100_80, *listed))).gpus
    places = {i.instance_id: list(map(str, i.candidates)) for i in gpu.instances}
    assert {i.profile for i in gpu.instances} == {"1g.20gb"}
    assert places == {3: ["0:2", "4:2"], 4: ["2:2", "6:2"], 5: ["0:2", "4:2"], 6: ["2:2", "6:2"]}
    assert (gpu.notes, {i.hold for i in gpu.instances}) == ((), {Hold.FREE})


def test_one_instance_may_be_in_either_half() -> None:
    """The id of a 3g has two places, one for each numbering of boards."""
    listed = _xml(1, 40192, sms=42, decoders=2, copies=3)
    (gpu,) = _assemble(_report(_gpu(_A100_80, listed))).gpus
    assert _standing(gpu) == ["3g.40gb@0:4,4:4"]


def test_a_4g_settles_the_numbering() -> None:
    """A 4g starts at 0 only, so the 3g with the other id is at 4."""
    listed = (
        _xml(1, 40192, sms=42, decoders=2, copies=3),
        _xml(2, 40192, sms=56, decoders=2, copies=4),
    )
    (gpu,) = _assemble(_report(_gpu(_A100_80, *listed))).gpus
    assert _standing(gpu) == ["4g.40gb@0:4", "3g.40gb@4:4"]


def test_a_known_placement_settles_the_numbering_of_the_others() -> None:
    """All instances of a GPU follow one numbering; ``-lgi`` of one of them is enough."""
    xml = _gpu(
        _A100_80,
        _xml(13, 9728, sms=14, decoders=0, copies=1),
        _xml(1, 40192, sms=42, decoders=2, copies=3),
    )
    lgi = GpuReport(index=0, mig_mode=MigMode.ON, instances=(_lgi("1g.10gb", 19, 13, "6:1"),))
    fleet = _assemble(_report(lgi, source="n.lgi"), _report(xml))
    assert _standing(fleet.gpus[0]) == ["3g.40gb@0:4", "1g.10gb@6:1"]
    assert any("instance 1 is in n.xml, not in n.lgi" in note for note in fleet.notes)


def test_boards_with_one_known_numbering_need_no_second_source() -> None:
    """On an A30 the ids tell the places."""
    listed = [_xml(n, 5952, sms=14, decoders=1, copies=1) for n in (3, 4)]
    listed.append(_xml(2, 11968, sms=28, decoders=2, copies=2))
    without_jpeg = [replace(instance, jpeg_count=0) for instance in listed]
    (gpu,) = _assemble(_report(_gpu("NVIDIA A30", *without_jpeg))).gpus
    assert _standing(gpu) == ["1g.6gb@0:1", "1g.6gb@1:1", "2g.12gb@2:2"]


def test_a_split_instance_shows_fewer_multiprocessors() -> None:
    """Two compute instances of a 3g with one third each do not make it a 2g."""
    parts = tuple(ComputeInstance(instance_id=n, sm_count=14) for n in (0, 1))
    listed = InstanceReport(
        instance_id=1, memory_mib=19968, copy_engine_count=3, compute_instances=parts
    )
    (gpu,) = _assemble(_report(_gpu(_A100_40, listed))).gpus
    assert _standing(gpu) == ["3g.20gb@0:4,4:4"]


def test_profiles_that_look_the_same_are_left_alone() -> None:
    """The XML does not tell ``+me`` on Hopper; the likelier one is shown, pinned, with a note."""
    listed = [_xml(n, 9984, sms=16, decoders=1, copies=1) for n in (7, 8)]
    (gpu,) = _assemble(_report(_gpu(_H100, *listed))).gpus
    assert [(i.profile, i.hold) for i in gpu.instances] == [("1g.10gb", Hold.POSSIBLE)] * 2
    assert "1g.10gb or 1g.10gb+me" in gpu.notes[0]


def test_what_the_node_offers_decides_between_look_alikes() -> None:
    """A node that serves no ``+me`` slice has none."""
    listed = [_xml(n, 9984, sms=16, decoders=1, copies=1) for n in (7, 8)]
    node = _node({"mig.strategy": "mixed"}, {"gpu": 0, "mig-1g.10gb": 2})
    (gpu,) = _assemble(_report(_gpu(_H100, *listed)), nodes=[node]).gpus
    assert ([i.hold for i in gpu.instances], gpu.notes) == ([Hold.FREE] * 2, ())


def test_names_of_other_drivers_are_understood() -> None:
    """The number in a profile name differs between drivers."""
    listed = (InstanceReport(profile="1g.11gb"), InstanceReport(profile="3g.44gb"))
    (gpu,) = _assemble(_report(_gpu("NVIDIA H100 NVL", *listed))).gpus
    assert [i.profile for i in gpu.instances] == ["1g.12gb", "3g.47gb"]


def test_instances_without_id_may_be_wherever_it_is_legal() -> None:
    """Names alone: a 3g beside four 1g is at 4; which 1g is which is not known."""
    listed = [
        InstanceReport(
            profile=profile,
            compute_instances=(ComputeInstance(instance_id=0, uuid=f"MIG-{number}"),),
        )
        for number, profile in enumerate(["3g.40gb", *["1g.10gb"] * 4])
    ]
    (gpu,) = _assemble(_report(_gpu(_H100, *listed))).gpus
    assert _standing(gpu) == ["3g.40gb@4:4", *["1g.10gb@0:1,1:1,2:1,3:1"] * 4]


def test_instances_that_cannot_stand_together_are_left_alone() -> None:
    """Two 4g are never on one GPU; some of the input is wrong, so nothing is touched."""
    listed = (_lgi("4g.20gb", 5, 1, "0:4"), _lgi("4g.20gb", 5, 2, "4:4"))
    (gpu,) = _assemble(_report(_gpu(_A100_40, *listed))).gpus
    assert [i.hold for i in gpu.instances] == [Hold.POSSIBLE] * 2
    assert "cannot stand together" in gpu.notes[0]


def test_uuids_come_from_the_list_and_ids_from_the_xml() -> None:
    """``nvidia-smi -L`` names devices in the order of the XML."""
    xml = _gpu(
        _A100_40,
        _xml(2, 19968, sms=42, decoders=2, copies=3),
        _xml(3, 9856, sms=28, decoders=1, copies=2),
    )
    devices = [ComputeInstance(instance_id=0, uuid=f"MIG-{n}") for n in (0, 1)]
    names = [
        InstanceReport(profile=name, compute_instances=(device,))
        for name, device in zip(["3g.20gb", "2g.10gb"], devices, strict=True)
    ]
    fleet = _assemble(_report(_gpu(_A100_40, *names), source="n.list"), _report(xml))
    found = {i.instance_id: i.compute_instances[0] for i in fleet.gpus[0].instances}
    assert found == {
        2: ComputeInstance(instance_id=0, uuid="MIG-0", sm_count=42),
        3: ComputeInstance(instance_id=0, uuid="MIG-1", sm_count=28),
    }


def test_a_mode_change_that_waits_for_a_reset_is_kept() -> None:
    """Pending mode is shown only where it differs."""
    on, off = MigMode.ON, MigMode.OFF
    waiting = GpuReport(index=0, product=_A100_40, mig_mode=off, pending_mig_mode=on)
    settled = GpuReport(index=1, product=_A100_40, mig_mode=off, pending_mig_mode=off)
    fleet = _assemble(_report(waiting, settled))
    assert [gpu.pending_mig_mode for gpu in fleet.gpus] == [on, None]


def test_unknown_instances_freeze_the_gpu() -> None:
    """MIG is on and nobody lists what stands: the GPU cannot be planned."""
    gpu = GpuReport(index=0, product=_A100_40, uuid="GPU-a", mig_mode=MigMode.ON)
    (found,) = _assemble(_report(gpu)).gpus
    assert found.problem is not None
    assert "nvidia-smi mig -lgi" in found.problem


# ---- Layouts in annotations ----------------------------------------------------------------------


def _annotation(*parts: str) -> NodeReport:
    listed = []
    for part in parts:
        profile, place = part.split("@")
        listed.append(InstanceReport(profile=profile, placement=_place(place)))
    gpu = GpuReport(index=0, product=_A100_40, mig_mode=MigMode.ON, instances=tuple(listed))
    return _report(gpu, source="nodes.json")


def test_a_layout_that_the_counts_confirm_is_known() -> None:
    """Placements come from the annotation; the slice that is capacity only is gone."""
    layout = _annotation("2g.10gb@0:2", "1g.5gb@4:1", "1g.5gb@6:1")
    node = _node(
        _labels("NVIDIA-A100-SXM4-40GB", 1),
        {"mig-2g.10gb": 1, "mig-1g.5gb": 2, "mig-3g.20gb": 0},
        {"mig-2g.10gb": 1, "mig-1g.5gb": 2, "mig-3g.20gb": 1},
    )
    fleet = _assemble(layout, nodes=[node])
    assert _standing(fleet.gpus[0]) == ["2g.10gb@0:2", "1g.5gb@4:1", "1g.5gb@6:1"]
    assert {i.hold for i in fleet.gpus[0].instances} == {Hold.FREE}
    assert fleet.notes == (
        "node n: 1 of 1 nvidia.com/mig-3g.20gb are gone or unhealthy, only allocatable counts: 0",
    )


def test_a_layout_that_the_counts_deny_is_left_alone() -> None:
    """An annotation is a wish; what the node offers tells that it is not what stands."""
    node = _node(_labels("NVIDIA-A100-SXM4-40GB", 1), {"mig-1g.5gb": 3})
    fleet = _assemble(_annotation("2g.10gb@0:2", "1g.5gb@4:1"), nodes=[node])
    assert {i.hold for i in fleet.gpus[0].instances} == {Hold.POSSIBLE}
    assert any("the node offers 3 mig-1g.5gb" in note for note in fleet.notes)


def test_a_layout_settles_the_numbering_of_the_xml() -> None:
    """An annotation that agrees with the driver's list tells placements."""
    xml = _gpu(_A100_40, _xml(1, 19968, sms=42, decoders=2, copies=3))
    fleet = _assemble(_annotation("3g.20gb@4:4"), _report(xml))
    assert _standing(fleet.gpus[0]) == ["3g.20gb@4:4"]


def test_a_layout_that_the_driver_denies_is_ignored() -> None:
    """The driver's list stays, with a note."""
    xml = _gpu(_A100_40, _xml(3, 9856, sms=28, decoders=1, copies=2))
    fleet = _assemble(_annotation("3g.20gb@4:4"), _report(xml))
    assert _standing(fleet.gpus[0]) == ["2g.10gb@0:2,4:2"]
    assert any("layout that the node object tells" in note for note in fleet.gpus[0].notes)


# ---- Slices that are only counted ----------------------------------------------------------------


def test_counts_with_one_answer_are_known_exactly() -> None:
    """56 slices on 8 boards are seven on each, at every place."""
    node = _node(_labels("NVIDIA-A100-SXM4-40GB", 8), {"mig-1g.5gb": 56})
    fleet = _assemble(nodes=[node])
    seven = [f"1g.5gb@{start}:1" for start in range(7)]
    assert [_standing(gpu) for gpu in fleet.gpus] == [seven] * 8
    assert {i.hold for gpu in fleet.gpus for i in gpu.instances} == {Hold.FREE}
    assert fleet.notes == ()


def test_old_counts_are_told_from_real_ones() -> None:
    """8 whole, 56 small and 8 full slices are never on 8 boards; only the 56 may be real."""
    counts = {"gpu": 8, "mig-1g.5gb": 56, "mig-7g.40gb": 8}
    fleet = _assemble(nodes=[_node(_labels("NVIDIA-A100-SXM4-40GB", 8), counts)])
    profiles = [{i.profile for i in gpu.instances} for gpu in fleet.gpus]
    assert profiles == [{"1g.5gb"}] * 8
    assert "8 mig-7g.40gb" in fleet.notes[0]
    assert fleet.notes[0].endswith("56 mig-1g.5gb")
    # Other counts could be the real ones, so nothing may be touched.
    assert {i.hold for gpu in fleet.gpus for i in gpu.instances} == {Hold.POSSIBLE}


def test_labels_tell_which_counts_are_real() -> None:
    """A count that GPU feature discovery confirms is not a leftover, so the slices are free."""
    labels = {**_labels("NVIDIA-A100-SXM4-40GB", 8), "mig-1g.5gb.count": "56"}
    fleet = _assemble(nodes=[_node(labels, {"gpu": 8, "mig-1g.5gb": 56, "mig-7g.40gb": 8})])
    assert {i.hold for gpu in fleet.gpus for i in gpu.instances} == {Hold.FREE}
    assert "only these can be real: 56 mig-1g.5gb" in fleet.notes[0]


def test_counts_with_several_answers_leave_everything_alone() -> None:
    """6 x 1g and 4 x 2g on two of four boards: every slice may be anywhere on its board."""
    counts = {"gpu": 2, "mig-1g.10gb": 6, "mig-2g.20gb": 4, "mig-3g.40gb": 0}
    fleet = _assemble(nodes=[_node(_labels("NVIDIA-A100-SXM4-80GB", 4), counts)])
    assert sorted(gpu.mig_mode.value for gpu in fleet.gpus) == ["off", "off", "on", "on"]
    found = [i for gpu in fleet.gpus for i in gpu.instances]
    assert len(found) == 10
    assert {i.hold for i in found} == {Hold.POSSIBLE}
    assert {gpu.hold for gpu in fleet.gpus if not gpu.instances} == {Hold.POSSIBLE}
    assert all(len(i.candidates) == (7 if i.profile == "1g.10gb" else 3) for i in found)
    assert all("nvidia-smi mig -lgi" in gpu.notes[0] for gpu in fleet.gpus)


def test_one_gpu_may_be_cut_in_several_ways() -> None:
    """2 x 1g, 2g and 3g on one Hopper: the 3g is at 4, the others are in the other half."""
    labels = {
        **_labels("NVIDIA-H100-80GB-HBM3", 1),
        "mig.strategy": "mixed",
        "mig-1g.10gb.count": "2",
        "mig-2g.20gb.count": "1",
        "mig-3g.40gb.count": "1",
    }
    (gpu,) = _assemble(nodes=[_node(labels)]).gpus
    assert gpu.mig_mode is MigMode.ON
    assert sorted(_standing(gpu)) == [
        "1g.10gb@0:1,2:1",
        "1g.10gb@1:1,3:1",
        "2g.20gb@0:2,2:2",
        "3g.40gb@4:4",
    ]


def test_which_of_unequal_gpus_is_which_is_said_to_be_unknown() -> None:
    """One of two boards is whole; the counts do not tell which."""
    counts = {"gpu": 1, "mig-1g.5gb": 7}
    fleet = _assemble(nodes=[_node(_labels("NVIDIA-A100-SXM4-40GB", 2), counts)])
    assert [len(gpu.instances) for gpu in fleet.gpus] == [0, 7]
    assert all("which of the node's GPUs" in gpu.notes[0] for gpu in fleet.gpus)


def test_slices_beyond_any_layout_freeze_the_gpus() -> None:
    """Eight 1g are on no single board."""
    fleet = _assemble(nodes=[_node(_labels("NVIDIA-A100-SXM4-40GB", 1), {"mig-1g.5gb": 8})])
    assert (fleet.gpus[0].instances, fleet.gpus[0].problem is None) == ((), False)
    assert "some may be old" in fleet.notes[0]


@pytest.mark.parametrize("boards", [16, 64])
def test_many_gpus_are_no_burden(boards: int) -> None:
    """The search is bounded, whatever the counts."""
    counts = {
        "gpu": 1,
        "mig-1g.5gb": 3 * boards - 1,
        "mig-1g.10gb": boards // 2,
        "mig-2g.10gb": boards - 3,
        "mig-3g.20gb": boards // 3,
    }
    fleet = _assemble(nodes=[_node(_labels("NVIDIA-A100-SXM4-40GB", boards), counts)])
    assert len(fleet.gpus) == boards


def test_empty_mig_gpus_of_a_mixed_node_are_empty() -> None:
    """MIG on, no slice offered under strategy mixed: there is none."""
    labels = {
        **_labels("NVIDIA-A100-SXM4-40GB", 1),
        "mig.strategy": "mixed",
        "mig.config": "all-enabled",
        "mig.config.state": "success",
    }
    (gpu,) = _assemble(nodes=[_node(labels, {"gpu": 0})]).gpus
    assert (gpu.mig_mode, gpu.instances, gpu.problem) == (MigMode.ON, (), None)


def test_under_the_single_strategy_counts_are_of_slices() -> None:
    """``gpu.count`` and ``nvidia.com/gpu`` count MIG devices when the product says so."""
    labels = {
        **_labels("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 14),
        "gpu.memory": "4864",
        "mig.strategy": "single",
    }
    fleet = _assemble(nodes=[_node(labels, {"gpu": 14})])
    assert [(len(g.instances), g.single_strategy, g.memory_mib) for g in fleet.gpus] == [
        (7, True, 40960)
    ] * 2
    assert "served as nvidia.com/gpu" in fleet.gpus[0].notes[0]
    assert fleet.held == {("n", "nvidia.com/gpu"): 0}


# ---- Sharing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "counts", "expected"),
    [
        ({"gpu.replicas": "4"}, {"gpu": 8}, (4, Sharing.TIME_SLICING, False)),
        ({}, {"gpu": 8}, (4, Sharing.TIME_SLICING, False)),
        ({}, {"gpu": 0, "gpu.shared": 8}, (4, Sharing.TIME_SLICING, True)),
        (
            {"gpu.replicas": "4", "gpu.sharing-strategy": "mps"},
            {"gpu.shared": 8},
            (4, Sharing.MPS, True),
        ),
        ({"gpu.replicas": "1", "gpu.sharing-strategy": "none"}, {"gpu": 2}, (1, None, False)),
    ],
)
def test_shared_gpus(
    labels: Mapping[str, str], counts: Mapping[str, int], expected: tuple[int, Sharing, bool]
) -> None:
    """Labels and counts tell how many slots each of two GPUs has, and under which name."""
    fleet = _assemble(nodes=[_node({**_labels("Tesla-T4", 2), **labels}, counts)])
    assert [(g.replicas, g.sharing, g.renamed) for g in fleet.gpus] == [expected] * 2


def test_a_shared_product_is_the_same_board() -> None:
    """The suffix goes, and the memory label of a share is not the board's."""
    labels = {**_labels("Tesla-T4-SHARED", 1), "gpu.replicas": "2", "gpu.memory": "7500"}
    (gpu,) = _assemble(nodes=[_node(labels, {"gpu": 2})]).gpus
    assert (gpu.model, gpu.memory_mib) == ("t4", library.get("t4").memory_mib)


def test_a_label_that_the_counts_deny_is_noted() -> None:
    """Slots of a lost GPU are missing in the counts; the label tells how many each has."""
    labels = {**_labels("Tesla-T4", 2), "gpu.replicas": "4"}
    fleet = _assemble(nodes=[_node(labels, {"gpu": 4})])
    assert [gpu.replicas for gpu in fleet.gpus] == [4, 4]
    assert any("4 slots on 2 GPUs, but its label says 4" in note for note in fleet.notes)


def test_shared_mig_slices_count_once() -> None:
    """Slots of time-sliced MIG devices are not devices."""
    labels = {
        **_labels("NVIDIA-A100-SXM4-40GB", 1),
        "mig-1g.5gb.count": "7",
        "mig-1g.5gb.replicas": "2",
    }
    fleet = _assemble(nodes=[_node(labels, {"mig-1g.5gb.shared": 14})])
    assert (len(fleet.gpus[0].instances), fleet.notes) == (7, ())


def test_everything_is_in_order() -> None:
    """Nodes come by name, GPUs by node and index, whatever the order of the input."""
    reports = [
        NodeReport(node=node, source=node, gpus=tuple(_gpu(_A100_40, index=i) for i in (1, 0)))
        for node in ("b", "a")
    ]
    fleet = _assemble(*reports)
    assert [node.name for node in fleet.nodes] == ["a", "b"]
    assert [gpu.key for gpu in fleet.gpus] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_slices_that_are_not_allocatable_are_not_free() -> None:
    """With one of three slices gone or unhealthy, which one is not known: none is re-cut."""
    instances = [_lgi("1g.10gb", 19, 7 + start, f"{start}:1") for start in range(3)]
    fleet = _assemble(
        _report(_gpu(_H100, *instances)),
        nodes=[_node(allocatable={"mig-1g.10gb": 2}, capacity={"mig-1g.10gb": 3})],
    )
    assert [i.hold for i in fleet.gpus[0].instances] == [Hold.POSSIBLE] * 3
    assert fleet.held["n", "nvidia.com/mig-1g.10gb"] == 1
    assert any("1 of 3 nvidia.com/mig-1g.10gb are not allocatable" in note for note in fleet.notes)


def test_the_optical_flow_engine_tells_a_media_instance() -> None:
    """On Hopper 1g and 1g+me differ in nothing else that the driver prints."""
    media = _xml(9, 9984, sms=16, decoders=1, copies=1)
    fleet = _assemble(_report(_gpu(_H100, replace(media, jpeg_count=1, ofa_count=1))))
    assert [i.profile for i in fleet.gpus[0].instances] == ["1g.10gb+me"]
