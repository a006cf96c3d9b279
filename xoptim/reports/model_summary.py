"""Tables about a model: its nodes by operator type, the bytes of its weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from xbuilder.constants.growth import FOLDING, SPENT, TOO_BIG
from xbuilder.errors import InvalidModelError
from xbuilder.files.external_data import tensor_nbytes
from xbuilder.files.tensor_sites import iter_tensor_sites

#: the rows of the nodes that constant folding leaves, because of the size of their results
_TOO_LARGE = {f"{FOLDING}: {reason}" for reason in (TOO_BIG, SPENT)}


def iterate_nodes(model: ModelProto | GraphProto) -> Iterator[NodeProto]:
    """Enumerates the nodes of a model: main graph, subgraphs and local functions.

    :param model: a model or a graph
    :return: iterator on nodes, a node comes before the nodes of its subgraphs

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[n] x) => (float[n] y) { a = Abs(x)  y = Exp(a) }"
        >>> [node.op_type for node in iterate_nodes(model_from_text(text))]
        ['Abs', 'Exp']
    """
    if isinstance(model, ModelProto):
        yield from _nodes_of(model.graph.node)
        for function in model.functions:
            yield from _nodes_of(function.node)
    else:
        yield from _nodes_of(model.node)


def _nodes_of(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for att in node.attribute:
            if att.type == AttributeProto.GRAPH:
                yield from _nodes_of(att.g.node)
            elif att.type == AttributeProto.GRAPHS:
                for graph in att.graphs:
                    yield from _nodes_of(graph.node)


def count_ops(model: ModelProto | GraphProto) -> Counter[str]:
    """Counts the nodes by operator type, subgraphs and local functions included.

    :param model: a model or a graph
    :return: counter, a type of another domain than ONNX's is written `domain.op_type`
    """
    return Counter(
        node.op_type if node.domain in {"", "ai.onnx"} else f"{node.domain}.{node.op_type}"
        for node in iterate_nodes(model)
    )


def is_folding_limited(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a node whose inputs are constants stays, because the file would grow.

    :param rows: rows of the engine
    :return: True if the last time constants of a graph were folded, the size of one was refused

    Example::

        >>> rows = [{"pattern": "constant_folding"}]
        >>> rows.append({"pattern": "constant_folding: the model would grow", "skipped": 14})
        >>> is_folding_limited(rows)
        True
    """
    last: dict[str, bool] = {}
    for row in rows:
        graph = row.get("graph", "")
        if row["pattern"] == FOLDING:
            last[graph] = False
        elif row["pattern"] in _TOO_LARGE:
            last[graph] = True
    return any(last.values())


def compare_ops(before: ModelProto, after: ModelProto) -> list[dict[str, Any]]:
    """Compares the number of nodes by operator type.

    :param before: the first model
    :param after: the second model
    :return: rows with `op_type`, `before`, `after`, `delta`, largest changes first

    .. code-block:: python

        pandas.DataFrame(compare_ops(model, optimized))
    """
    a, b = count_ops(before), count_ops(after)
    rows = [
        {"op_type": name, "before": a[name], "after": b[name], "delta": b[name] - a[name]}
        for name in a | b
    ]
    return sorted(rows, key=lambda r: (-abs(r["delta"]), r["op_type"]))


def pattern_totals(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Adds up the statistics of an optimization, by pattern and by pass.

    The engine gives a row ``match_<pattern>`` for each search and ``apply_<pattern>`` for each
    application: both count for the pattern.

    :param rows: rows returned by `GraphBuilder.optimize` and `to_onnx(return_optimize_report=True)`
    :return: rows with `pattern`, `instances` (applications), `removed`, `added` (nodes),
        `time_in` (seconds), those that removed the most nodes first

    .. code-block:: python

        pandas.DataFrame(pattern_totals(rows))
    """
    totals: dict[str, dict[str, Any]] = {}
    for row in rows:
        kind, _, name = str(row.get("pattern", "")).partition("_")
        if kind not in {"match", "apply"}:
            kind, name = "", str(row.get("pattern", ""))
        total = totals.setdefault(
            name, {"pattern": name, "instances": 0, "removed": 0, "added": 0, "time_in": 0.0}
        )
        total["time_in"] += row.get("time_in") or 0.0
        if kind != "match":
            total["instances"] += row.get("instances") or int(row.get("changed") or 0)
            total["removed"] += row.get("removed") or 0
            total["added"] += row.get("added") or 0
    return sorted(totals.values(), key=lambda r: (-r["removed"], -r["instances"], r["pattern"]))


def weight_bytes(model: ModelProto) -> int:
    """Adds up the bytes of the tensors a model holds, wherever they are.

    Initializers and tensors in attributes count, those of subgraphs and functions too, and those
    stored in other files, which are not read.

    :return: number of bytes
    """
    return sum(tensor_bytes(site.tensor) for site in iter_tensor_sites(model))


def tensor_bytes(tensor: TensorProto) -> int:
    """The bytes of a tensor, which is not read, those of its proto if its type is not known.

    Example::

        >>> tensor_bytes(TensorProto(data_type=TensorProto.INT64, dims=[3, 2]))
        48
    """
    try:
        return tensor_nbytes(tensor)
    except InvalidModelError:
        return int(tensor.ByteSize())
