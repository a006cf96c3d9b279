"""Compares the sides of a window that computes polynomials at random integers, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from xbuilder.facts.facts import ResultFacts
from xbuilder.operators.op_traits import FLOATS

from .differences import difference
from .draws import WHOLE, Draw, draw_window_inputs
from .polynomials import bits_of, chance_of_missing, constants_bits, degree_of
from .roles import Role
from .runs import DOUBLE, run_both, runners_of
from .sessions import CannotRunError
from .window import Window, names_read

#: number of draws, and the fewest bits that are worth one
_DRAWS, _FEWEST = 2, 3


class Proof(NamedTuple):
    """The agreement of two polynomials at random integers.

    :param chance: bound of the probability that they differ
    """

    chance: float


def prove_at_integers(
    window: Window,
    facts: Mapping[str, ResultFacts],
    roles: Mapping[str, Role],
    sizes: Mapping[str, int],
    embed: bool,
) -> Proof | None:
    """Runs both sides on random integers, in doubles, where sums and products are exact.

    The weights both sides read are drawn too, since the equality does not depend on them.

    :param window: a window found right
    :param facts: facts of its inputs
    :param roles: roles of its integers
    :param sizes: sizes of its symbols
    :param embed: big constants are in the models
    :return: a proof, None if the window is not a polynomial or if the integers would be too large
    """
    drawn = {} if embed else _shared_weights(window)
    floats = [n for n, f in facts.items() if f.type in FLOATS] + list(drawn)
    if any(f.type not in FLOATS and f.value is None for f in facts.values()):
        return None  # positions and conditions are not drawn at random
    degrees = [degree_of(side, floats, window.results) for side in window.sides()]
    if None in degrees or not floats:
        return None
    degree = max(d for d in degrees if d is not None)
    constants = constants_bits({n: v for n, v in window.constants.items() if n not in drawn})
    if constants is None or degree == 0:
        return None
    constraints = window.graph.facts.constraints
    first, second = runners_of(window, embed)
    try:
        for seed in range(_DRAWS):
            usual = draw_window_inputs(facts, roles, sizes, constraints, Draw(WHOLE, 100 + seed))
            terms = max([v.size for v in (*usual.values(), *drawn.values())], default=1)
            bits = bits_of(degree, terms, constants)
            if bits < _FEWEST:
                return None
            draw = Draw(WHOLE, 100 + seed, high=1, bits=bits)
            feeds: dict[str, Any] = draw_window_inputs(facts, roles, sizes, constraints, draw)
            rng = np.random.default_rng(seed)
            bound = 1 << bits
            for name, value in window.fed_constants(embed).items():
                whole = rng.integers(-bound, bound + 1, value.shape).astype(np.float64)
                feeds[name] = whole if name in drawn else value
            expected = run_both(first, second, DOUBLE, feeds)
            results = zip(window.results, expected, second.run(DOUBLE, feeds), strict=True)
            if any(difference(name, a, b, 1e-300) for name, a, b in results):
                return None
    except CannotRunError:
        return None
    finally:
        first.close()
        second.close()
    return Proof(chance_of_missing(degree, bits, _DRAWS))


def _shared_weights(window: Window) -> dict[str, np.ndarray]:
    """The big constants that are floats and that both sides read."""
    read = [set(names_read(side)) for side in (window.before, window.after)]
    return {
        name: value
        for name, value in window.fed_constants().items()
        if name in read[0] and name in read[1] and value.dtype.kind == "f"
    }
