"""Fills a graph with the content of a GraphProto: inputs, initializers, nodes, outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, filterfalse

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from ..dims import Shape
from ..errors import InvalidModelError, OptionError
from ..facts.facts import DECLARED, ResultFacts
from ..graph.annotations import note_annotations
from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..inference.refresh import refresh
from ..inference.required_sizes import note_required_sizes
from ..nodes.copies import copy_node
from ..nodes.functions import all_nodes
from ..nodes.mended_attributes import mended
from ..nodes.reserved_names import reserve_graph_names, reserve_names
from ..nodes.schema_check import node_check
from ..nodes.subgraph_order import with_sorted_subgraphs
from ..nodes.subgraphs import local_names, subgraphs_of
from ..nodes.value_infos import IOSpec, declared_names, facts_from_type, held_dimension
from ..options import InferShapesOptions
from ..support.user_warnings import warn_user
from .named_formulas import note_formulas


def import_graph(graph: Graph, proto: GraphProto, inferred: Sequence[ValueInfoProto] = ()) -> None:
    """Fills a graph with a GraphProto.

    :param graph: an empty graph whose opsets are known
    :param proto: its content
    :param inferred: types and shapes another inference proved
    """
    named = declared_names(proto.input) if graph.parent is None else set[str]()
    initializers = _unique_initializers(proto)
    if graph.parent is None:
        graph.names.reserve_all(initializers)  # every table holds the same strings
        reserve_graph_names(graph.names, proto)
        others = map(declared_names, (proto.output, proto.value_info, inferred))
        for dim in chain.from_iterable((named, *others)):  # before any name is generated
            graph.dimensions.normalize(dim)
    if graph.origin is None:
        graph.origin = proto
    require_unique([i.name for i in proto.input], "Input")
    listed = _lists_every_initializer(graph)
    for info in proto.input:
        if info.name in initializers:
            if listed:
                continue
            graph.constants.overridable.add(info.name)
        graph.input_specs.append(IOSpec(info.name, info))
        facts = _input_facts(graph, info)
        graph.declare_input_shape(facts.shape)
        graph.facts.refine(info.name, facts, "an input")
    if graph.parent is None:
        _check_positive_dims(graph, proto)
    for name, init in initializers.items():
        _import_initializer(graph, name, init)
    for sparse in proto.sparse_initializer:
        graph.sparse_initializers.append(sparse)
        graph.facts.refine(
            sparse.values.name,
            ResultFacts(sparse.values.data_type, tuple(sparse.dims)),
            "a sparse initializer",
        )
    for out in proto.output:
        graph.output_specs.append(IOSpec(out.name, out))
    graph.store.add_outputs([out.name for out in proto.output])
    graph.declared.update((v.name, v) for v in proto.value_info)
    declarations = dict(graph.declared)
    declarations.update((v.name, v) for v in proto.output)
    import_nodes(graph, proto.node, declarations, {v.name: v for v in inferred})
    check_defined(graph)
    note_annotations(graph)
    if graph.parent is None and not graph.is_uninferred and not trusts_shapes(graph):
        note_formulas(graph, proto, named)


def _unique_initializers(proto: GraphProto) -> dict[str, TensorProto]:
    """The initializers by name. A runtime reads the last one of a name, the user is told so.

    :raises InvalidModelError: two of them have one name and another type, or another shape
    """
    unique = {init.name: init for init in proto.initializer}
    if len(unique) == len(proto.initializer):
        return unique
    kinds = {(init.name, init.data_type, *init.dims) for init in proto.initializer}
    require_unique([name for name, *_ in kinds], "Initializer")
    counts = Counter(init.name for init in proto.initializer)
    for name in (name for name, count in counts.items() if count > 1):
        warn_user(
            f"Initializer {name!r} appears {counts[name]} times: the last one is read, as "
            "runtimes do, the others are removed."
        )
    return unique


def _check_positive_dims(graph: Graph, proto: GraphProto) -> None:
    """Checks that the inputs have the dimensions the options declare positive.

    :raises OptionError: none has one of them
    """
    wanted = graph.scope.options.positive_dims
    if isinstance(wanted, bool):
        return
    known = set(declared_names(proto.input))
    for name in sorted(wanted):
        if name not in known:
            raise OptionError(
                f"Option positive_dims names {name!r}, which is no dimension of the inputs; "
                f"theirs are {sorted(known)}, True stands for all of them."
            )


def _lists_every_initializer(graph: Graph) -> bool:
    """Whether the IR version of the model requires every initializer among the inputs.

    It is so before IR version 4. Such an initializer is a constant, as it is for onnxruntime; the
    model is then written with a newer IR version and its real inputs only.
    """
    if not isinstance(graph.origin, ModelProto) or graph.origin.ir_version >= 4:
        return False
    graph.scope.ir_version = None
    return True


def _import_initializer(graph: Graph, name: str, init: TensorProto) -> None:
    facts = ResultFacts(init.data_type, tuple(init.dims))
    reason = "" if name in graph.constants.overridable else (graph.facts.contradicts(name, facts))
    if reason:
        graph.scope.warn_wrong_declaration(name, f"{reason}, the first one is declared")
        graph.facts.restart([name])
    graph.constants.add_initializer(name, init)


def _facts(graph: Graph, info: ValueInfoProto) -> ResultFacts:
    read = partial(graph.dimensions.declared, is_formula=trusts_shapes(graph))
    return facts_from_type(info.type, graph.dimensions.new, read)


def _input_facts(graph: Graph, info: ValueInfoProto) -> ResultFacts:
    """The facts of an input, whose content may be a dimension."""
    facts, held = _facts(graph, info), held_dimension(info)
    is_number = facts.type == TensorProto.INT64 and facts.shape in ((), (1,))
    if not held or not is_number or graph.parent is not None:
        return facts
    dim = graph.dimensions.declared(held, is_formula=trusts_shapes(graph))
    return ResultFacts(facts.type, facts.shape, None, (dim,) if facts.shape else dim)


def _reserve_records(graph: Graph) -> None:
    """Reserves every name the nodes use, before any name is generated."""
    names, node_names, store = graph.scope.names, graph.scope.node_names, graph.store
    names.reserve_all(store.producers)
    # a set that receives as many names as it has doubles its room, even for those it has
    names.reserve_all(filterfalse(store.producers.__contains__, store.consumers))
    for record in store.possible_owners():
        for _, body in subgraphs_of(store.proto(record)):
            reserve_names(names, node_names, body)


def import_nodes(
    graph: Graph,
    nodes: Iterable[NodeProto],
    declared: Mapping[str, ValueInfoProto],
    inferred: Mapping[str, ValueInfoProto],
) -> None:
    """Adds the nodes of a file to a graph and infers their results.

    :param graph: a graph whose inputs and initializers are known
    :param nodes: the nodes, in any order
    :param declared: types and shapes of the results the file declares
    :param inferred: types and shapes another inference proved
    :raises InvalidModelError: a node is not valid
    """
    store = graph.store
    store.extend(_clean_nodes(graph, list(nodes)), node_check(graph.opsets, graph.functions))
    if graph.parent is None:
        _mend_subgraphs(graph)
        _reserve_records(graph)
    _check_single(graph)
    _sort_subgraphs(graph)
    if store.order_violated:
        store.sort()
    records = store.nodes
    options = graph.scope.infer_options
    graph.infer_nodes = bool(options)
    graph.is_uninferred = not options
    only_new = options == InferShapesOptions.NEW
    trusted, given = trusts_shapes(graph), {*declared, *inferred}
    for record in list(records):
        infer = not only_new or not given.issuperset(record.outputs)
        infer_and_note(graph, record, infer)
        for name in () if given.isdisjoint(record.outputs) else record.outputs:
            if name in inferred:
                _refine_with_declared(graph, name, inferred[name], True)
            if name in declared:
                _refine_with_declared(graph, name, declared[name], trusted)
    graph.infer_nodes = True
    note_required_sizes(graph)
    _infer_quotients_again(graph)


def _infer_quotients_again(graph: Graph) -> None:
    """Infers again the quotients of dimensions that a later convolution proves not to be negative,
    and the results that depend on them."""
    if not graph.facts.constraints.minimums:
        return
    facts = graph.facts
    quotients = graph.store.bucket("", "Div")
    unknown = [r.inputs[0] for r in quotients if facts[r.outputs[0]].value is None]
    refresh(graph, [name for name in unknown if facts[name].value is not None])


def _mend_subgraphs(graph: Graph) -> None:
    """Mends the attributes of the nodes of subgraphs, at every depth."""
    for record in graph.store.possible_owners():
        node = graph.store.proto(record)
        right = mended(node, graph.opsets)
        if right is not node:
            graph.store.replace([record], [right], record)


def _sort_subgraphs(graph: Graph) -> None:
    """Sorts the subgraphs that read a name before they define it."""
    for record in graph.store.possible_owners():
        if not record.captured:
            continue
        lost = {name for name in record.captured if not graph.has_name(name)}
        node = graph.store.proto(record)
        if lost and any(lost & local_names(body) for _, body in subgraphs_of(node)):
            graph.store.replace([record], [with_sorted_subgraphs(node, lost)], record)


def _clean_nodes(graph: Graph, nodes: list[NodeProto]) -> list[NodeProto]:
    """Replaces the nodes whose name is taken (onnxruntime refuses two nodes of one name), or that
    spell the main domain `ai.onnx`, by corrected copies."""
    names = [node.name for node in nodes]
    named = [*filter(None, names)]
    graph.scope.node_names.reserve_all(named)
    if len(set(named)) == len(named) and not graph.scope.spells_main_domain:
        return nodes
    seen: set[str] = set()
    return [_clean_node(graph, n, name, seen) for n, name in zip(nodes, names, strict=True)]


def _clean_node(graph: Graph, node: NodeProto, name: str, seen: set[str]) -> NodeProto:
    taken = name != "" and name in seen
    seen.add(name)
    spelled = graph.scope.spells_main_domain and any(
        n.domain == "ai.onnx" for n in all_nodes([node])
    )
    if not taken and not spelled:
        return node
    copy = copy_node(node)
    if taken:
        copy.name = graph.unique_node_name(name)
    for inner in all_nodes([copy]):
        if inner.domain == "ai.onnx":
            inner.domain = ""
    return copy


def _refine_with_declared(graph: Graph, name: str, info: ValueInfoProto, trusted: bool) -> None:
    """Refines the inferred facts of a computed result with those the file declares.

    The declared type is right, because runtimes check it. The declared shape is only a label,
    unless it is *trusted*, because no runtime checks it.
    """
    if not info.HasField("type"):
        return
    facts = _facts(graph, info)
    reason = graph.facts.contradicts(name, facts)
    if reason:
        graph.scope.warn_wrong_declaration(name, f"{reason}, the second one is declared")
        if not graph.facts[name].type:
            graph.facts.refine(name, ResultFacts(facts.type), DECLARED)
        return
    inferred = graph.facts[name].shape if graph.facts.is_local(name) else None
    if not trusted:
        facts = _with_labels(graph, facts, inferred)
    elif inferred is not None and facts.shape is not None:
        # a declaration only fills unknown dimensions, it never turns a symbol into an integer,
        # because files whose batch was made dynamic afterwards still declare the old one
        facts.shape = tuple(
            d if graph.dimensions.is_generated(k) else k
            for k, d in zip(inferred, facts.shape, strict=True)
        )
    graph.facts.refine(name, facts, DECLARED)


def trusts_shapes(graph: Graph) -> bool:
    """Whether the shapes the file declares for computed results are right: the user says so, or
    disables our inference."""
    scope = graph.scope
    return scope.options.trust_shapes or not scope.infer_options & InferShapesOptions.BUILDER


def _with_labels(graph: Graph, declared: ResultFacts, known: Shape | None) -> ResultFacts:
    """The facts a file declares, reduced to types and to names for dimensions that have none, when
    its shapes prove nothing."""
    shape = None
    if declared.shape is not None and known is not None:
        dimensions, shape = graph.dimensions, known
        if not dimensions.names.generated.isdisjoint(known):  # only these take a label
            label = dimensions.label
            shape = tuple([label(k, d) for k, d in zip(known, declared.shape, strict=True)])
    sequence, optional = declared.sequence, declared.optional
    sequence = sequence and _with_labels(graph, sequence, None)
    optional = optional and _with_labels(graph, optional, None)
    return ResultFacts(declared.type, shape, None, None, sequence, optional)


def _check_single(graph: Graph) -> None:
    """Checks that no result has the name of an input or of an initializer.

    :raises InvalidModelError: one does
    """
    for kind, names in (
        ("an input", graph.input_names),
        ("an initializer", graph.constants.initializers),
        ("a sparse initializer", [s.values.name for s in graph.sparse_initializers]),
    ):
        for name in names:
            record = graph.store.producers.get(name)
            if record is not None:
                raise InvalidModelError(
                    f"{name!r} is {kind} and a result of node {record!r}; "
                    "every result of a graph needs its own name."
                )


def check_defined(graph: Graph) -> None:
    """Checks that every name that is read exists.

    :raises InvalidModelError: one does not
    """
    store = graph.store
    defined = set(store.producers) | set(graph.constants.initializers)
    defined.update(spec.name for spec in graph.input_specs)
    defined.update(s.values.name for s in graph.sparse_initializers)
    for name, readers in store.consumers.items():
        if name not in defined and not _outer(graph, name):
            reader = next(iter(readers))
            raise InvalidModelError(
                f"Node {reader!r} reads {name!r} which is neither an input, an initializer, nor "
                "the result of a node; the model is not valid."
            )
    for name in store.outputs:
        if name not in defined and not _outer(graph, name):
            raise InvalidModelError(
                f"Output {name!r} is neither an input, an initializer, nor the result of a node."
            )


def _outer(graph: Graph, name: str) -> bool:
    return graph.parent is not None and graph.parent.has_name(name)


def require_unique(names: Sequence[str], what: str) -> None:
    """Raises an exception if a name appears twice."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise InvalidModelError(f"{what} {name!r} appears twice; every name must be unique.")
        seen.add(name)
