"""Local functions: optimized on their own, inlined, made out of builders."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx
import onnx.helper as oh
from onnx import FunctionProto

from ..errors import InvalidModelError, OptionError
from ..inference.function_calls import all_nodes, bind_attributes, body_size
from ..inference.refresh import refreshed
from ..nodes.protos import function_key, main_domain
from ..options import FunctionOptions
from ..protos.exporting import export_function, initializer_bytes
from .embedding import leave_folder
from .splicing import function_with, rename_calls, splice

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord

Key = tuple[str, str]

#: inlining does not make a model bigger than this number of nodes
MAX_NODES = 10**6


def optimize_functions(builder: GraphBuilder) -> list[dict[str, Any]]:
    """Optimizes the body of every local function. Returns rows of statistics."""
    rows: list[dict[str, Any]] = []
    for key, function in list(builder.functions.items()):
        body = type(builder)(
            function,
            optimization_options=builder.optimization_options,
            infer_shapes_options=builder.infer_shapes_options,
            allowed_roots=builder.constants.allowed_roots,
            base_dir=builder.constants.base_dir,
        )
        body.functions.update({k: f for k, f in builder.functions.items() if k != key})
        body.constants.grown = builder.constants.grown
        body.counts = builder.counts
        for row in body.optimize():
            row["graph"] = f"function {key[0]}.{key[1]}"
            rows.append(row)
        builder.constants.grown = body.constants.grown
        options = FunctionOptions(True, name=function.name, domain=function.domain)
        builder.functions[key] = export_function(body, options)
        for opset in builder.functions[key].opset_import:
            builder.opsets.setdefault(main_domain(opset.domain), opset.version)
    return rows


# -- inlining


def inline_functions(
    builder: GraphBuilder, verbose: int = 0, left: Counter[str] | None = None
) -> int:
    """Replaces every call to a local function by its body, in subgraphs too.

    A function written for other versions of its domains than the model's is left as it is, unless
    every operator it uses is the same in both versions.

    :param left: counts the calls that stay, by reason
    :return: number of calls that were inlined
    :raises InvalidModelError: functions call each other without end
    """
    _check_size(builder)
    left = Counter() if left is None else left
    count = _inline_calls(builder, verbose, left)
    if builder.parent is None:
        remove_unused_functions(builder)
    return count


def inline_rows(builder: GraphBuilder) -> list[dict[str, Any]]:
    """Inlines local functions. Returns rows of statistics, with the reasons why some stay."""
    begin = time.perf_counter()
    left: Counter[str] = Counter()
    count = inline_functions(builder, left=left)
    row = {"pattern": "inline_functions", "removed": count, "changed": count}
    rows = [{**row, "time_in": time.perf_counter() - begin}]
    rows.extend({"pattern": f"inline_functions: {r}", "skipped": n} for r, n in left.items())
    return rows


def _check_size(builder: GraphBuilder) -> None:
    total = 0
    for node in all_nodes(builder.nodes):
        key = function_key(node)
        total += body_size(builder.functions, key) if key in builder.functions else 1
        if total >= MAX_NODES:
            raise InvalidModelError(
                f"Inlining {key[0]}.{key[1]} makes more than {MAX_NODES} nodes: local functions "
                "call each other without end, or too many times; keep them with inline=False."
            )


def _inline_calls(builder: GraphBuilder, verbose: int, left: Counter[str]) -> int:
    from .subgraphs import children_of, owners, write_back

    count = 0
    stack = list(reversed(builder.store.nodes))
    while stack:
        record = stack.pop()
        key = function_key(builder.store.proto(record))
        if key not in builder.functions:
            continue
        reason = _why_not_inlined(builder, builder.functions[key])
        if reason:
            left[reason] += 1
        else:
            stack.extend(reversed(_inline(builder, record, builder.functions[key])))
            count += 1
            if verbose:
                print(f"[inline_functions] {record!r}")
    for record in owners(builder):
        inside = sum(_inline_calls(c, verbose, left) for c in children_of(builder, record).values())
        if inside:
            write_back(builder, record)
            count += inside
    return count


def _why_not_inlined(builder: GraphBuilder, function: FunctionProto) -> str:
    """Tells which operator of a function would change with the versions of the model."""
    imported = {main_domain(o.domain): o.version for o in function.opset_import}
    for node in all_nodes(function.node):
        domain = main_domain(node.domain)
        own = imported.get(domain)
        version = builder.opsets.get(domain, own)
        if own in (None, version) or function_key(node) in builder.functions:
            continue
        if not same_operator(node.op_type, domain, own, version):
            return (
                f"{node.op_type} may change between version {own} of domain "
                f"{domain or 'ai.onnx'!r}, the function's, and version {version}, the model's"
            )
    return ""


@cache
def same_operator(op_type: str, domain: str, a: int, b: int) -> bool:
    """Tells if an operator is proven to be the same in two versions of its domain.

    >>> same_operator("Relu", "", 14, 18), same_operator("ReduceMax", "", 14, 18)
    (True, False)
    """
    try:
        schemas = [onnx.defs.get_schema(op_type, version, domain) for version in (a, b)]
    except onnx.defs.SchemaError:
        return False
    return schemas[0].since_version == schemas[1].since_version


def _inline(builder: GraphBuilder, record: NodeRecord, function: FunctionProto) -> list[NodeRecord]:
    call = builder.store.proto(record)
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    mapping = dict.fromkeys(function.input, "")
    mapping.update(zip(function.input, record.inputs, strict=False))
    nodes = [bind_attributes(node, given, defaults) for node in function.node]
    for opset in function.opset_import:
        builder.opsets.setdefault(main_domain(opset.domain), opset.version)
    results = list(zip(function.output, record.outputs, strict=False))
    with refreshed(builder, record):
        return splice(builder, record, nodes, mapping, results, builder.unique_name)


# -- what is called


def called_functions(builder: GraphBuilder) -> set[Key]:
    """Functions the graph calls, directly or not."""
    called: set[Key] = set()
    stack: list[Any] = [builder.nodes]
    while stack:
        for node in all_nodes(stack.pop()):
            key = function_key(node)
            if key in builder.functions and key not in called:
                called.add(key)
                stack.append(builder.functions[key].node)
    return called


def remove_unused_functions(builder: GraphBuilder) -> int:
    """Removes the functions nothing calls. Returns how many."""
    called = called_functions(builder)
    dead = [key for key in builder.functions if key not in called]
    for key in dead:
        del builder.functions[key]
    return len(dead)


# -- making functions


def make_local_function(
    builder: GraphBuilder,
    source: GraphBuilder,
    options: FunctionOptions,
    optimize: bool = False,
    metadata_props: dict[str, str] | None = None,
) -> tuple[list[str], Key]:
    """Turns a builder into a local function of another one.

    :param builder: receives the function
    :param source: becomes the function
    :param options: name, domain, what happens to the initializers
    :param optimize: optimizes the body first
    :param metadata_props: metadata stored in the function
    :return: names of the initializers that became inputs, and the key `(domain, name)`
    :raises OptionError: another function has the same name
    """
    if not options.export_as_function or not options.name:
        raise OptionError(
            "make_local_function needs FunctionOptions(export_as_function=True, name=...)."
        )
    if options.inline and source.functions:
        source.inline_functions()
    if optimize:
        source.optimize()
    leave_folder(source, builder)
    renamed = add_functions(builder, source.functions, True, options.rename_allowed)
    added = _initializers_to_inputs(builder, source, options)
    proto = _renamed(export_function(source, options), renamed)
    if not options.domain:
        proto.domain = builder.local_domain
    if metadata_props:
        oh.set_metadata_props(proto, metadata_props)
    key = _add_function(builder, proto, options.merge_allowed, options.rename_allowed)
    builder.add_domain(key[0])
    return added, key


def _initializers_to_inputs(
    builder: GraphBuilder, source: GraphBuilder, options: FunctionOptions
) -> list[str]:
    """Initializers that do not stay in the function become inputs: all of them, or the big ones."""
    from ..builder_making import IOSpec

    added: list[str] = []
    for name, value in list(source.constants.initializers.items()):
        small = initializer_bytes(value) < options.external_threshold
        stays = options.move_initializer_to_constant or not options.return_initializer
        if (small and stays) or name in source.constants.overridable:
            continue
        source.input_specs.append(IOSpec(name))
        source.constants.take_initializer(name)
        added.append(
            builder.make_initializer(
                name, value, give_unique=True, source=f"function {options.name}"
            )
        )
    return added


def add_functions(
    builder: GraphBuilder, functions: Mapping[Key, FunctionProto], merge: bool, rename: bool
) -> dict[Key, Key]:
    """Adds functions to a builder, those they call first.

    :param builder: receives the functions
    :param functions: the functions
    :param merge: a function equal to one that is known is not added
    :param rename: a function whose name is taken by another one gets a free name
    :return: new keys of those that were renamed; the calls inside functions follow already
    :raises OptionError: a name is taken
    """
    renamed: dict[Key, Key] = {}
    done: set[Key] = set()

    def add(key: Key) -> None:
        if key in done:
            return
        done.add(key)
        for node in all_nodes(functions[key].node):
            if function_key(node) in functions:
                add(function_key(node))
        new = _add_function(builder, _renamed(functions[key], renamed), merge, rename)
        if new != key:
            renamed[key] = new
        builder.add_domain(new[0])

    for key in functions:
        add(key)
    return renamed


def _renamed(function: FunctionProto, renamed: Mapping[Key, Key]) -> FunctionProto:
    return function_with(function, rename_calls(function.node, renamed))


def _key_of(proto: FunctionProto, name: str) -> Key:
    overload = getattr(proto, "overload", "")
    return main_domain(proto.domain), f"{name}:{overload}" if overload else name


def _content(proto: FunctionProto) -> bytes:
    """What a function is, its name left out."""
    copy = FunctionProto()
    copy.CopyFrom(proto)
    copy.name = ""
    return copy.SerializeToString(deterministic=True)


def _add_function(builder: GraphBuilder, proto: FunctionProto, merge: bool, rename: bool) -> Key:
    content, i, name = _content(proto), 1, proto.name
    while True:
        key = _key_of(proto, name)
        known = builder.functions.get(key)
        if known is None:
            proto.name = name
            builder.functions[key] = proto
            return key
        same = _content(known) == content
        if same and merge:
            return key
        if not rename:
            raise OptionError(
                f"{'An equal' if same else 'A different'} function {key} exists already; "
                "allow FunctionOptions(merge_allowed=True) or rename_allowed=True."
            )
        i += 1
        name = f"{proto.name}_{i}"
