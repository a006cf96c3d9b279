"""Finds the existing names closest to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable


def edit_distance(a: str, b: str) -> int:
    """Counts the letters to insert, remove, replace or exchange with the next one to go from one
    word to another.

    ``difflib`` does not do this: for it, ``TransposTranspose`` is far from ``TransposeTranspose``
    because it aligns the second half of the first word with the first half of the other.

    :param a: a word
    :param b: another one
    :return: 0 if they are equal; the cost is the product of the lengths

    >>> edit_distance("Lgo", "Log"), edit_distance("Add", "And")
    (1, 1)
    """
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
            if i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def closest_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """The names a user may have meant, the closest first.

    A name is close when less than four letters in ten differ, case apart, or when one name is the
    beginning of the other.

    :param name: the name the user wrote
    :param known: names that exist
    :param n: maximum number of answers
    :return: names, possibly none

    ::

        closest_names("CastCat", ["Cast", "CastCast", "Reshape"])  # ["CastCast", "Cast"]
    """
    wanted = name.lower()
    candidates = []
    for candidate in dict.fromkeys(known):
        text = candidate.lower()
        distance = edit_distance(wanted, text)
        prefix = len(wanted) > 2 and (text.startswith(wanted) or wanted.startswith(text))
        if prefix or distance < 0.4 * max(len(wanted), len(text)):
            candidates.append((distance, candidate))
    return [candidate for _, candidate in sorted(candidates)[:n]]
