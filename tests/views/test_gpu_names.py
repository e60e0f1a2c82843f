"""Short names for many GPUs, nodes and pods."""

import pytest

from partita.views import gpu_names


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpu-a1"], "gpu-a1"),
        (["ml/train-0", "ml/train-1", "ml/train-2"], "ml/train-[0-2]"),
        (["n1", "n2", "n10", "n12"], "n[1-2,10,12]"),
        ([f"gpu-{n:03d}" for n in range(98, 103)], "gpu-[098-102]"),
        (["a09", "a10"], "a[09-10]"),
        (["x-a", "x-b"], "x-a, x-b"),
        (["ip-10-0-1-2.ec2.internal", "ip-10-0-1-3.ec2.internal"], "ip-10-0-1-[2-3].ec2.internal"),
        (["b2", "a1", "b3"], "b[2-3], a1"),
        (list("abcdefgh"), "a, b, c, d, e and 3 more"),
        ([], ""),
    ],
)
def test_names_are_folded(words: list[str], expected: str) -> None:
    """Words that differ in one number are one word; a long list is counted at its end."""
    assert gpu_names.names(words) == expected


def test_padding_is_kept() -> None:
    """``9`` and ``09`` are different names, so they are not folded into one."""
    assert gpu_names.names(["a9", "a09"]) == "a9, a09"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([("gpu-a1", 0)], "gpu-a1/0"),
        ([("gpu-a1", n) for n in range(8)], "gpu-a1/[0-7]"),
        ([(f"gpu-{n:02d}", i) for n in range(1, 13) for i in range(8)], "gpu-[01-12]/[0-7]"),
        ([("a1", 0), ("a1", 2), ("b", 1)], "a1/[0,2], b/1"),
    ],
)
def test_gpus_are_folded(keys: list[tuple[str, int]], expected: str) -> None:
    """Nodes with the same GPUs share them."""
    assert gpu_names.gpus(keys) == expected


def test_counts() -> None:
    """A count agrees with its noun; thousands are separated."""
    assert gpu_names.count(1, "GPU") == "1 GPU"
    assert gpu_names.count(0, "GPU") == "0 GPUs"
    assert gpu_names.count(1000, "GPU") == "1,000 GPUs"
