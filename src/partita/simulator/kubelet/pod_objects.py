"""Pods as objects of the Kubernetes API: what a device manager reads of them, and their status."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partita.simulator.kubelet.containers import RunningContainer, StartFailedError
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.pods import Container, Pod

__all__ = ["Object", "PodOfNode", "parse"]

Object = dict[str, Any]

_BUILT_IN = ("cpu", "memory", "ephemeral-storage", "hugepages-")


@dataclass(slots=True, kw_only=True)
class PodOfNode:
    """A pod on the node.

    Attributes:
        object: The pod as in the API.
        pod: What the device manager reads of it.
        containers: Its running containers by name.
        failures: Why a container does not start, by name.
        admitted: Whether it has its devices.
    """

    object: Object
    pod: Pod
    containers: dict[str, RunningContainer] = field(default_factory=dict)
    failures: dict[str, StartFailedError] = field(default_factory=dict)
    admitted: bool = False

    @property
    def ended(self) -> bool:
        """Whether it has ended or was refused."""
        return self.object["status"]["phase"] in {"Succeeded", "Failed"}

    def refuse(self, reason: str, message: str) -> None:
        """Let it have failed before it began."""
        self.object["status"] = {"phase": "Failed", "reason": reason, "message": message}

    def end(self, phase: str) -> None:
        """Let it have ended by itself."""
        code, reason = (0, "Completed") if phase == "Succeeded" else (1, "Error")
        state = {"terminated": {"exitCode": code, "reason": reason}}
        statuses = self.object["status"].get("containerStatuses", [])
        ended = [one | {"ready": False, "state": state} for one in statuses]
        self.object["status"] = {"phase": phase, "containerStatuses": ended}
        self.containers.clear()

    def report(self, devices: DeviceManager) -> None:
        """Bring the status of a pod that was admitted up to date."""
        names = [one["name"] for one in self.object["spec"]["containers"]]
        statuses = [self._container_status(name, devices) for name in names]
        running = all(name in self.containers for name in names)
        phase = "Running" if running else "Pending"
        self.object["status"] = {"phase": phase, "containerStatuses": statuses}

    def _container_status(self, name: str, devices: DeviceManager) -> Object:
        container, failure = self.containers.get(name), self.failures.get(name)
        status: Object = {"name": name, "ready": container is not None}
        if container is not None:
            status |= {"containerID": f"containerd://{container.container_id}"}
            status |= {"state": {"running": {}}}
        elif failure is not None:
            state = {"reason": failure.reason, "message": str(failure)}
            status |= {"state": {"waiting": state}}
        health = _health(devices, self.pod.uid, name)
        return status | ({"allocatedResourcesStatus": health} if health else {})


def _health(devices: DeviceManager, uid: str, container: str) -> list[Object]:
    return [
        {
            "name": resource,
            "resources": [
                {
                    "health": "Healthy" if devices.is_healthy(resource, one) else "Unhealthy",
                    "resourceID": one,
                }
                for one in sorted(entry.devices)
            ],
        }
        for resource, entry in devices.held(uid, container).items()
    ]


def parse(pod: Mapping[str, Any]) -> Pod:
    """Return what the device manager reads of a pod that has a UID."""
    specification, metadata = pod["spec"], pod["metadata"]
    initial = _containers(specification.get("initContainers", ()), initial=True)
    others = _containers(specification["containers"], initial=False)
    return Pod(
        uid=metadata["uid"],
        name=metadata["name"],
        namespace=metadata["namespace"],
        containers=(*initial, *others),
    )


def _containers(
    specifications: Iterable[Mapping[str, Any]], *, initial: bool
) -> Iterable[Container]:
    for one in specifications:
        limits = one.get("resources", {}).get("limits", {})
        yield Container(
            name=one["name"],
            requests={
                name: int(count) for name, count in limits.items() if not name.startswith(_BUILT_IN)
            },
            initial=initial,
            restartable=one.get("restartPolicy") == "Always",
        )
