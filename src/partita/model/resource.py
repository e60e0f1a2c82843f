"""Extended resource names, as NVIDIA's device plugin forms them.

``nvidia.com/gpu`` for whole GPUs; ``nvidia.com/mig-<profile>`` for MIG under the *mixed* strategy,
where ``+`` of an attribute becomes ``.`` (``1g.10gb+me`` → ``mig-1g.10gb.me``) and a negative
attribute keeps its ``-``; a ``.shared`` suffix when a shared resource is renamed.
Source: NVIDIA/k8s-device-plugin, ``internal/rm`` and README, v0.20.0.
"""

import re

__all__ = [
    "DOMAIN",
    "DRA_DRIVER",
    "SHARED_SUFFIX",
    "WHOLE_GPU",
    "is_gpu",
    "mig_profile",
    "mig_resource",
    "shared",
    "unshared",
]

DOMAIN = "nvidia.com/"
DRA_DRIVER = "gpu.nvidia.com"
"""Name of NVIDIA's DRA driver for GPUs; it has others, for what is no GPU."""
WHOLE_GPU = "nvidia.com/gpu"
SHARED_SUFFIX = ".shared"

_MIG_PREFIX = "nvidia.com/mig-"
_RESOURCE_PROFILE = re.compile(r"^(\d+g\.\d+gb)((?:\.[a-z]+)*)((?:-[a-z]+)?)$")


def mig_resource(profile: str) -> str:
    """Return the resource name of a MIG profile: ``1g.10gb+me`` → ``nvidia.com/mig-1g.10gb.me``."""
    return _MIG_PREFIX + profile.replace("+", ".")


def mig_profile(resource: str) -> str | None:
    """Return the MIG profile of a resource name, or None when it names something else.

    A ``.shared`` suffix is ignored. ``nvidia.com/mig-1g.10gb.me.all`` → ``1g.10gb+me.all``.
    """
    if not resource.startswith(_MIG_PREFIX):
        return None
    match = _RESOURCE_PROFILE.match(unshared(resource).removeprefix(_MIG_PREFIX))
    if match is None:
        return None
    size, attributes, negative = match.groups()
    return size + ("+" + attributes[1:] if attributes else "") + negative


def is_gpu(resource: str) -> bool:
    """Tell whether a resource is of whole GPUs or MIG devices, shared or not."""
    return unshared(resource) == WHOLE_GPU or mig_profile(resource) is not None


def shared(resource: str) -> str:
    """Return the renamed form of a shared resource: ``nvidia.com/gpu.shared``."""
    return resource + SHARED_SUFFIX


def unshared(resource: str) -> str:
    """Return the resource name without a ``.shared`` suffix."""
    return resource.removesuffix(SHARED_SUFFIX)
