"""Decomposes operators of an exported program: those of the options, those without converter."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch._library.custom_ops import OPDEFS
from torch._library.simple_registry import singleton
from torch._library.triton import get_triton_kernels_for_op
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from ..common.errors import ExportError, first_line
from ..common.export_options import ExportOptions
from ..inputs.dynamic_shapes import dynamic_sizes
from ..patches.attributes import patched
from ..patches.autocast import graph_modules, has_autocast, without_type_checks
from ..patches.dynamic_steps import any_bounds
from ..patches.graph_checks import accept_symbolic_functions, light_conditions
from ..patches.vectorized import has_vmap
from ..writing.fx_nodes import fake_value, has_complex
from .in_place import NotRewritten, is_in_place, make_functional
from .one_node import NotDecomposed, decompose_nodes

_FLEX: Any = importlib.import_module("torch._higher_order_ops.flex_attention")
# decomposing an operator may bring others which have no converter
_MAX_ROUNDS = 4
#: operators whose decomposition writes in a tensor, which torch refuses in a functional graph
_NOT_FUNCTIONAL = ("aten.constant_pad_nd.", "aten.diagonal_scatter.")
#: what torch says of its own code when a program is copied
_OF_TORCH = r"`isinstance\(treespec, LeafSpec\)` is deprecated"
#: whether an operator has a converter, on complex tensors if the second argument is true
Supported = Callable[[torch._ops.OpOverload, bool], bool]


def has_inplace(graph: torch.fx.Graph) -> bool:
    """Whether an operator of the graph modifies one of its arguments."""
    return any(map(is_in_place, graph.nodes))


def _graphs(program: torch.export.ExportedProgram) -> list[torch.fx.Graph]:
    return [m.graph for m in graph_modules(program)]


def decompose(
    program: torch.export.ExportedProgram,
    options: ExportOptions,
    is_supported: Supported = lambda op, on_complex: True,
    verbose: int = 0,
) -> torch.export.ExportedProgram:
    """Applies the decompositions the options ask, and makes the graph functional if needed.

    Then the operators without converter are decomposed, when torch knows how to do it.

    :param program: exported program
    :param options: options
    :param is_supported: whether an operator has a converter
    :param verbose: prints the operators decomposed because they have no converter
    """
    with (
        accept_symbolic_functions(),
        light_conditions(),
        _same_sizes(program, options),
        any_bounds(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message=_OF_TORCH, category=FutureWarning)
        return _decompose(program, options, is_supported, verbose)


def _same_sizes(
    program: torch.export.ExportedProgram, options: ExportOptions
) -> contextlib.AbstractContextManager[Any]:
    """A context that specialises a dynamic dimension of 0 or 1 no more than the export did."""
    oblivious = options.backed_size_oblivious
    if oblivious == "auto":
        sizes = (d for graph in _graphs(program) for d in dynamic_sizes(graph))
        oblivious = any(d.node.hint in (0, 1) for d in sizes if not d.node.expr.is_number)
    config: Any = torch.fx.experimental._config
    patched: contextlib.AbstractContextManager[Any] = config.patch(backed_size_oblivious=oblivious)
    return patched


def _decompose(
    program: torch.export.ExportedProgram,
    options: ExportOptions,
    is_supported: Supported,
    verbose: int,
) -> torch.export.ExportedProgram:
    """The rounds of decompositions, see :func:`decompose`."""
    table, graphs = options.decomposition_table, _graphs(program)
    autocast = any(map(has_autocast, graphs))
    if autocast:
        program = without_type_checks(program)
    vectorized = any(map(has_vmap, graphs))
    if table is None:
        if autocast or vectorized:
            program = _decomposed(program, {})
        elif options.remove_inplace and any(map(has_inplace, graphs)):
            program = _functional(program)
    elif table == "default":
        program = _decomposed(program, None)
    else:
        program = _decomposed(program, _all_decompositions() if table == "all" else table)
    kept: set[Any] = set()
    for _ in range(_MAX_ROUNDS):
        program = _with_converters(program, is_supported, verbose)
        ops = _missing(_graphs(program), is_supported, on_complex=True) - kept
        if not ops:
            break
        program = _without_complex(program, ops, kept, verbose)
    return program


def _with_converters(
    program: torch.export.ExportedProgram, is_supported: Supported, verbose: int
) -> torch.export.ExportedProgram:
    """Decomposes the operators without converter, except those on complex tensors."""
    for _ in range(_MAX_ROUNDS):
        graphs = _graphs(program)
        found = dict(_decompositions_of(_missing(graphs, is_supported)))
        found.update(_higher_order(graphs))
        if not found:
            break
        if verbose:
            print(f"[to_onnx] no converter, decomposed: {sorted(map(str, found))}")
        program = _locally_decomposed(program, found, on_complex=False)
    return program


def _without_complex(
    program: torch.export.ExportedProgram,
    ops: Iterable[torch._ops.OpOverload],
    kept: set[Any],
    verbose: int,
) -> torch.export.ExportedProgram:
    """Decomposes operators on complex tensors, one at a time.

    Those torch fails to decompose are unchanged and are added to *kept*.
    """
    for op, function in sorted(_decompositions_of(ops), key=lambda pair: str(pair[0])):
        try:
            program = _locally_decomposed(program, {op: function}, on_complex=True)
        except ExportError as e:
            kept.add(op)
            if verbose:
                print(f"[to_onnx] {op} on complex tensors stays: {first_line(e)}")
    return program


def _functional(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without operators in place; torch runs it again when a rewrite is not known."""

    def rewrite(module: torch.fx.GraphModule) -> dict[str, str]:
        return make_functional(module.graph, inputs_change=module is copied.graph_module)

    copied = _copied(program)
    try:
        _rewritten(copied, rewrite)
    except NotRewritten:
        return _decomposed(program, {})
    return copied


def _locally_decomposed(
    program: torch.export.ExportedProgram, table: dict[Any, Callable[..., Any]], on_complex: bool
) -> torch.export.ExportedProgram:
    """Decomposes some operators where they are; torch runs the program again when it has to."""

    def rewrite(module: torch.fx.GraphModule) -> dict[str, str]:
        return decompose_nodes(module, table, lambda n: has_complex(n) == on_complex)

    copied = _copied(program)
    try:
        _rewritten(copied, rewrite)
    except NotDecomposed:
        return _decomposed(program, table)
    return copied


def _copied(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same program with another graph, the one of the user stays as it is. The code of the
    graphs is not written: they are about to change."""
    with patched(torch.fx.GraphModule, {"recompile": lambda module: None}):
        graph, signature = copy.deepcopy((program.graph_module, program.graph_signature))
        for before, after in zip(program.graph.nodes, graph.graph.nodes, strict=True):
            after.name = before.name  # a copy renames those that have the name of a python function
        copied: torch.export.ExportedProgram = program._update(graph, signature)
    return copied


def _rewritten(
    program: torch.export.ExportedProgram,
    rewrite: Callable[[torch.fx.GraphModule], dict[str, str]],
) -> None:
    """Rewrites the graphs of a program and the names of its outputs."""
    for module in graph_modules(program):
        renamed = rewrite(module)
        if module is program.graph_module:
            for before, after in renamed.items():
                program.graph_signature.replace_all_uses(before, after)
        module.recompile()


def _decomposed(program: torch.export.ExportedProgram, table: Any) -> torch.export.ExportedProgram:
    """Applies decompositions; the error torch raises on some operators is the cause of ours."""
    try:
        decomposed: torch.export.ExportedProgram = program.run_decompositions(table)
    except Exception as e:
        names = f" {sorted(map(str, table))}" if table and len(table) < 10 else ""
        raise ExportError(
            f"torch is not able to decompose the operators{names} of the exported program.\n"
            f"{type(e).__name__}: {e}\nRegister a converter for the operator in the message, or "
            f"write it in another way."
        ) from e
    return decomposed


def decompose_graph(module: torch.fx.GraphModule, is_supported: Supported) -> torch.fx.GraphModule:
    """Decomposes the operators without converter of an fx graph, traced again with fake tensors.

    :param module: graph whose nodes know their fake values
    :param is_supported: whether an operator has a converter
    """
    for _ in range(_MAX_ROUNDS):
        table = dict(_decompositions_of(_missing([module.graph], is_supported)))
        fakes = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
        mode = detect_fake_mode(fakes)
        if not table or mode is None:
            break
        with mode:
            module = make_fx(module, decomposition_table=table)(*fakes)
    return module


def trace_graph(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Traces a graph of torch functions, as dynamo gives to a backend, into a graph of operators.

    :param module: graph whose inputs know their fake values, symbolic numbers included
    :raises ExportError: an input has no fake value
    """
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    fakes = [fake_value(n) for n in inputs]
    # torch gives a backend another fake mode than the one its graph was made with
    modes = [v.fake_mode for v in fakes if isinstance(v, FakeTensor)]
    if not modes or any(v is None for v in fakes):
        names = [n.name for n in inputs]
        raise ExportError(f"The inputs {names} of the graph need a fake value each.")
    with tracing(TracingContext(modes[0])), modes[0], torch.no_grad():
        traced = make_fx(module, pre_dispatch=True, _allow_non_fake_inputs=True)(*fakes)
        if has_inplace(traced.graph):
            functional = torch.func.functionalize(traced)
            traced = make_fx(functional, _allow_non_fake_inputs=True)(*fakes)
    return traced


def _missing(
    graphs: Iterable[torch.fx.Graph], is_supported: Supported, on_complex: bool = False
) -> set[torch._ops.OpOverload]:
    """The operators of graphs without converter, on complex tensors or on the others."""
    nodes = [n for graph in graphs for n in graph.nodes if n.op == "call_function"]
    targets = {n.target for n in nodes if isinstance(n.target, torch._ops.OpOverload)}
    unknown = {t for t in targets if not is_supported(t, on_complex)}
    return unknown and {
        n.target for n in nodes if n.target in unknown and has_complex(n) == on_complex
    }


def _higher_order(graphs: Iterable[torch.fx.Graph]) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """The decompositions of the higher-order operators of some graphs."""
    targets = {n.target for graph in graphs for n in graph.nodes if n.op == "call_function"}
    if _FLEX.flex_attention in targets:
        yield _FLEX.flex_attention, _FLEX.sdpa_dense


def _expects_a_name(decomposition: Callable[..., Any]) -> bool:
    """Whether a decomposition is of a torch function: reduction is a name there, not a number."""
    parameter = inspect.signature(decomposition).parameters.get("reduction")
    return parameter is not None and parameter.annotation in (str, "str")


@functools.cache
def _known_decompositions() -> dict[Any, Callable[..., Any]]:
    """All decompositions, none is modified."""
    known = {
        k: v
        for k, v in decomposition_table.items()
        if not str(k).startswith(("prims.", *_NOT_FUNCTIONAL)) and not _expects_a_name(v)
    }
    return {**torch.export.default_decompositions(), **known}


def _all_decompositions() -> dict[Any, Callable[..., Any]]:
    """A new dictionary of all decompositions, since torch modifies the one it is given."""
    return dict(_known_decompositions())


def _decompositions_of(
    operators: Iterable[torch._ops.OpOverload],
) -> Iterator[tuple[Any, Callable[..., Any]]]:
    table = _known_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    for op in operators:
        if op in table:
            yield op, table[op]
        elif op.has_kernel_for_dispatch_key(composite):
            yield op, op.decompose
        elif (traced := _made_of_operators(op)) is not None:
            yield op, traced


def _made_of_operators(op: torch._ops.OpOverload) -> Callable[..., Any] | None:
    """The function of an operator that `torch.library.triton_op` makes, where it calls no kernel:
    torch.export keeps the operator, torch.compile traces the function."""
    name = op._schema.name
    rules = singleton.find(name).torch_dispatch_rules
    is_traced = rules.find(FunctionalTensorMode) is not None and not get_triton_kernels_for_op(name)
    definition = OPDEFS.get(name) if is_traced else None
    return None if definition is None else definition._init_fn
