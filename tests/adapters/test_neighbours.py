"""What is seen of others on a node, and who has it."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from partita.adapters.neighbours import CLAIM, PROGRAMS, KubeletNeighbours
from partita.errors import KubeletError
from partita.ports.neighbours import Signs
from partita.ports.process_table import Process

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Programs:
    """A process table of running programs."""

    def __init__(self, **running: int) -> None:
        self.running = {name.replace("_", "-"): pid for name, pid in running.items()}
        self.looks = 0

    def find(self, process_ids: Collection[int]) -> Mapping[int, Process]:
        """Return nothing: nobody asks."""
        raise AssertionError(process_ids)

    def programs(self, names: Collection[str]) -> Sequence[Process]:
        """Return the programs of these names."""
        self.looks += 1
        return tuple(
            Process(process_id=pid, started=1, name=name[:15])
            for name, pid in self.running.items()
            if name in names
        )


class Node:
    """The kubelet's folders, with sockets in them."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.device_plugins = root / "device-plugins"
        self.registry = root / "plugins_registry"
        self.device_plugins.mkdir()
        self.registry.mkdir()
        self._stack = stack

    def agent(
        self,
        programs: Programs | None = None,
        labels: Callable[[], Mapping[str, str] | None] | None = None,
    ) -> KubeletNeighbours:
        """Return what an agent sees of this node."""
        return KubeletNeighbours(
            programs or Programs(),
            labels=labels,
            device_plugins=self.device_plugins,
            registry=self.registry,
            now=lambda: NOON,
        )

    def listen(
        self, path: Path, *, alive: bool = True, kind: socket.SocketKind = socket.SOCK_STREAM
    ) -> socket.socket:
        """Put a socket there, at which somebody listens, or no longer does."""
        path.parent.mkdir(exist_ok=True)
        server = self._stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        before = Path.cwd()
        os.chdir(path.parent)  # an address has 108 bytes
        try:
            server.bind(path.name)
        finally:
            os.chdir(before)
        if kind is socket.SOCK_STREAM:
            server.listen(1)
        if not alive:
            server.close()
        return server


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Return a node without anybody."""
    with ExitStack() as stack:
        yield Node(tmp_path, stack)


# ---- Looking ------------------------------------------------------------------------------------


def test_nobody_is_there(node: Node) -> None:
    """An empty node, and one without the kubelet's folders, shows nothing."""
    assert node.agent().look() == Signs()
    node.registry.rmdir()
    node.device_plugins.rmdir()
    assert node.agent().look() == Signs()


def test_sockets_at_which_somebody_answers(node: Node) -> None:
    """The kubelet's own and ours are no sign, nor is what was left behind."""
    for name in ("kubelet.sock", "nvidia-gpu.sock", "partita-abc.sock", "vendor.sock"):
        node.listen(node.device_plugins / name)
    node.listen(node.device_plugins / "nvidia-old.sock", alive=False)
    node.listen(node.device_plugins / "letters.sock", kind=socket.SOCK_DGRAM)
    (node.device_plugins / "kubelet_internal_checkpoint").write_text("{}", encoding="ascii")
    (node.device_plugins / "broken.sock").symlink_to("nowhere")
    assert node.agent().look().plugin_sockets == ("nvidia-gpu.sock", "vendor.sock")


def test_the_registry_is_looked_through(node: Node) -> None:
    """Plugins of any kind register there, also in folders, as the kubelet accepts it."""
    node.listen(node.registry / "gpu.nvidia.com-reg.sock")
    node.listen(node.registry / "compute" / "reg.sock")
    node.listen(node.registry / "old-reg.sock", alive=False)
    signs = node.agent().look()
    assert signs.registry_sockets == ("compute/reg.sock", "gpu.nvidia.com-reg.sock")


def test_who_is_busy_is_alive(node: Node) -> None:
    """A plugin that does not come to accept connections is still there, and is not waited for."""
    node.listen(node.device_plugins / "nvidia-gpu.sock")
    looks = [node.agent().look().plugin_sockets for _ in range(5)]
    assert looks == [("nvidia-gpu.sock",)] * 5


def test_a_look_says_nothing(node: Node) -> None:
    """Whoever answers sees a connection that is closed without a byte."""
    server = node.listen(node.device_plugins / "nvidia-gpu.sock")
    node.agent().look()
    connection, _ = server.accept()
    with connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize("name", ["kubelet.sock", "partita-abc.sock"])
def test_the_kubelet_and_agents_are_left_alone(node: Node, name: str) -> None:
    """Nobody connects to them."""
    server = node.listen(node.device_plugins / name)
    server.settimeout(0)
    assert node.agent().look().plugin_sockets == ()
    with pytest.raises(BlockingIOError):
        server.accept()


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """The path of a socket may be longer than an address."""
    root = tmp_path / ("deep-" * 20)
    root.mkdir()
    with ExitStack() as stack:
        node = Node(root, stack)
        node.listen(node.device_plugins / "nvidia-gpu.sock")
        assert node.agent().look().plugin_sockets == ("nvidia-gpu.sock",)


def test_programs_are_named_in_full(node: Node) -> None:
    """Each is told with a PID; the table is searched once when there is none."""
    programs = Programs(nvidia_device_plugin=71, nvidia_mig_manager=5, bash=1)
    found = node.agent(programs).look().programs
    assert found == {"nvidia-device-plugin": 71, "nvidia-mig-manager": 5}
    nobody = Programs(bash=1)
    assert node.agent(nobody).look().programs == {}
    assert nobody.looks == 1
    assert len(set(PROGRAMS)) == len(PROGRAMS)


def _refuse() -> Mapping[str, str]:
    raise KubeletError(message="no answer", hint="wait")


@pytest.mark.parametrize(
    ("labels", "told"),
    [(None, None), (lambda: None, None), (_refuse, None), (lambda: {"a": "b"}, {"a": "b"})],
)
def test_labels_are_passed_on(
    node: Node,
    labels: Callable[[], Mapping[str, str] | None] | None,
    told: Mapping[str, str] | None,
) -> None:
    """Labels that nobody tells, or cannot tell now, are unknown."""
    assert node.agent(labels=labels).look().labels == told


# ---- The claim ----------------------------------------------------------------------------------

_HOLDER = """
import sys
from pathlib import Path
from partita.adapters.neighbours import KubeletNeighbours
from partita.adapters.processes import ProcProcessTable
print(KubeletNeighbours(ProcProcessTable(), device_plugins=Path(sys.argv[1])).take(), flush=True)
sys.stdin.read()
"""


def test_one_agent_has_the_node(node: Node) -> None:
    """The second learns who the first is, which sees no rival, and may ask again."""
    first, second = node.agent(), node.agent()
    assert (first.take(), second.take(), first.take()) == (True, False, True)
    who = f"process {os.getpid()} on {socket.gethostname()} since 2026-03-01T12:00:00+00:00"
    assert second.look().rival_agent == who
    assert first.look().rival_agent is None


def test_a_look_does_not_take_the_node(node: Node) -> None:
    """However many look, the node is free for whoever takes it."""
    lookers = [node.agent() for _ in range(3)]
    assert [agent.look().rival_agent for agent in lookers] == [None] * 3
    assert lookers[1].take()
    assert [agent.look().rival_agent is None for agent in lookers] == [False, True, False]


def test_a_claim_that_was_given_back_can_be_taken(node: Node) -> None:
    """What the file still says is of the past."""
    first, second = node.agent(), node.agent()
    assert first.take()
    first.close()
    first.close()
    assert second.look().rival_agent is None
    assert second.take()
    assert not first.take()


def test_the_kernel_ends_the_claim_of_an_agent_that_is_killed(node: Node) -> None:
    """No word of goodbye is needed."""
    command = [sys.executable, "-c", _HOLDER, str(node.device_plugins)]
    with subprocess.Popen(  # noqa: S603 - no shell
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        agent = node.agent()
        assert not agent.take()
        rival = agent.look().rival_agent
        other.kill()
        other.communicate()
    assert rival is not None
    assert rival.startswith(f"process {other.pid} on ")
    assert agent.look().rival_agent is None
    assert agent.take()


def test_a_rival_may_not_have_said_who_it_is(node: Node) -> None:
    """Between its claim and its word it is there nevertheless."""
    first, second = node.agent(), node.agent()
    assert first.take()
    (node.device_plugins / CLAIM).write_text("", encoding="ascii")
    assert second.look().rival_agent == "one that has not yet said who it is"


def test_a_look_tells_whether_the_node_is_claimed(node: Node) -> None:
    """It tells of the last attempt; looking itself attempts nothing."""
    first, second = node.agent(), node.agent()
    assert not first.look().claimed
    first.take()
    second.take()
    assert [agent.look().claimed for agent in (first, second)] == [True, False]
    assert [agent.look().claim_problem for agent in (first, second)] == [None, None]


def test_a_claim_whose_file_was_removed_is_made_anew(node: Node) -> None:
    """Otherwise the next agent would claim a file of its own, and both would have the node."""
    first, second = node.agent(), node.agent()
    assert first.take()
    (node.device_plugins / CLAIM).unlink()
    assert first.take()
    assert not second.take()
    assert second.look().rival_agent is not None


def test_a_claim_that_another_agent_made_anew_is_lost(node: Node) -> None:
    """Who was quicker with the new file has the node, and the first one says so."""
    first, second = node.agent(), node.agent()
    assert first.take()
    (node.device_plugins / CLAIM).unlink()
    assert second.take()
    assert not first.take()
    signs = first.look()
    assert not signs.claimed
    assert signs.rival_agent is not None


def test_a_claim_whose_folder_vanished_is_a_problem(node: Node) -> None:
    """It is told until the folder is there again."""
    agent = node.agent()
    assert agent.take()
    (node.device_plugins / CLAIM).unlink()
    node.device_plugins.rmdir()
    with pytest.raises(KubeletError):
        agent.take()
    signs = agent.look()
    assert not signs.claimed
    assert "cannot claim the node: No such file" in (signs.claim_problem or "")
    node.device_plugins.mkdir()
    assert agent.take()
    assert (agent.look().claimed, agent.look().claim_problem) == (True, None)


def test_the_claim_survives_the_start_of_a_kubelet(node: Node) -> None:
    """A kubelet removes the sockets of its folder, and the claim is none."""
    first, second = node.agent(), node.agent()
    assert first.take()
    node.listen(node.device_plugins / "nvidia-gpu.sock")
    for path in node.device_plugins.iterdir():
        if path.is_socket():
            path.unlink()
    assert not second.take()


def test_without_a_kubelet_there_is_no_claim(node: Node) -> None:
    """The folder is the kubelet's to make."""
    node.device_plugins.rmdir()
    with pytest.raises(KubeletError, match=r"cannot claim the node: No such file .*: .*lock\nhint"):
        node.agent().take()
    assert not node.device_plugins.exists()


def test_a_claim_that_cannot_be_made_is_not_that_of_another(node: Node) -> None:
    """Whatever is in its place is no agent."""
    (node.device_plugins / CLAIM).mkdir()
    with pytest.raises(KubeletError, match="cannot claim the node: Is a directory"):
        node.agent().take()
    assert node.agent().look().rival_agent is None
