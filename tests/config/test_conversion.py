"""NVIDIA's configs to policies and back: nothing changes, or the change is said."""

import json

from hypothesis import given
from hypothesis import strategies as st

from partita.config import (
    device_plugin,
    mig_parted,
    policy_document,
    policy_export,
    policy_import,
    yaml_text,
)
from partita.config.config_map import Configs
from partita.config.inspection import Inspection
from partita.config.partition_policy import (
    BudgetEnforcement,
    ConfigMapRef,
    Follow,
    GpuSelector,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
    Via,
)
from partita.config.policy_export import Target

MODELS = st.sampled_from(["a30", "a100-40gb-pcie", "h100-94gb-sxm5", "h200-141gb-sxm5"])
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4})?", fullmatch=True)
LABELS = st.sampled_from([policy_import.MIG_LABEL, policy_import.PLUGIN_LABEL, "pool"])
LAYOUTS = st.dictionaries(
    st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb", "1g.5gb+me"]), st.integers(1, 3), max_size=2
)
RESOURCES = st.lists(
    st.builds(
        SharedResource,
        name=st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]),
        replicas=st.integers(2, 40),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
SHARING = st.builds(
    SharingParameters,
    resources=RESOURCES,
    rename_by_default=st.booleans(),
    fail_requests_greater_than_one=st.sampled_from([None, True, False]),
)
SELECTORS = st.builds(
    GpuSelector,
    models=st.lists(MODELS, unique=True, max_size=2).map(tuple),
    indices=st.lists(st.integers(0, 7), unique=True, max_size=3).map(tuple),
    uuids=st.lists(st.just("GPU-1"), max_size=1).map(tuple),
)
POLICIES = st.builds(
    PartitionPolicy,
    name=NAMES,
    strategy=st.sampled_from(Strategy),
    node_selector=st.dictionaries(LABELS, NAMES, max_size=2),
    gpu_selector=st.just(GpuSelector()) | SELECTORS,
    follow=st.sampled_from(Follow),
    mig=st.builds(MigParameters, layout=st.none() | LAYOUTS, allow_reset=st.booleans()),
    time_slicing=st.none() | SHARING,
    mps=st.none() | SHARING,
    budget=st.sampled_from(BudgetEnforcement),
    config_map_ref=st.none() | st.just(ConfigMapRef(namespace="gpu", name="shares")),
    via=st.sampled_from(Via),
)


@st.composite
def expressible_policies(draw: st.DrawFn) -> PartitionPolicy:
    """Draw policies for which NVIDIA has words, so that most round trips lose nothing."""
    name = draw(NAMES)
    strategy = draw(st.sampled_from([Strategy.MIG, Strategy.WHOLE, Strategy.TIME_SLICING]))
    shared = strategy is Strategy.TIME_SLICING
    mig = strategy is Strategy.MIG
    return PartitionPolicy(
        name=name,
        strategy=strategy,
        node_selector={policy_import.PLUGIN_LABEL if shared else policy_import.MIG_LABEL: name},
        gpu_selector=GpuSelector() if shared else draw(SELECTORS),
        follow=Follow.DEMAND if shared else Follow.FIXED,
        mig=MigParameters(layout=draw(LAYOUTS)) if mig else MigParameters(),
        time_slicing=draw(SHARING) if shared else None,
    )


def _export(policy: PartitionPolicy) -> tuple[Configs, bool]:
    inspection = Inspection(path="p")
    configs = policy_export.configs_of([policy], Target.OPERATOR_VALUES, inspection)
    return configs, not inspection.findings


def _import(configs: Configs) -> tuple[tuple[PartitionPolicy, ...], bool]:
    inspection = Inspection(path="p")
    policies = policy_import.policies_of(configs, inspection, "unnamed")
    return policies, not inspection.findings


@given(POLICIES | expressible_policies())
def test_policy_comes_back_when_nothing_was_reported_lost(policy: PartitionPolicy) -> None:
    """``import(export(p)) == p``, or the export says what has no words."""
    configs, whole = _export(policy)
    if whole:
        assert _import(configs) == ((policy,), True)


@given(POLICIES)
def test_policy_document_reads_back_as_written(policy: PartitionPolicy) -> None:
    """A document that was written has the same policy in it, or is refused with findings."""
    text = yaml_text.dump(policy_document.encode(policy))
    decoded = policy_document.decode(text, "p.yaml")
    assert decoded.values == (policy,) or decoded.findings
    assert json.loads(json.dumps(policy_document.encode(policy)))["kind"] == "PartitionPolicy"


@given(st.dictionaries(NAMES, st.lists(SELECTORS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_mig_config_means_the_same_after_the_way_there_and_back(
    named: dict[str, list[GpuSelector]],
) -> None:
    """``export(import(c)) == c`` for configs of every shape of entry."""
    document = {
        "version": "v1",
        "mig-configs": {
            name: [
                {
                    "devices": list(selector.indices) or "all",
                    "mig-enabled": bool(selector.uuids),
                    **({"mig-devices": {"1g.10gb": 2}} if selector.uuids else {}),
                }
                for selector in selectors
            ]
            for name, selectors in named.items()
        },
    }
    configs = mig_parted.decode(yaml_text.dump(document), "c.yaml").values
    policies, _ = _import(Configs(mig=configs))
    inspection = Inspection(path="c.yaml")
    again = policy_export.configs_of(policies, Target.MIG_PARTED, inspection)
    assert again.mig == configs
    assert inspection.findings == []
    assert mig_parted.encode(again.mig) == document


@given(NAMES, SHARING)
def test_plugin_config_means_the_same_after_the_way_there_and_back(
    name: str, sharing: SharingParameters
) -> None:
    """A named time-slicing config is the same config again."""
    policy = PartitionPolicy(
        name=name,
        strategy=Strategy.TIME_SLICING,
        node_selector={policy_import.PLUGIN_LABEL: name},
        time_slicing=sharing,
    )
    configs, _ = _export(policy)
    text = yaml_text.dump(device_plugin.encode(configs.plugin[0]))
    (read,) = device_plugin.decode(text, "c.yaml").values
    assert (read.time_slicing, read.mig_strategy) == (
        configs.plugin[0].time_slicing,
        configs.plugin[0].mig_strategy,
    )


def test_what_nvidia_has_no_word_for_is_said() -> None:
    """UUIDs, demand and budgets are reported under ``lost-meaning``."""
    policy = PartitionPolicy(
        name="p",
        strategy=Strategy.MIG,
        gpu_selector=GpuSelector(indices=(1,), uuids=("GPU-1",)),
        mig=MigParameters(layout={"1g.10gb": 2}),
        budget=BudgetEnforcement.EVICT,
    )
    inspection = Inspection(path="p")
    policy_export.configs_of([policy], Target.MIG_PARTED, inspection)
    messages = " ".join(f.message for f in inspection.findings)
    assert {f.rule for f in inspection.findings} == {"lost-meaning"}
    for word in ("uuids", "Evict", "follow Demand", "nvidia.com/mig.config=p"):
        assert word in messages


def test_unknown_board_of_a_filter_gives_no_policy() -> None:
    """A policy for every GPU in place of one board would be wrong."""
    text = (
        "version: v1\nmig-configs:\n  lab:\n  - device-filter: '0x999910DE'\n"
        "    devices: all\n    mig-enabled: true\n    mig-devices: {1g.10gb: 7}\n"
    )
    inspection = Inspection(path="c.yaml")
    configs = Configs(mig=mig_parted.decode(text, "c.yaml").values)
    assert policy_import.policies_of(configs, inspection, "x") == ()
    assert [f.rule for f in inspection.findings] == ["lost-meaning"]
