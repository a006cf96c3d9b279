"""Unification, reification and relations over graphs (`pip install xoptim[relational]`).

A result of a graph is a term: an operator applied to operands. Variables stand for results,
operators, attributes, or lists of operands (`cons`).

::

    x, y = var(), var()
    unify(term_of(builder, "z"), op.Add(x, y))  # {x: <a>, y: <b>} when z = Add(a, b)
"""

from __future__ import annotations

try:
    from cons import cons
    from etuples import etuple
    from kanren.assoccomm import eq_comm
    from kanren.core import conde, eq, lall, lany, run
    from kanren.graph import reduceo, walko
    from unification import reify, unify, var
except ImportError as e:
    raise ImportError(
        f"xoptim.toolkit.relations needs a library that is not installed ({e.name}): "
        "pip install xoptim[relational]."
    ) from e

from . import unification as _unification
from .conditions import have_same_shape, provided
from .kanren_rewrite import KanrenRelationSub
from .terms import ConstantTerm, GraphResult, Operator, constant, op
from .writing import term_of, write

_unification.register()

__all__ = [
    "ConstantTerm",
    "GraphResult",
    "KanrenRelationSub",
    "Operator",
    "conde",
    "cons",
    "constant",
    "eq",
    "eq_comm",
    "etuple",
    "have_same_shape",
    "lall",
    "lany",
    "op",
    "provided",
    "reduceo",
    "reify",
    "run",
    "term_of",
    "unify",
    "var",
    "walko",
    "write",
]
