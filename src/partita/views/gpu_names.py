"""Short names for many things: ``gpu-[01-12]/[0-7]`` instead of 96 GPUs, ``ml/train-[0-3]``.

One GPU is ``node/index``. Nothing is guessed from a name beyond its digits: what does not differ in
exactly one number is listed.
"""

import re
from collections.abc import Iterable, Sequence

__all__ = ["count", "gpu", "gpus", "names", "numbers"]

_MOST_PARTS = 6  # parts of a list before the rest is only counted
_DIGITS = re.compile(r"\d+(?=[^\d.]*(\.|$))", re.ASCII)  # the last of what stands before a dot


def gpu(node: str, index: int) -> str:
    """Return the name of one GPU: ``gpu-a1/0``."""
    return f"{node}/{index}"


def gpus(keys: Iterable[tuple[str, int]]) -> str:
    """Return the GPUs of some keys (node, index) in short: ``gpu-a1/[0-3], gpu-a[2-9]/[0-7]``."""
    indices: dict[str, list[int]] = {}
    for node, index in keys:
        indices.setdefault(node, []).append(index)
    nodes: dict[str, list[str]] = {}
    for node, found in indices.items():
        nodes.setdefault(_bracketed(numbers(found)), []).append(node)
    return _listed([f"{part}/{tail}" for tail, found in nodes.items() for part in _folded(found)])


def names(words: Iterable[str]) -> str:
    """Return names in short; those that differ only in their last number are folded."""
    return _listed(_folded(words))


def numbers(values: Iterable[int], *, digits: int = 0) -> str:
    """Return whole numbers in short: ``0-3,5``; with leading zeros up to ``digits``."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(_run(run, digits) for run in runs)


def count(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 GPU``, ``2 GPUs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _run(run: Sequence[int], digits: int) -> str:
    first, last = (f"{value:0{digits}d}" for value in (run[0], run[-1]))
    return first if first == last else f"{first}-{last}"


def _folded(words: Iterable[str]) -> list[str]:
    """Fold words that differ in their last number; the others stay as they are."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    parts: list[tuple[str, str, int]] = []
    for word in dict.fromkeys(words):
        match = _DIGITS.search(word)
        if match is None:
            key = (word, "", -1)
        else:
            digits = match[0]
            padded = len(digits) if digits.startswith("0") and digits != "0" else 0
            key = (word[: match.start()], word[match.end() :], padded)
        if key not in groups:
            parts.append(key)
        groups.setdefault(key, []).append(match[0] if match else "")
    return [_folded_group(key, groups[key]) for key in _padded_joined(parts, groups)]


def _padded_joined(
    parts: Sequence[tuple[str, str, int]], groups: dict[tuple[str, str, int], list[str]]
) -> list[tuple[str, str, int]]:
    """Let ``100`` join ``001-099``: same length, though it shows no padding itself."""
    kept = list(parts)
    for head, tail, padded in parts:
        plain = (head, tail, 0)
        if padded > 0 and all(len(text) == padded for text in groups.get(plain, ["?" * 99])):
            groups[head, tail, padded] += groups.pop(plain)
            kept.remove(plain)
    return kept


def _folded_group(key: tuple[str, str, int], found: Sequence[str]) -> str:
    head, tail, padded = key
    if padded < 0:
        return head
    return head + _bracketed(numbers((int(text) for text in found), digits=padded)) + tail


def _bracketed(text: str) -> str:
    return text if text.isdigit() else f"[{text}]"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) <= _MOST_PARTS:
        return ", ".join(parts)
    shown = parts[: _MOST_PARTS - 1]
    return f"{', '.join(shown)} and {len(parts) - len(shown):,} more"
