"""Calls Allocate as a kubelet does, one call after the other: ``python -m bench.agent.caller``.

Its arguments are a number of calls and the sockets; it calls all in turn, so that whatever else
runs on the machine meets all. It reads the devices as a JSON list, and prints the seconds of every
call, a list per socket.
"""

import json
import sys
import time
from collections.abc import Callable

import grpc

from partita.wire import device_plugin

__all__: list[str] = []

_WARM_UP = 20  # calls that do not count


def _allocate(channel: grpc.Channel) -> Callable[[str], float]:
    method = channel.unary_unary(
        device_plugin.DevicePlugin.Allocate.path,
        device_plugin.AllocateRequest.SerializeToString,
        device_plugin.AllocateResponse.FromString,
    )

    def call(name: str) -> float:
        one = device_plugin.ContainerAllocateRequest(devices_ids=[name])
        request = device_plugin.AllocateRequest(container_requests=[one])
        began = time.perf_counter()
        method(request)
        return time.perf_counter() - began

    return call


def _main(calls: int, sockets: list[str]) -> None:
    channels = [grpc.insecure_channel(f"unix:{socket}") for socket in sockets]
    plugins: list[tuple[Callable[[str], float], list[float]]] = [
        (_allocate(channel), []) for channel in channels
    ]
    names = json.loads(sys.stdin.read())
    for number in range(-_WARM_UP, calls):
        for call, seconds in plugins:
            spent = call(names[number % len(names)])
            if number >= 0:
                seconds.append(spent)
    json.dump([seconds for _, seconds in plugins], sys.stdout)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
