"""``PartitionPolicy`` documents (``partita.dev/v1alpha1``): read strictly, and written.

Unknown keys of ``spec`` are errors with the nearest known one. ``metadata`` and ``status`` are what
Kubernetes makes of them and are not looked at, except for the name.
"""

from collections.abc import Mapping

from partita.catalog import library
from partita.config import (
    mig_layouts,
    object_header,
    plain_nodes,
    policy_rules,
    policy_schema,
    schema,
    yaml_nodes,
)
from partita.config.inspection import Decoded, Inspection, sorted_findings
from partita.config.partition_policy import (
    API_VERSION,
    KIND,
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
from partita.config.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from partita.errors import UnknownModelError
from partita.model import resource

__all__ = ["decode", "decode_object", "encode", "looks_like", "read"]

_SPEC = policy_schema.SPEC
_SHARING = _SPEC.inner("timeSlicing")
_HOMES = schema.homes(_SPEC, "spec")


def decode(text: str, path: str) -> Decoded[PartitionPolicy]:
    """Read the policies of a YAML text.

    Raises:
        InputError: When the text is not YAML.
    """
    inspection = Inspection(path=path)
    values = []
    for document in yaml_nodes.compose(text, path):
        if isinstance(document, YamlMapping) and _is_meant(document):
            policy = read(document, inspection)
            values += [policy] if policy is not None else []
        else:
            inspection.ignored(document)
    return Decoded(values=tuple(values), findings=sorted_findings(inspection.findings))


def decode_object(value: Mapping[str, object], path: str = KIND) -> Decoded[PartitionPolicy]:
    """Read one policy as an API server returns it.

    Raises:
        InputError: When it is nested too deeply.
    """
    inspection = Inspection(path=path)
    root = plain_nodes.of(value, path)
    policy = read(root, inspection) if isinstance(root, YamlMapping) else None
    findings = plain_nodes.placeless(inspection.findings)
    return Decoded(values=() if policy is None else (policy,), findings=findings)


def looks_like(node: YamlNode) -> bool:
    """Tell whether a document is a policy, whatever its version."""
    return object_header.is_kind(node, KIND)


def _is_meant(node: YamlMapping) -> bool:
    """Tell a policy, or something without a kind that may be one, from other objects."""
    return looks_like(node) or not isinstance(node.get("kind"), YamlScalar)


def read(root: YamlMapping, inspection: Inspection) -> PartitionPolicy | None:
    """Read one policy that is composed already; None when it has an error."""
    before = len(inspection.findings)
    inspection.templates(root)
    _keys(root, "", object_header.TOP, inspection)
    object_header.check_version(root, API_VERSION, inspection)
    name = object_header.name(root, "a policy", inspection)
    spec = inspection.mapping(root.get("spec"), "spec")
    if spec is None:
        inspection.error("spec-missing", "a policy needs a spec", root.at, "add spec.strategy")
        return None
    policy = _policy(name, spec, inspection.inside(name) if name else inspection)
    if policy is None or inspection.has_errors_since(before):
        return None
    return policy


def encode(policy: PartitionPolicy) -> Mapping[str, object]:
    """Return the document of a policy; what equals the default is left out."""
    spec: dict[str, object] = {"strategy": policy.strategy.value}
    optional: dict[str, object] = {
        "nodeSelector": dict(policy.node_selector),
        "gpuSelector": _encode_selector(policy.gpu_selector),
        "follow": policy.follow.value if policy.follow is not Follow.DEMAND else None,
        "mig": _encode_mig(policy.mig),
        "timeSlicing": _encode_sharing(policy.time_slicing),
        "mps": _encode_sharing(policy.mps),
        "budgetEnforcement": (
            policy.budget.value if policy.budget is not BudgetEnforcement.WARN else None
        ),
        "configMapRef": _encode_reference(policy.config_map_ref),
        "via": policy.via.value if policy.via is not Via.PARTITA else None,
    }
    spec.update({key: value for key, value in optional.items() if value})
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": policy.name},
        "spec": spec,
    }


def _encode_selector(selector: GpuSelector) -> Mapping[str, object]:
    lists = {"models": selector.models, "indices": selector.indices, "uuids": selector.uuids}
    return {key: list(value) for key, value in lists.items() if value}


def _encode_mig(mig: MigParameters) -> Mapping[str, object]:
    document: dict[str, object] = {}
    if mig.layout is not None:
        document["layout"] = dict(mig.layout)
    if mig.profiles:
        document["profiles"] = list(mig.profiles)
    if mig.allow_reset:
        document["allowReset"] = True
    return document


def _encode_sharing(sharing: SharingParameters | None) -> Mapping[str, object] | None:
    if sharing is None:
        return None
    document: dict[str, object] = {
        "resources": [{"name": one.name, "replicas": one.replicas} for one in sharing.resources]
    }
    if sharing.rename_by_default:
        document["renameByDefault"] = True
    if sharing.fail_requests_greater_than_one is not None:
        document["failRequestsGreaterThanOne"] = sharing.fail_requests_greater_than_one
    return document


def _encode_reference(reference: ConfigMapRef | None) -> Mapping[str, object] | None:
    if reference is None:
        return None
    document = {"namespace": reference.namespace, "name": reference.name}
    return {**document, "key": reference.key} if reference.key is not None else document


def _keys(mapping: YamlMapping, where: str, known: tuple[str, ...], inspection: Inspection) -> None:
    inspection.known_keys(mapping, where, known, homes=_HOMES)
    for entry in mapping.duplicates():
        inspection.error(
            "duplicate-key", f"key stands twice: {entry.key}", entry.at, "remove one", where
        )


def _policy(name: str, spec: YamlMapping, inspection: Inspection) -> PartitionPolicy | None:
    _keys(spec, "spec", _SPEC.keys, inspection)
    strategy = inspection.choice(spec.get("strategy"), "spec.strategy", Strategy, "strategy")
    if strategy is None:
        if spec.get("strategy") is None:
            known = ", ".join(member.value for member in Strategy)
            inspection.error("strategy-missing", "a policy needs spec.strategy", spec.at, known)
        return None
    follow = inspection.choice(spec.get("follow"), "spec.follow", Follow, "follow")
    budget = inspection.choice(
        spec.get("budgetEnforcement"), "spec.budgetEnforcement", BudgetEnforcement, "budget"
    )
    policy = PartitionPolicy(
        name=name,
        strategy=strategy,
        node_selector=_labels(spec.get("nodeSelector"), inspection),
        gpu_selector=_selector(spec.get("gpuSelector"), inspection),
        follow=follow or Follow.DEMAND,
        mig=_mig(spec.get("mig"), inspection),
        time_slicing=_sharing(spec.get("timeSlicing"), "spec.timeSlicing", inspection),
        mps=_sharing(spec.get("mps"), "spec.mps", inspection),
        budget=budget or BudgetEnforcement.WARN,
        config_map_ref=_reference(spec.get("configMapRef"), inspection),
        via=inspection.choice(spec.get("via"), "spec.via", Via, "via") or Via.PARTITA,
    )
    policy_rules.check(policy, spec, inspection)
    return policy


def _labels(node: YamlNode | None, inspection: Inspection) -> Mapping[str, str]:
    where = "spec.nodeSelector"
    mapping = inspection.mapping(node, where)
    found = {}
    for entry in mapping.last_entries() if mapping else ():
        value = inspection.text(entry.value, f"{where}.{entry.key}")
        if value is not None:
            found[entry.key] = value
    return found


def _selector(node: YamlNode | None, inspection: Inspection) -> GpuSelector:
    where = "spec.gpuSelector"
    mapping = inspection.mapping(node, where)
    if mapping is None:
        return GpuSelector()
    _keys(mapping, where, _SPEC.inner("gpuSelector").keys, inspection)
    indices = [
        inspection.integer(item, f"{where}.indices")
        for item in inspection.sequence(mapping.get("indices"), f"{where}.indices") or ()
    ]
    if any(index is not None and index < 0 for index in indices):
        inspection.error("index-negative", "GPU indices begin at 0", mapping.at, "write 0 or more")
    _models_known(mapping, inspection)
    return GpuSelector(
        models=_texts(mapping, "models", where, inspection),
        indices=tuple(index for index in indices if index is not None),
        uuids=_texts(mapping, "uuids", where, inspection),
    )


def _models_known(selector: YamlMapping, inspection: Inspection) -> None:
    """Note models that partita cannot plan for; wrong types are noted where the list is read."""
    models = selector.get("models")
    for item in models.items if isinstance(models, YamlSequence) else ():
        if not isinstance(item, YamlScalar) or not isinstance(item.value, str) or not item.value:
            continue
        if yaml_nodes.is_template(item):
            continue
        try:
            library.get(item.value)
        except UnknownModelError as error:
            inspection.warning(
                "model-unknown", error.message, item.at, error.hint, "spec.gpuSelector.models"
            )


def _texts(mapping: YamlMapping, key: str, where: str, inspection: Inspection) -> tuple[str, ...]:
    where = f"{where}.{key}"
    texts = []
    for item in inspection.sequence(mapping.get(key), where) or ():
        text = inspection.text(item, where)
        if text == "":
            message = f"{where} has an empty text, which means nothing"
            inspection.error("empty-text", message, item.at, "remove it", where)
        texts += [text] if text else []
    return tuple(texts)


def _mig(node: YamlNode | None, inspection: Inspection) -> MigParameters:
    where = "spec.mig"
    mapping = inspection.mapping(node, where)
    if mapping is None:
        return MigParameters()
    _keys(mapping, where, _SPEC.inner("mig").keys, inspection)
    profiles = _texts(mapping, "profiles", where, inspection)
    for profile in profiles:
        _profile(profile, mapping, inspection)
    return MigParameters(
        layout=_layout(mapping, inspection),
        profiles=profiles,
        allow_reset=bool(inspection.boolean(mapping.get("allowReset"), f"{where}.allowReset")),
    )


def _layout(mig: YamlMapping, inspection: Inspection) -> Mapping[str, int] | None:
    where = "spec.mig.layout"
    mapping = inspection.mapping(mig.get("layout"), where)
    if mapping is None:
        return None
    layout = {}
    for entry in mapping.last_entries():
        _profile(entry.key, mapping, inspection)
        count = inspection.integer(entry.value, f"{where}.{entry.key}")
        if count is not None and count < 1:
            message = f"a count is 1 or more: {count}"
            inspection.error("count", message, entry.value.at, "remove the profile", where)
        elif count is not None:
            layout[entry.key] = count
    return layout


def _profile(profile: str, mapping: YamlMapping, inspection: Inspection) -> None:
    if not mig_layouts.boards_with([profile]):
        inspection.error(
            "profile-unknown",
            f"no board of the catalogue has this profile: {profile}",
            mapping.at,
            "`partita gpus` lists the profiles of every board",
            "spec.mig",
        )


def _sharing(node: YamlNode | None, where: str, inspection: Inspection) -> SharingParameters | None:
    mapping = inspection.mapping(node, where)
    if mapping is None:
        return None
    _keys(mapping, where, _SHARING.keys, inspection)
    fail = "failRequestsGreaterThanOne"
    resources = _resources(mapping, f"{where}.resources", inspection)
    return SharingParameters(
        resources=resources,
        rename_by_default=bool(
            inspection.boolean(mapping.get("renameByDefault"), f"{where}.renameByDefault")
        ),
        fail_requests_greater_than_one=inspection.boolean(mapping.get(fail), f"{where}.{fail}"),
    )


def _resources(
    mapping: YamlMapping, where: str, inspection: Inspection
) -> tuple[SharedResource, ...]:
    found: list[SharedResource] = []
    for item in inspection.sequence(mapping.get("resources"), where) or ():
        inner = inspection.mapping(item, where)
        shared = _shared_resource(inner, where, inspection) if inner else None
        if shared is not None and any(shared.name == one.name for one in found):
            message = f"this resource is listed twice: {shared.name}"
            inspection.error("duplicate-item", message, item.at, "remove one", where)
        found += [shared] if shared else []
    if not found:
        hint = "list `- name: nvidia.com/gpu` with replicas"
        inspection.error("no-resources", "nothing to share is listed", mapping.at, hint, where)
    return tuple(found)


def _shared_resource(
    mapping: YamlMapping, where: str, inspection: Inspection
) -> SharedResource | None:
    _keys(mapping, where, _SHARING.inner("resources").keys, inspection)
    name = inspection.text(mapping.get("name"), f"{where}.name")
    replicas = inspection.integer(mapping.get("replicas"), f"{where}.replicas")
    if replicas is not None and replicas < 2:  # noqa: PLR2004 - one replica is not shared
        message = f"replicas is 2 or more, to stop sharing use strategy Whole: {replicas}"
        inspection.error("replicas-too-few", message, mapping.at, "write 2 or more", where)
    if name is not None and name != resource.WHOLE_GPU and resource.mig_profile(name) is None:
        hint = "write nvidia.com/gpu or nvidia.com/mig-<profile>"
        message = f"no device ever has this name: {name}"
        inspection.error("unknown-resource", message, mapping.at, hint, where)
    if not name or replicas is None:
        hint = "write both"
        inspection.error("no-resources", "name or replicas is missing", mapping.at, hint, where)
        return None
    return SharedResource(name=name, replicas=replicas)


def _reference(node: YamlNode | None, inspection: Inspection) -> ConfigMapRef | None:
    where = "spec.configMapRef"
    mapping = inspection.mapping(node, where)
    if mapping is None:
        return None
    _keys(mapping, where, _SPEC.inner("configMapRef").keys, inspection)
    namespace = inspection.text(mapping.get("namespace"), f"{where}.namespace")
    name = inspection.text(mapping.get("name"), f"{where}.name")
    if not namespace or not name:
        hint = "write both"
        inspection.error("reference", "namespace or name is missing", mapping.at, hint, where)
        return None
    return ConfigMapRef(
        namespace=namespace, name=name, key=inspection.text(mapping.get("key"), f"{where}.key")
    )
