"""What keeps an agent to its own node: a ValidatingAdmissionPolicy on the node in its token.

A token that the kubelet fetches for a pod says on which node the pod is; RBAC cannot tell nodes
apart, this can. It needs Kubernetes 1.32 or later, where every such token has the node's name.
"""

from collections.abc import Mapping, Sequence

from partita.manifests import agent
from partita.manifests.crds import DEFINITIONS

__all__ = ["NAME", "documents"]

NAME = "partita-agent-writes-its-own-node"

_GROUP = DEFINITIONS[0].name.partition(".")[2]
_NODE = "authentication.kubernetes.io/node-name"


def documents(*, namespace: str = agent.NAMESPACE) -> Sequence[Mapping[str, object]]:
    """Return the policy and its binding.

    Args:
        namespace: Where the agents run.
    """
    version = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": _policy(f"system:serviceaccount:{namespace}:{agent.ACCOUNT}"),
    }
    binding = {
        "apiVersion": version,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }
    return (policy, binding)


def _policy(user: str) -> Mapping[str, object]:
    resource = {
        "apiGroups": [_GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["gpunodes", "gpunodes/status"],
    }
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [resource]},
        "matchConditions": [
            {"name": "is-an-agent", "expression": f"request.userInfo.username == '{user}'"}
        ],
        "variables": [
            {
                "name": "node",
                "expression": f"'{_NODE}' in request.userInfo.extra"
                f" ? request.userInfo.extra['{_NODE}'][0] : ''",
            },
            {
                "name": "written",
                "expression": "object != null ? object.metadata.name : oldObject.metadata.name",
            },
        ],
        "validations": [
            {
                "expression": "variables.node != ''",
                "message": "the agent's token does not say on which node it is",
                "reason": "Forbidden",
            },
            {
                "expression": "variables.written == variables.node",
                "messageExpression": "'the agent on node ' + variables.node"
                " + ' may not write the GPUNode of: ' + variables.written",
                "message": "an agent may write the GPUNode of its own node only",
                "reason": "Forbidden",
            },
            {
                "expression": "request.operation != 'CREATE' || !has(object.spec)"
                " || !has(object.spec.gpus)",
                "message": "an agent may not say itself what its GPUs are to be",
                "reason": "Forbidden",
            },
        ],
    }
