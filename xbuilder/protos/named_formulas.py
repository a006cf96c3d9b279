"""Formulas: names of dimensions such as `past+seq`, where the outputs of a file prove them."""

from __future__ import annotations

from collections.abc import Set

from onnx import GraphProto

from ..dims import Dim, is_plain, normalize, symbols
from ..dims.scope import opaque
from ..graph.graph import Graph
from ..inference.refresh import refresh


def note_formulas(graph: Graph, proto: GraphProto, named: Set[str]) -> bool:
    """Notes the formulas that name a dimension of an input and one of an output, where inference
    finds the same formula for the output. Infers again what depends on these inputs.

    The name of a dimension proves nothing alone: an input declared `[n + 1]` may have any size. If
    an output has this name too, spaces and order aside, and is proven to be as long as `n + 1`,
    both are. A name that two outputs give to two dimensions is no formula.

    Example: `mask[past+seq]`, and `present = Concat(cache[past], x[seq])` declared `[past+seq]`.

    :param graph: a graph whose nodes are inferred
    :param proto: its content
    :param named: the names its inputs give to their dimensions
    :return: whether a formula is noted
    """
    formulas = {opaque(text): normalize(text) for text in named if opaque(text) != text}
    formulas = {k: f for k, f in formulas.items() if isinstance(f, str) and symbols(f) <= named}
    if not formulas:
        return False
    answers = dict[str, set[bool | None]]()
    for info in proto.output:
        shape = graph.facts[info.name].shape or ()
        for dim, declared in zip(shape, info.type.tensor_type.shape.dim, strict=False):
            written = normalize(declared.dim_param) if declared.dim_param else None
            for name in (n for n, formula in formulas.items() if formula == written and n != dim):
                answers.setdefault(name, set()).add(_is_formula(graph, dim, formulas[name]))
    proven = {name for name, found in answers.items() if True in found and False not in found}
    for name in sorted(proven):
        graph.facts.constraints.add_equal(name, formulas[name], "an output of the same name")
    shapes = {spec.name: graph.facts[spec.name].shape for spec in graph.input_specs}
    refresh(graph, [name for name, shape in shapes.items() if proven.intersection(shape or ())])
    return bool(proven)


def _is_formula(graph: Graph, dim: Dim, formula: Dim) -> bool | None:
    """Whether a dimension is this formula. None if it is not known: a broadcast may be anything."""
    if graph.facts.constraints.prove_equal(dim, formula) is True:
        return True
    return False if is_plain(dim) else None
