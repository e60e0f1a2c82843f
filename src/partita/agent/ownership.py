"""Who else has the GPUs of this node, and how they are handed over. Pure.

Two programs that serve or cut the same GPUs undo each other's work, so the agent does nothing as
long as somebody else is active: it says who and what to do, and begins when the other has gone.
"""

from collections.abc import Mapping

from partita.agent.observation import Observation
from partita.model import resource
from partita.ports.neighbours import Signs

__all__ = ["rival"]

_PROGRAMS: Mapping[str, str] = {
    "nvidia-device-plugin": "label the node nvidia.com/gpu.deploy.device-plugin=false",
    "nvidia-mig-manager": "label the node nvidia.com/gpu.deploy.mig-manager=false",
    "gpu-kubelet-plugin": "take the node out of the DRA driver's DaemonSet",
}
_STOP = "end it on this node, by its DaemonSet's node selector"
_MIG_STATE = "nvidia.com/mig.config.state"


def rival(observation: Observation, *, begun: bool) -> tuple[str, str] | None:
    """Return who else is active and how to hand over, None when nobody is.

    Args:
        observation: What is seen.
        begun: Whether this agent serves already; what the kubelet knows is then its own.
    """
    signs = observation.signs
    if signs.rival_agent is not None:
        return (
            f"another agent of partita has this node: {signs.rival_agent}",
            "nothing to do: this one takes over when that one ends",
        )
    found = _program(signs) or _socket(signs) or _labelled(signs)
    if found is not None or begun:
        return found
    if signs.claim_problem is not None:
        return f"this node cannot be claimed: {signs.claim_problem}", "see the agent's log"
    return _foreign_devices(observation)


def _program(signs: Signs) -> tuple[str, str] | None:
    for program, process_id in signs.programs.items():
        hand_over = _PROGRAMS.get(program, _STOP)
        return f"{program} runs on this node as process {process_id}", hand_over
    return None


def _socket(signs: Signs) -> tuple[str, str] | None:
    for socket in signs.plugin_sockets:
        if socket.startswith("nvidia"):
            return f"another device plugin answers at {socket}", _PROGRAMS["nvidia-device-plugin"]
    for socket in signs.registry_sockets:
        if socket.startswith(resource.DRA_DRIVER):
            return f"the DRA driver answers at {socket}", _PROGRAMS["gpu-kubelet-plugin"]
    return None


def _labelled(signs: Signs) -> tuple[str, str] | None:
    state = (signs.labels or {}).get(_MIG_STATE)
    if state in ("pending", "rebooting"):
        return f"mig-manager is at work, label {_MIG_STATE}: {state}", "wait until it has finished"
    return None


def _foreign_devices(observation: Observation) -> tuple[str, str] | None:
    """Return the resource that the kubelet has usable devices of before we offered any."""
    evidence = observation.kubelet
    for name, device_ids in evidence.allocatable.items() if evidence is not None else ():
        if resource.is_gpu(name) and device_ids:
            return (
                f"another device plugin serves {len(device_ids)} devices of {name}",
                _PROGRAMS["nvidia-device-plugin"],
            )
    return None
