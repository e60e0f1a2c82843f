"""Questions from the field and the answers that the findings must contain, in our own files."""

from collections.abc import Sequence

from partita.config import lint, operator_values, policy_document, yaml_text
from partita.model.finding import Finding, Severity

TIME_SLICING = """\
version: v1
flags:
  migStrategy: {strategy}
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: {replicas}
"""

LAYOUT = """\
version: v1
mig-configs:
  lab:
  - devices: all
    mig-enabled: true
    mig-devices: {layout}
"""


def _findings(text: str) -> dict[str, Finding]:
    return {finding.rule: finding for finding in lint.read(text, "lab.yaml").findings}


def _bad(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is not Severity.INFO]


def test_two_replicas_are_valid_and_the_label_ends_in_shared() -> None:
    """N GPUs serve 2 N nvidia.com/gpu, the product label ends in -SHARED, nothing is isolated."""
    result = _findings(TIME_SLICING.format(strategy="none", replicas=2))["result"]
    assert result.message == (
        "nodes serve nvidia.com/gpu x2 per GPU, label nvidia.com/gpu.product ends in -SHARED"
    )
    assert result.hint == "neither memory nor faults are isolated between the pods"


def test_two_replicas_may_be_the_same_gpu() -> None:
    """Spreading is best effort, so a pod asking for 2 may see one GPU."""
    finding = _findings(TIME_SLICING.format(strategy="none", replicas=2))["more-than-one"]
    assert "the same GPU twice" in finding.message
    assert finding.hint == "write failRequestsGreaterThanOne: true to refuse such pods"


def test_single_strategy_multiplies_slices() -> None:
    """Seven slices times six replicas are 42 resources per GPU."""
    finding = _findings(TIME_SLICING.format(strategy="single", replicas=6))
    assert "7 slices of a GPU become 42" in finding["replicas-times-slices"].message


def test_replicas_do_not_count_memory() -> None:
    """40960 replicas do not make MiB."""
    finding = _findings(TIME_SLICING.format(strategy="none", replicas=40960))["replicas-many"]
    assert "divide neither memory nor compute" in finding.message


def test_fewer_than_two_replicas_are_refused_and_how_to_stop_sharing_is_said() -> None:
    """0 does not switch sharing off; removing the section does."""
    finding = _findings(TIME_SLICING.format(strategy="none", replicas=0))["replicas-too-few"]
    assert finding.severity is Severity.ERROR
    assert "remove the section" in (finding.hint or "")


def test_misplaced_key_is_said_to_belong_to_the_section() -> None:
    """``flags.renameByDefault`` is dropped in silence; its place is the sharing section."""
    text = TIME_SLICING.format(strategy="none", replicas=3).replace(
        "flags:", "flags:\n  renameByDefault: true"
    )
    finding = _findings(text)["misplaced-key"]
    assert finding.hint == "move it to sharing.timeSlicing.renameByDefault"
    assert (finding.line, finding.column) == (3, 3)


def test_renamed_resource_leaves_the_plain_name_at_zero() -> None:
    """With renameByDefault pods must ask for nvidia.com/gpu.shared."""
    text = TIME_SLICING.format(strategy="none", replicas=4).replace(
        "    resources:", "    renameByDefault: true\n    resources:"
    )
    result = _findings(text)["result"]
    assert result.message.endswith("nvidia.com/gpu.shared x4 per GPU, nvidia.com/gpu stays at 0")
    assert (result.hint or "").startswith("pods must ask for nvidia.com/gpu.shared")


def test_two_halves_and_one_slice_have_no_place() -> None:
    """Seven compute slices are not enough: two 3g take all eight memory slices."""
    finding = _findings(LAYOUT.format(layout="{3g.20gb: 2, 1g.5gb: 1}"))["layout-impossible"]
    assert "9 memory slices, the GPU has 8" in finding.message
    assert "use 2x 3g.20gb" in (finding.hint or "")


def test_media_extension_exists_once() -> None:
    """Three +me instances are impossible; one beside plain ones is not."""
    finding = _findings(LAYOUT.format(layout="{1g.12gb+me: 3}"))["layout-impossible"]
    assert "at most 1x 1g.12gb+me" in finding.message
    assert "use 2x 1g.12gb + 1x 1g.12gb+me" in (finding.hint or "")


def test_five_small_and_one_double_slice_fit() -> None:
    """5 + 2 compute slices fit when placed well."""
    findings = lint.read(LAYOUT.format(layout="{1g.10gb: 5, 2g.20gb: 1}"), "lab.yaml").findings
    assert _bad(findings) == []


def test_boards_that_can_hold_a_layout_are_named() -> None:
    """4x 1g.10gb is the wide slice of a 40 GB board as well as the small one of an 80 GB board."""
    hint = _findings(LAYOUT.format(layout="{1g.10gb: 4}"))["result"].hint or ""
    assert "A100 40GB" in hint
    assert "A100 80GB" in hint
    assert "40GB" not in (_findings(LAYOUT.format(layout="{1g.10gb: 7}"))["result"].hint or "")


def test_gpu_that_no_entry_names_keeps_what_it_has() -> None:
    """A layout that stops below the highest index of the file leaves a GPU as it was."""
    text = LAYOUT.format(layout="{3g.71gb: 2}").replace("devices: all", "devices: [0, 1]") + (
        "  off:\n  - devices: [0, 1, 2]\n    mig-enabled: false\n"
    )
    finding = _findings(text)["gpu-uncovered"]
    assert finding.message.startswith("GPU 2 is left as it is")
    assert finding.where == "lab"


def test_key_in_other_letter_case_is_read_like_nvidia_does() -> None:
    """The plugin takes ``timeslicing``; inside the section it compares letter by letter."""
    text = TIME_SLICING.format(strategy="none", replicas=2)
    findings = _findings(text.replace("timeSlicing", "timeslicing"))
    assert findings["key-case"].severity is Severity.INFO
    assert findings["key-case"].hint == "write timeSlicing"
    assert "nvidia.com/gpu x2" in findings["result"].message
    assert "replicas-missing" in _findings(text.replace("replicas", "Replicas"))


def test_document_beside_a_policy_is_said_to_be_ignored() -> None:
    """Readers of policies pass over other objects, and say so."""
    policy = (
        "apiVersion: partita.dev/v1alpha1\nkind: PartitionPolicy\nmetadata: {name: whole}\n"
        "spec: {strategy: Whole}\n---\nkind: Namespace\n"
    )
    decoded = policy_document.decode(policy, "policy.yaml")
    assert [policy.name for policy in decoded.values] == ["whole"]
    assert [finding.message for finding in decoded.findings] == [
        "this document is not read, it is of the kind: Namespace"
    ]


def test_exported_default_exists() -> None:
    """Values that are written name a default only when the layouts have it."""
    configs = lint.read(LAYOUT.format(layout="{1g.10gb: 2}"), "lab.yaml").configs
    values = yaml_text.dump(operator_values.encode((), configs.mig))
    assert _bad(lint.read(values, "values.yaml").findings) == []
