"""What the agent is told to do: our policies or NVIDIA's configs, followed or refused."""

from textwrap import dedent, indent

import pytest

from partita.config import agent_document
from partita.config.agent_document import AgentDocument
from partita.config.device_plugin import MigStrategy
from partita.config.partition_policy import Follow, GpuSelector, Strategy
from partita.config.serving_options import SharedDevicesPolicy
from partita.errors import InputError
from partita.model.finding import Severity

TWO_EACH = """\
version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 2
    - name: nvidia.com/mig-1g.5gb
      replicas: 3
"""
MPS = """\
version: v1
sharing:
  mps:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
WHOLE_GPUS = "version: v1\nflags:\n  migStrategy: none\n"
PARTED = """\
version: v1
mig-configs:
  all-disabled:
  - devices: all
    mig-enabled: false
  half:
  - devices: [0, 1]
    mig-enabled: false
  - devices: [2, 3]
    mig-enabled: true
    mig-devices:
      1g.5gb: 2
      2g.10gb: 1
      3g.20gb: 1
"""


def _policy(spec: str, *, name: str = "lab") -> str:
    head = "apiVersion: partita.dev/v1alpha1\nkind: PartitionPolicy\n"
    return f"{head}metadata: {{name: {name}}}\nspec: {spec}\n"


def _config_map(**configs: str) -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plugin}\ndata:\n"
    return head + "".join(f"  {name}: |\n{indent(text, '    ')}" for name, text in configs.items())


def _refused(
    text: str, *, name: str | None = None, labels: dict[str, str] | None = None
) -> InputError:
    with pytest.raises(InputError) as caught:
        agent_document.read(text, "wanted.yaml", name=name, labels=labels)
    assert caught.value.hint
    assert caught.value.path == "wanted.yaml"
    return caught.value


def _read(text: str, *, name: str | None = None) -> AgentDocument:
    return agent_document.read(text, "wanted.yaml", name=name)


def test_a_config_of_the_device_plugin_is_followed_as_it_is() -> None:
    """It says how what stands is served; no policy comes of it."""
    document = _read(TWO_EACH)

    assert document.policies == ()
    assert document.plugin is not None
    assert document.plugin.mig_strategy is MigStrategy.MIXED
    assert document.plugin.sharing is not None
    assert [(one.name, one.replicas) for one in document.plugin.sharing.entries] == [
        ("nvidia.com/gpu", 2),
        ("nvidia.com/mig-1g.5gb", 3),
    ]


def test_flags_of_the_device_plugin_are_kept() -> None:
    """How containers get devices is in them."""
    text = "version: v1\nflags: {plugin: {sharedDevicesAllocationPolicy: packed}}\n"
    document = _read(text)

    assert document.plugin is not None
    policy = document.plugin.serving.shared_devices_allocation_policy
    assert policy is SharedDevicesPolicy.PACKED


def test_the_only_config_of_a_config_map_needs_no_name() -> None:
    """With a name it has to be its own."""
    text = _config_map(any=TWO_EACH)

    assert _read(text) == _read(text, name="any")
    assert _read(text).plugin != _read(TWO_EACH).plugin  # one has a name
    assert _refused(text, name="other").message == "no configuration has the name: other"


def test_one_of_several_configs_is_chosen_by_name() -> None:
    """Without a name it is not guessed; the names are told."""
    text = _config_map(shared=TWO_EACH, whole=WHOLE_GPUS)

    document = _read(text, name="whole")

    assert document.plugin is not None
    assert document.plugin.mig_strategy is MigStrategy.NONE
    error = _refused(text)
    assert error.message == "there are several configurations"
    assert error.hint == "choose with --config-name one of: shared, whole"


def test_values_of_the_operator_may_name_the_config_that_counts_by_default() -> None:
    """The name that is given counts more."""
    data = indent(
        f"shared: |-\n{indent(TWO_EACH, '  ')}whole: |-\n{indent(WHOLE_GPUS, '  ')}", " " * 6
    )
    text = f"devicePlugin:\n  config:\n    default: whole\n    data:\n{data}"
    by_default, by_name = _read(text).plugin, _read(text, name="shared").plugin

    assert by_default is not None
    assert by_name is not None
    assert (by_default.name, by_name.name) == ("whole", "shared")


def test_a_config_of_mig_parted_becomes_policies_for_this_node() -> None:
    """Entry by entry; the label that would choose it is not asked for."""
    off, cut = _read(PARTED, name="half").policies

    assert (off.strategy, off.gpu_selector) == (Strategy.WHOLE, GpuSelector(indices=(0, 1)))
    assert (cut.strategy, cut.gpu_selector) == (Strategy.MIG, GpuSelector(indices=(2, 3)))
    assert cut.mig.layout == {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
    assert cut.follow is Follow.FIXED
    assert (off.node_selector, cut.node_selector) == ({}, {})
    assert _refused(PARTED).hint == "choose with --config-name one of: all-disabled, half"
    assert _refused(PARTED, name="all").message == "no configuration has the name: all"


def test_a_config_of_mig_parted_may_be_in_a_config_map() -> None:
    """As the operator mounts it."""
    text = _config_map(**{"config.yaml": PARTED})

    assert _read(text, name="half").policies == _read(PARTED, name="half").policies


def test_policies_of_other_nodes_are_left_out() -> None:
    """With unknown labels every policy is for this node."""
    text = (
        _policy("{strategy: Whole, nodeSelector: {pool: small}}", name="small")
        + "---\n"
        + _policy("{strategy: Whole, nodeSelector: {pool: big}}", name="big")
    )

    def names(labels: dict[str, str] | None) -> list[str]:
        document = agent_document.read(text, "wanted.yaml", labels=labels)
        assert all(policy.node_selector == {} for policy in document.policies)
        return [policy.name for policy in document.policies]

    assert names({"pool": "big", "zone": "a"}) == ["big"]
    assert names({}) == []
    assert names(None) == ["small", "big"]


def test_what_is_noted_and_no_error_is_kept() -> None:
    """A misplaced key is dropped by NVIDIA's plugin without a word; here it is told."""
    text = TWO_EACH.replace("flags:", "flags:\n  renameByDefault: true")
    document = _read(text)
    warnings = [one for one in document.findings if one.severity is Severity.WARNING]

    assert document.plugin is not None
    assert document.plugin.sharing is not None
    assert not document.plugin.sharing.rename_by_default
    assert warnings[0].message == "flags.renameByDefault is not read here, it is silently dropped"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            TWO_EACH.replace("replicas: 2", "replicas: 1"),
            "the plugin and GPU feature discovery refuse fewer than 2 replicas: 1",
            (8, 17),
        ),
        (
            TWO_EACH.replace("replicas: 2", "replicas: ${REPLICAS:=4}"),
            "unexpanded variable: ${REPLICAS:=4}",
            (8, 17),
        ),
        (
            TWO_EACH.replace("mixed", "mixd"),
            "flags.migStrategy has no such value: mixd",
            (3, 16),
        ),
        (
            TWO_EACH.replace("timeSlicing", "mps"),
            "the plugin refuses MPS together with migStrategy mixed",
            (6, 5),
        ),
        (_policy("{strategy: Wole}"), "spec.strategy has no such value: Wole", (4, 18)),
        (_policy("{strategy: TimeSlicing}"), "strategy TimeSlicing needs spec.timeSlicing", (4, 7)),
        (
            PARTED.replace("2g.10gb: 1", "2g.10gb: 3"),
            "no board can hold 2x 1g.5gb + 3x 2g.10gb + 1x 3g.20gb",
            (11, 5),
        ),
        (
            _policy("{strategy: MIG, follow: Fixed, mig: {layout: {7g.80gb: 2}}}"),
            "no board can hold 2x 7g.80gb",
            (4, 43),
        ),
        ("version: v1\nflags: {", "not readable as YAML", (3, 1)),
    ],
)
def test_an_error_is_told_with_its_place(text: str, message: str, place: tuple[int, int]) -> None:
    """The first one; nothing of such a file is followed."""
    error = _refused(text, name="half" if text.startswith("version: v1\nmig") else None)

    assert error.message.startswith(message)
    assert (error.line, error.column) == place


def test_an_error_inside_a_config_map_is_told_at_its_place_in_the_file() -> None:
    """Line and column are of the file, not of the text in it."""
    error = _refused(_config_map(any=TWO_EACH.replace("replicas: 3", "replicas: many")))

    assert error.line == 15
    assert error.column == 21


def test_further_errors_are_counted() -> None:
    """One line is enough to begin with."""
    error = _refused(TWO_EACH.replace("replicas: 2", "replicas: 1").replace("3", "0"))

    assert error.message.endswith("fewer than 2 replicas: 1 (and 1 more)")


@pytest.mark.parametrize(
    ("text", "asked_for_by"),
    [
        (MPS, "sharing.mps"),
        (
            _policy("{strategy: MPS, mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"),
            "lab",
        ),
    ],
)
def test_mps_is_refused(text: str, asked_for_by: str) -> None:
    """Without its daemon pods would share a GPU without the limits that they were promised."""
    error = _refused(text)

    assert error.message == f"this agent does not serve MPS yet, asked for by: {asked_for_by}"
    assert error.hint == ("use time-slicing or MIG, or leave this node to NVIDIA's device plugin")


def test_what_another_program_carries_out_is_refused() -> None:
    """Two would do it otherwise."""
    error = _refused(_policy("{strategy: Whole, via: nvidia-operator}"))

    assert error.message == "another program is to carry out policy: lab"


def test_parameters_in_a_config_map_of_the_cluster_are_refused() -> None:
    """Without them the GPUs would silently be served as if nothing were to be shared."""
    spec = "{strategy: TimeSlicing, configMapRef: {namespace: gpu, name: plugin}}"
    error = _refused(_policy(spec))

    assert error.message == "this agent reads no ConfigMap of the cluster, as asked by: lab"


@pytest.mark.parametrize("labels", [None, {}])
@pytest.mark.parametrize(
    "other",
    [_policy("{strategy: Whole, nodeSelector: {pool: big}}"), PARTED.replace("half", "all")],
)
def test_a_plugin_config_beside_policies_contradicts_them(
    other: str, labels: dict[str, str] | None
) -> None:
    """On every node, whichever of the policies are for it."""
    name = "all" if "mig-configs" in other else None
    text = _config_map(all=TWO_EACH) + "---\n" + other
    error = _refused(text, name=name, labels=labels)

    assert error.message == (
        "a device-plugin config and policies in one file contradict each other"
    )


def test_a_device_filter_that_no_known_gpu_matches_is_told() -> None:
    """Otherwise nothing would be done, without a reason."""
    text = dedent("""\
        version: v1
        mig-configs:
          all:
          - device-filter: "0x123410DE"
            devices: all
            mig-enabled: true
            mig-devices: {1g.5gb: 7}
        """)
    error = _refused(text)

    assert error.message == (
        "no policy made, the catalogue has no GPU with this PCI id: 0x123410DE"
    )
    assert error.line == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]\n",
        "colour: blue\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: train}\n",
        "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n",
        "nvidia.com/mig.config: all-1g.5gb\n",
    ],
)
def test_a_file_of_something_else_is_refused(text: str) -> None:
    """It says what can be given."""
    error = _refused(text)

    assert error.message.startswith("nothing in this file")
    assert "PartitionPolicy" in (error.hint or "")
