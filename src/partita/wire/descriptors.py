"""Classes and methods made from the serialized descriptors beside this module.

The pool is private: another user of protobuf in the process may describe the same packages or
files, and generated code would be tied to one release of the runtime. Neither matters here.
"""

from collections.abc import Mapping
from importlib import resources
from types import SimpleNamespace

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from partita.wire.methods import StreamMethod, UnaryMethod

__all__ = ["load"]

_POOL = DescriptorPool()


def load(name: str) -> Mapping[str, object]:
    """Return the messages and services of one API, by name; ``name`` is that of its module."""
    data = resources.files("partita.wire").joinpath(f"{name}.binpb").read_bytes()
    (described,) = FileDescriptorSet.FromString(data).file
    _POOL.Add(described)
    file = _POOL.FindFileByName(described.name)
    messages = {key: GetMessageClass(one) for key, one in file.message_types_by_name.items()}
    services = {
        key: SimpleNamespace(**{method.name: _method(method) for method in one.methods})
        for key, one in file.services_by_name.items()
    }
    return dict(sorted({**messages, **services}.items()))


def _method(method: MethodDescriptor) -> object:
    kind = StreamMethod if method.server_streaming else UnaryMethod
    service = method.containing_service
    return kind(
        f"/{service.full_name}/{method.name}",
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
    )
