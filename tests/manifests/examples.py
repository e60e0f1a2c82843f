"""Documents of both kinds, right and wrong, and what a strict reader says of them."""

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from partita.config import gpu_node_document, policy_document
from partita.errors import InputError
from partita.model.finding import Severity

Document = dict[str, Any]

_ROOT = Path(__file__).parents[2]
_VERSION = "partita.dev/v1alpha1"
READER_ONLY = {"profile-unknown", "layout-impossible", "duplicate-key", "unexpanded-variable"}
"""Rules of the reader that take the catalogue, or the text of a file."""
HEADER = {"api-version", "name-missing", "name-form"}
"""Rules of the reader that the API server has for every object, whatever its schema."""

VALUES = st.sampled_from(
    [
        *("", "x", "MIG", "Fixed", "Whole", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "1g.5gb"),
        *(0, 1, -1, 7, True, False, 1.5, [], {}, [1], ["a"], [{}], {"a": 1}, {"1g.5gb": 1}),
        *([{"name": "nvidia.com/gpu", "replicas": 2}], {"resources": []}, "TimeSlicing", "MPS"),
    ]
)
"""What a change may put in the place of something."""

SHARED = {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}
_TWICE = {"resources": [*SHARED["resources"], {"name": "nvidia.com/gpu", "replicas": 2}]}
_MAP = {"namespace": "gpu", "name": "shares"}

_POLICIES: Mapping[str, Document] = {
    "whole": {"strategy": "Whole"},
    "automatic": {"strategy": "Auto", "mig": {"profiles": ["1g.10gb"]}, "timeSlicing": SHARED},
    "follows demand": {"strategy": "MIG"},
    "fixed": {"strategy": "MIG", "follow": "Fixed", "mig": {"layout": {"1g.10gb": 7}}},
    "fixed and empty": {"strategy": "MIG", "follow": "Fixed", "mig": {"layout": {}}},
    "fixed by a ConfigMap": {"strategy": "MIG", "follow": "Fixed", "configMapRef": _MAP},
    "fixed without a layout": {"strategy": "MIG", "follow": "Fixed", "mig": {"allowReset": True}},
    "fixed without parameters": {"strategy": "MIG", "follow": "Fixed"},
    "sliced": {"strategy": "TimeSlicing", "timeSlicing": {**SHARED, "renameByDefault": True}},
    "sliced by a ConfigMap": {"strategy": "TimeSlicing", "configMapRef": {**_MAP, "key": "t4"}},
    "sliced without parameters": {"strategy": "TimeSlicing"},
    "sliced with those of MPS": {"strategy": "TimeSlicing", "mps": SHARED},
    "sliced twice": {"strategy": "TimeSlicing", "timeSlicing": _TWICE},
    "sliced in nothing": {"strategy": "TimeSlicing", "timeSlicing": {"resources": []}},
    "sliced into one": {
        "strategy": "TimeSlicing",
        "timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 1}]},
    },
    "sliced by another vendor": {
        "strategy": "TimeSlicing",
        "timeSlicing": {"resources": [{"name": "amd.com/gpu", "replicas": 2}]},
    },
    "parallel": {"strategy": "MPS", "mps": {**SHARED, "failRequestsGreaterThanOne": False}},
    "parallel without parameters": {"strategy": "MPS"},
    "no strategy": {"follow": "Fixed"},
    "no such strategy": {"strategy": "Mig"},
    "a key too many": {"strategy": "Whole", "folow": "Fixed"},
    "an inner key too many": {"strategy": "MIG", "mig": {"layot": {}}},
    "a number for a text": {"strategy": "Whole", "nodeSelector": {"pool": 1}},
    "a text for a number": {"strategy": "Whole", "gpuSelector": {"indices": ["0"]}},
    "a negative index": {"strategy": "Whole", "gpuSelector": {"indices": [-1]}},
    "no model": {"strategy": "Whole", "gpuSelector": {"models": [""]}},
    "half a reference": {"strategy": "MPS", "configMapRef": {"name": "shares"}},
    "none of a profile": {"strategy": "MIG", "mig": {"layout": {"1g.10gb": 0}}},
    "no such profile form": {"strategy": "MIG", "mig": {"profiles": ["small"]}},
    "all there is": {
        "strategy": "Auto",
        "nodeSelector": {"pool": "a"},
        "gpuSelector": {"models": ["a30"], "indices": [0, 1], "uuids": ["GPU-1"]},
        "follow": "Demand",
        "mig": {"profiles": ["1g.6gb"], "allowReset": True},
        "timeSlicing": SHARED,
        "budgetEnforcement": "Evict",
        "via": "nvidia-operator",
    },
}


def _mig(*instances: tuple[str, int, int], **more: Any) -> Document:
    listed = [{"profile": name, "start": at, "size": size} for name, at, size in instances]
    return {"uuid": "GPU-1", "layout": "MIG", "mig": {"instances": listed, **more}}


_CUT = _mig(("3g.20gb", 4, 4), ("2g.10gb", 0, 2), ("1g.5gb", 2, 1))
_GPUS: Mapping[str, list[Document]] = {
    "nothing": [],
    "whole": [{"uuid": "GPU-1", "layout": "Whole", "mayReset": True, "policy": "all"}],
    "cut": [_CUT],
    "cut into nothing": [_mig()],
    "cut and shared": [
        _mig(
            ("1g.5gb", 0, 1),
            shared=[{"name": "nvidia.com/mig-1g.5gb", "replicas": 2}],
            renamed=True,
            oneEach=False,
        )
    ],
    "cut twice over": [_mig(("3g.20gb", 4, 4), ("1g.5gb", 6, 1))],
    "cut twice at one place": [_mig(("1g.5gb", 6, 1), ("1g.5gb", 6, 1))],
    "cut before the beginning": [_mig(("1g.5gb", -1, 1))],
    "cut to nothing wide": [_mig(("1g.5gb", 0, 0))],
    "cut by another word": [_mig(("small", 0, 1))],
    "cut without instances": [{"uuid": "GPU-1", "layout": "MIG", "mig": {}}],
    "cut without saying how": [{"uuid": "GPU-1", "layout": "MIG"}],
    "whole and cut": [{**_CUT, "layout": "Whole"}],
    "sliced": [{"uuid": "GPU-1", "layout": "TimeSlicing", "timeSlicing": {"replicas": 4}}],
    "sliced into one": [{"uuid": "GPU-1", "layout": "TimeSlicing", "timeSlicing": {"replicas": 1}}],
    "sliced and cut": [{**_CUT, "layout": "TimeSlicing", "timeSlicing": {"replicas": 2}}],
    "sliced without saying how": [{"uuid": "GPU-1", "layout": "TimeSlicing"}],
    "no layout": [{"uuid": "GPU-1"}],
    "no such layout": [{"uuid": "GPU-1", "layout": "Mig"}],
    "no GPU": [{"layout": "Whole"}],
    "two": [_CUT, {"uuid": "GPU-2", "layout": "Whole"}],
    "one twice": [_CUT, {"uuid": "GPU-1", "layout": "Whole"}],
    "a key too many": [{"uuid": "GPU-1", "layout": "Whole", "mayreset": True}],
    "an inner key too many": [_mig(rename=True)],
    "a text for a number": [
        {"uuid": "GPU-1", "layout": "TimeSlicing", "timeSlicing": {"replicas": "4"}}
    ],
}


def policy(spec: Document, name: str = "example") -> Document:
    """Return a policy."""
    metadata = {"name": name}
    return {"apiVersion": _VERSION, "kind": "PartitionPolicy", "metadata": metadata, "spec": spec}


def gpu_node(gpus: list[Document], name: str = "node-1") -> Document:
    """Return a node that is to be so."""
    metadata = {"name": name}
    return {
        "apiVersion": _VERSION,
        "kind": "GPUNode",
        "metadata": metadata,
        "spec": {"gpus": gpus},
    }


def every() -> dict[str, Document]:
    """Return every document of ours that is written down anywhere, by where, without nulls."""
    found = {f"policy: {name}": policy(spec) for name, spec in _POLICIES.items()}
    found |= {f"node: {name}": gpu_node(gpus) for name, gpus in _GPUS.items()}
    for path, text in _texts():
        for number, document in enumerate(yaml.safe_load_all(text)):
            if _is_ours(document):
                found[f"{path.relative_to(_ROOT)} {number}"] = without_nulls(document)
    return found


def _texts() -> Iterator[tuple[Path, str]]:
    for path in sorted((_ROOT / "tests" / "config" / "cases").glob("policy-*.yaml")):
        yield path, path.read_text(encoding="utf-8")
    for path in sorted((_ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        parts = re.findall(
            r"^apiVersion: partita\.dev/.*?(?=^END|^```)", text, re.MULTILINE | re.DOTALL
        )
        yield path, "\n---\n".join(parts)


def _is_ours(document: object) -> bool:
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind in ("PartitionPolicy", "GPUNode")


def without_nulls(value: Any) -> Any:
    """Return a document without nulls, which count as absent, and without ``status``."""
    if isinstance(value, dict):
        kept = {key: without_nulls(one) for key, one in value.items() if one is not None}
        return {key: one for key, one in kept.items() if not ("spec" in kept and key == "status")}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def errors(document: Document) -> set[str]:
    """Return the rules by which a strict reader refuses an API object."""
    reader = policy_document if document.get("kind") == "PartitionPolicy" else gpu_node_document
    try:
        found = reader.decode_object(document).findings
    except InputError as error:
        return {error.message}
    return {one.rule for one in found if one.severity is Severity.ERROR}


def change(document: Any, value: Any, data: st.DataObject) -> None:
    """Exchange, add or remove one value or key anywhere in a document, in place."""
    places = list(_places(document))
    if not places:
        return
    holder, key = data.draw(st.sampled_from(places))
    match data.draw(st.sampled_from(["exchange", "add", "remove"])):
        case "exchange":
            holder[key] = copy.deepcopy(value)
        case "add" if isinstance(holder, dict):
            holder["extra"] = copy.deepcopy(value)
        case "add":
            holder.append(copy.deepcopy(value))
        case "remove":
            del holder[key]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container with each of its keys."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)
