"""Kubernetes' quantities: ``1500m``, ``2Gi``, ``8``; read, and written in their canonical form."""

import re
from fractions import Fraction
from functools import lru_cache

__all__ = ["canonical", "parse"]

_REMEMBERED = 4_096  # pods of one kind have the same amounts
_PATTERN = re.compile(r"([+-]?[0-9.]+)([eE][-+]?[0-9]+|[numkMGTPE]|[KMGTPE]i|)$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(_REMEMBERED)
def parse(text: str) -> Fraction:
    """Return the amount.

    Raises:
        ValueError: When it is no quantity.
    """
    match = _PATTERN.match(text)
    if match is None:
        raise ValueError(text)
    number, suffix = Fraction(match[1]), match[2]
    if suffix in _DECIMAL:
        return number * Fraction(10) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    return number * Fraction(10) ** int(suffix[1:])


@lru_cache(_REMEMBERED)
def canonical(text: str) -> str:
    """Return it as the API server writes it: no fraction, the largest suffix that allows that.

    Exponents (``1e3``) are written with suffixes, which the real server does not do.

    Raises:
        ValueError: When it is no quantity.
    """
    amount = parse(text)
    if amount == 0:
        return "0"
    if text[-1] == "i":
        for suffix, bits in reversed(_BINARY.items()):
            if (amount / 2**bits).denominator == 1:
                return f"{amount / 2**bits}{suffix}"
    for suffix, exponent in reversed(_DECIMAL.items()):
        scaled = amount / Fraction(10) ** exponent
        if scaled.denominator == 1:
            return f"{scaled}{suffix}"
    rounded = -(-amount.numerator * 10**9 // amount.denominator)  # up, to whole billionths
    return f"{rounded}n"
