"""A plan as a shell script of ``nvidia-smi`` commands: one instance at a time, each at its place.

The script never touches more than the plan says: it destroys single instances by id and first makes
sure that the id is still at the place where it was seen. There is no command for a whole GPU but
the mode change, which the plan has only for GPUs that nobody holds.

Source of the commands: ``nvidia-smi mig --help``; of the columns of ``-lgi``: recorded output.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from partita.planner.plan import Create, Destroy, Plan, SetMigMode, SetReplicas, Step
from partita.views import gpu_names, step_words
from partita.views.gpu_names import count

__all__ = ["script"]

_HEADER = """\
#!/bin/sh
# partita plan as nvidia-smi commands{scope}
#
# Run it as root on each node that it names:  sh FILE [NODE]
# NODE is the name the cluster knows the node by; without it, the host name is taken.
#
# - Cordon the node first: a pod that starts meanwhile could get an instance that is destroyed here.
# - Instances are created as PROFILE:START. A driver that does not know this form refuses it;
#   nothing is created elsewhere then.
# - The script stops at the first command that fails. What was done until then stays; plan again.
# - Afterwards restart the device plugin of the node, it reads the instances at its start only.
set -eu
"""

_INSTANCE_AT = """
# instance_at GPU START:SIZE prints the id of the GPU instance there; fails when there is none.
instance_at() {
    nvidia-smi mig -i "$1" -lgi | awk -v place="$2" '
        $3 == "MIG" && $(NF - 1) == place { id = $(NF - 2); found += 1 }
        END { if (found != 1) exit 1; print id }'
}
"""

_EXPECT = """
# expect GPU START:SIZE ID stops the script when another instance, or none, is there by now.
expect() {
    if [ "$(instance_at "$1" "$2")" != "$3" ]; then
        echo "GPU $1: instance $3 is not at $2 any more, plan again" >&2
        exit 1
    fi
}
"""

_MODE = """
# has_mode GPU Enabled|Disabled tells whether the GPU is in that MIG mode now.
has_mode() {
    [ "$(nvidia-smi -i "$1" --query-gpu=mig.mode.current --format=csv,noheader)" = "$2" ]
}

# require_mode GPU Enabled|Disabled stops the script when it is not.
require_mode() {
    if ! has_mode "$1" "$2"; then
        echo "GPU $1: the MIG mode is still pending, something uses the GPU" >&2
        exit 1
    fi
}
"""


def script(plan: Plan) -> str:
    """Return the commands of a plan, by node, in the plan's order, as a script for ``sh``."""
    nodes: dict[str, dict[int, list[Step]]] = {}
    for step in plan.steps:
        nodes.setdefault(step.node, {}).setdefault(step.index, []).append(step)
    scope = f": {count(len(plan.steps), 'step')} on {count(len(nodes), 'node')}"
    found = [_HEADER.format(scope=scope if nodes else ", nothing to do")]
    found += _functions(plan.steps)
    if nodes:
        found.append('\nnode=${1:-$(uname -n)}\ncase "$node" in\n')
        uuids = {gpu.gpu.key: gpu.gpu.uuid for gpu in plan.gpus}
        found += [_node(node, gpus, uuids) for node, gpus in nodes.items()]
        found.append('*)\n    echo "the plan has no step for this node: $node" >&2\n')
        found.append("    exit 1\n    ;;\nesac\n")
    return "".join(found).rstrip("\n")


def _functions(steps: Sequence[Step]) -> list[str]:
    """Return the shell functions that the commands need."""
    found = []
    destroyed = [step for step in steps if isinstance(step, Destroy) and step.placement is not None]
    if destroyed:
        found.append(_INSTANCE_AT)
    if any(step.instance_id is not None for step in destroyed):
        found.append(_EXPECT)
    if any(isinstance(step, SetMigMode) for step in steps):
        found.append(_MODE)
    return found


def _node(
    node: str,
    gpus: Mapping[int, Sequence[Step]],
    uuids: Mapping[tuple[str, int], str | None],
) -> str:
    lines = [f"{shlex.quote(node)})"]
    for index, on_gpu in gpus.items():
        uuid = uuids.get((node, index))
        target = shlex.quote(uuid) if uuid else str(index)
        known = f", {uuid}" if uuid else ", UUID unknown: check that the index still means this GPU"
        lines += ["", "    # " + _comment(gpu_names.gpu(node, index) + known)]
        for step in on_gpu:
            lines += ["    " + line for line in _commands(step, target)]
    return "\n".join([*lines, "    ;;", ""])


def _commands(step: Step, gpu: str) -> Iterator[str]:
    yield "# " + _comment(step_words.text(step))
    match step:
        case SetMigMode():
            yield from _switch(step, gpu)
        case Destroy():
            yield from _destroy(step, gpu)
        case Create():
            profile = step.profile if step.profile_id is None else str(step.profile_id)
            place = shlex.quote(f"{profile}:{step.placement.start}")
            yield f"nvidia-smi mig -i {gpu} -cgi {place} -C"
        case SetReplicas():
            yield "# not a matter of nvidia-smi: `partita plan --to device-plugin` writes it"


def _switch(step: SetMigMode, gpu: str) -> Iterator[str]:
    number, word = (1, "Enabled") if step.enable else (0, "Disabled")
    yield f"nvidia-smi -i {gpu} -mig {number}"
    if step.needs_reset:
        yield "# The driver tries the reset itself. Where it could not, this does: everything that"
        yield "# uses this GPU must be stopped first, monitoring and the device plugin too."
        yield f"has_mode {gpu} {word} || nvidia-smi --gpu-reset -i {gpu}"
    yield f"require_mode {gpu} {word}"


def _destroy(step: Destroy, gpu: str) -> Iterator[str]:
    if step.instance_id is None and step.placement is None:
        yield "# neither its id nor its place is known: look with `nvidia-smi mig -lgi`, then plan"
        yield "# again with that output"
        yield f'echo "cannot tell which {_comment(step.profile)} to destroy, see the script" >&2'
        yield "exit 1"
        return
    if step.instance_id is None:
        yield f"id=$(instance_at {gpu} {step.placement})"
        identity = '"$id"'
    else:
        identity = str(step.instance_id)
        if step.placement is not None:
            yield f"expect {gpu} {step.placement} {identity}"
    yield "# it may have no compute instance; while it has one, the second command is refused"
    yield f"nvidia-smi mig -i {gpu} -dci -gi {identity} || true"
    yield f"nvidia-smi mig -i {gpu} -dgi -gi {identity}"


def _comment(text: str) -> str:
    """Return a text that cannot leave a comment or a quoted string of the script."""
    return "".join(char if char.isprintable() and char not in '"$`\\' else "?" for char in text)
