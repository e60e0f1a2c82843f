"""The conversation between a kubelet that admits a pod and the plugins it asks.

Whoever holds an ``Admission`` answers one question after the other, and can let the world change
in between: that is how a race is written down. The exceptions are events of the simulated world,
for whoever drives it; none of them is for a user.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

__all__ = [
    "Admission",
    "AdmissionRefusedError",
    "Allocate",
    "Answer",
    "Conversation",
    "KubeletCrashedError",
    "OutOfResourceError",
    "PluginRefusedError",
    "Prefer",
    "Question",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """GetPreferredAllocation: which devices had the plugin rather given out?

    Attributes:
        resource: Resource name.
        socket: Socket of the plugin that is asked.
        available: Device IDs to choose from, in order.
        must_include: Those of them that are given in any case.
        count: How many devices the container gets.
    """

    resource: str
    socket: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """Allocate: the kubelet has picked these devices for a container.

    Attributes:
        resource: Resource name.
        socket: Socket of the plugin that is asked.
        devices: Device IDs, in order.
    """

    resource: str
    socket: str
    devices: tuple[str, ...]


Question = Prefer | Allocate
Answer = tuple[str, ...] | bytes | None
"""To ``Prefer`` device IDs; to ``Allocate`` the serialised response, None for no response in it."""
Conversation = Generator[Question, Answer, None]


class AdmissionRefusedError(Exception):
    """When the kubelet refuses a pod for good, in its own words."""

    @property
    def reason(self) -> str:
        """What the pod's status says in one word."""
        return "UnexpectedAdmissionError"

    @property
    def message(self) -> str:
        """What the pod's status says."""
        return f"Pod was rejected: Allocate failed due to {self}, which is unexpected"


class OutOfResourceError(AdmissionRefusedError):
    """When a pod that was given its devices asks for more than the node has left by its count.

    The kubelet adds up what pods ask for after it has given devices, not before.
    """

    def __init__(self, resource: str, *, requested: int, used: int, capacity: int) -> None:
        super().__init__(
            f"Node didn't have enough resource: {resource}, "
            f"requested: {requested}, used: {used}, capacity: {capacity}"
        )
        self.resource = resource

    @property
    def reason(self) -> str:
        """What the pod's status says in one word."""
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        """What the pod's status says."""
        return f"Pod was rejected: {self}"


class PluginRefusedError(Exception):
    """When a plugin answers with an error; its text is what the kubelet makes of that error."""


class KubeletCrashedError(Exception):
    """When a kubelet ends by a fault of its own, as the real one does.

    After the plugin has answered Allocate, the kubelet (1.37) looks up the NUMA nodes of each
    device in the present list, and does not expect one to be missing
    (``allocateContainerResources`` in ``pkg/kubelet/cm/devicemanager/manager.go``). So a plugin
    that drops a device from its list while Allocate is on its way ends the kubelet, which comes
    back with the checkpoint of before.
    """


class Admission:
    """A pod on its way in; ``question`` is what a plugin is asked now, None when the pod is in."""

    __slots__ = ("_conversation", "_end", "question")

    def __init__(self, conversation: Conversation, end: Callable[[], None]) -> None:
        self.question: Question | None = None
        self._conversation = conversation
        self._end = end
        self._go_on(lambda: next(conversation))

    def answer(self, answer: Answer) -> None:
        """Give the plugin's answer to the question.

        Raises:
            AdmissionRefusedError: When the pod is refused; ``question`` is None then.
            KubeletCrashedError: When the kubelet does not survive it.
        """
        self._go_on(lambda: self._conversation.send(answer))

    def refuse(self, text: str) -> None:
        """Give the plugin's refusal of the question.

        Raises:
            AdmissionRefusedError: Always; the pod is not tried again.
        """
        self._go_on(lambda: self._conversation.throw(PluginRefusedError(text)))

    def _go_on(self, step: Callable[[], Question]) -> None:
        self.question = None
        try:
            self.question = step()
        except StopIteration:
            pass
        finally:
            if self.question is None:
                self._end()
