"""Under which names, and how often, the devices of a GPU are served. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from partita.config.agent_document import AgentDocument
from partita.config.device_plugin import MigStrategy
from partita.config.partition_policy import PartitionPolicy, Strategy
from partita.model import resource

__all__ = ["Family", "ServingRule", "of_document", "of_policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What one device is served as.

    Attributes:
        resource: Resource name.
        replicas: How many slots it has, 1 = it is not shared.
    """

    resource: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRule:
    """How the devices of one GPU are served.

    Attributes:
        naming: How MIG devices are named.
        whole: Whether the GPU may be served as a whole.
        replicas: Resource name without suffix → slots of each of its devices.
        renamed: Whether shared resources get the suffix ``.shared``.
        one_each: Whether a container may not ask for more than one shared slot.
    """

    naming: MigStrategy = MigStrategy.MIXED
    whole: bool = True
    replicas: Mapping[str, int] = field(default_factory=dict)
    renamed: bool = False
    one_each: bool = False

    def gpu(self) -> Family:
        """Return what a whole GPU is served as."""
        return self._family(resource.WHOLE_GPU)

    def mig_device(self, profile: str) -> Family:
        """Return what a MIG device of a profile is served as."""
        single = self.naming is MigStrategy.SINGLE
        return self._family(resource.WHOLE_GPU if single else resource.mig_resource(profile))

    def _family(self, name: str) -> Family:
        replicas = self.replicas.get(name, 1)
        shared = self.renamed and replicas > 1
        return Family(resource=resource.shared(name) if shared else name, replicas=replicas)


def of_document(document: AgentDocument) -> ServingRule:
    """Return the rule of NVIDIA's configuration, or the plain one without any."""
    if document.plugin is None:
        return ServingRule()
    sharing = document.plugin.sharing
    return ServingRule(
        naming=document.plugin.mig_strategy or MigStrategy.NONE,
        replicas={entry.name: entry.replicas for entry in sharing.entries} if sharing else {},
        renamed=sharing is not None and sharing.rename_by_default,
        one_each=sharing is not None and bool(sharing.fail_requests_greater_than_one),
    )


def of_policy(policies: Sequence[PartitionPolicy]) -> ServingRule:
    """Return the rule for a GPU that these policies select; unless it is one, the plain rule."""
    if len(policies) != 1:
        return ServingRule()
    (policy,) = policies
    sharing = policy.time_slicing
    return ServingRule(
        whole=policy.strategy is not Strategy.MIG,
        replicas={one.name: one.replicas for one in sharing.resources} if sharing else {},
        renamed=sharing is not None and sharing.rename_by_default,
        one_each=sharing is not None and bool(sharing.fail_requests_greater_than_one),
    )
