"""Everything that a long-running program writes to stderr has the form that was asked for."""

import json
import subprocess
import sys

import pytest

_CONFIGURED = """
import asyncio, logging, threading
from partita.cli.logs import LogForm, configure
configure(LogForm.{form}, level="{level}")
"""
_TASK = """
async def run():
    async def fail():
        raise ValueError("in a task")
    asyncio.create_task(fail())
    await asyncio.sleep(0)
asyncio.run(run())
"""
_THREAD = """
def fail():
    raise ValueError("in a thread")
thread = threading.Thread(target=fail, name="worker")
thread.start()
thread.join()
"""
_PROGRAM = """
raise ValueError("in the program")
"""


def _stderr(text: str, *, form: str = "JSON", level: str = "info") -> list[str]:
    """Return the lines that a program writes once its logs are configured."""
    program = _CONFIGURED.format(form=form, level=level) + text
    command = [sys.executable, "-c", program]
    done = subprocess.run(  # noqa: S603 - no shell
        command, check=False, capture_output=True, text=True, timeout=50
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("text", "message", "fault"),
    [
        (_TASK, "Task exception was never retrieved", "ValueError: in a task"),
        (_THREAD, "a fault ends the thread worker", "ValueError: in a thread"),
        (_PROGRAM, "a fault ends the program", "ValueError: in the program"),
    ],
)
def test_a_fault_that_nobody_catches_is_one_line_of_json(
    text: str, message: str, fault: str
) -> None:
    """A collector reads line by line, and a bare traceback is no line that it understands."""
    (line,) = _stderr(text)

    said = json.loads(line)

    assert said["message"].startswith(message)
    assert said["exception"].endswith(fault)


def test_warnings_of_others_are_logged_and_their_chatter_is_not() -> None:
    """Ours is logged from the level that was asked for."""
    lines = _stderr("""
for name in ("grpc", "partita.agent"):
    logging.getLogger(name).warning("a warning")
    logging.getLogger(name).info("chatter")
""")

    assert [(one["logger"], one["message"]) for one in map(json.loads, lines)] == [
        ("grpc", "a warning"),
        ("partita.agent", "a warning"),
        ("partita.agent", "chatter"),
    ]


def test_with_a_higher_level_warnings_of_others_are_left_out_as_well() -> None:
    """Whoever wants errors alone gets errors alone."""
    lines = _stderr('logging.getLogger("grpc").warning("a warning")', level="error")

    assert lines == []


def test_each_line_is_written_once_in_the_form_configured_last() -> None:
    """Configuring again replaces what was configured before."""
    lines = _stderr("""
configure(LogForm.TEXT, level="info")
logging.getLogger("partita").info("once", extra={"gpu": "GPU-0"})
""")

    assert [line.partition(" ")[2] for line in lines] == ["info once gpu=GPU-0"]
