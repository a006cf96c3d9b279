"""Calls torch.export, one strategy after the other if needed."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch._decomp import decomposition_table
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from .autocast import graph_modules, has_autocast, without_type_checks
from .dynamic_shapes import needs_size_oblivious
from .dynamic_steps import steps_of_any_size
from .errors import ExportError, ValidationError
from .export_options import ExportOptions
from .fake_tensors import without_data
from .interpreter import fake_value, has_complex
from .kept_operators import kept_associative_scans, unchecked_distributions, unread_masks
from .keywords import named_keywords
from .recurrent import kept_recurrent_layers
from .tracing import check_traced, trace_module
from .vectorized import has_vmap

_DRAFT = "torch.export.draft_export(model, args) lists all the problems at once."
_ADVICE = (
    "What to try: ExportOptions(strategy='fallback') tries several strategies; "
    f"strategy='strict' goes through dynamo; {_DRAFT}"
)
_HINTS = (
    (
        ("data-dependent", "DataDependent", "GuardOnDataDependent"),
        "A python decision depends on the content of a tensor: use torch.cond, torch.where or "
        "torch._check to state what is true.",
    ),
    (
        (
            "Constraints violated",
            "specialized",
            "inferred a static shape",
            "not valid for all",
            "ConstraintViolation",
        ),
        "A dimension declared dynamic became a constant or is tied to another one: use Dim.AUTO "
        "for it, or leave it static. The message above names the guard and its line.",
    ),
    (
        ("Unsupported input type <class 'numpy.",),
        "Arguments are torch tensors: torch.from_numpy(array).",
    ),
    (
        ("For combine_mode='pointwise'",),
        "torch runs it on a GPU only: combine_mode='generic' does the same on any device.",
    ),
    (("dynamic_shapes",), "dynamic_shapes must have the structure of the arguments."),
)
# decomposing an operator may bring others which have no converter
_MAX_ROUNDS = 4
#: tells if an operator has a converter, and one for complex tensors if there are some
Supported = Callable[[torch._ops.OpOverload, bool], bool]
# in-place for the schema, without effect on a functional graph
_HARMLESS = ("aten.detach_.default", "aten.lift_fresh.default")


def export_program(
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: ExportOptions,
    dynamic_shapes: Any = None,
    specs: list[Any] | None = None,
    is_supported: Supported = lambda op, on_complex: True,
    verbose: int = 0,
) -> torch.export.ExportedProgram:
    """Exports a module, functional and decomposed as the options ask.

    :param mod: module
    :param args: positional arguments
    :param kwargs: named arguments
    :param options: options
    :param dynamic_shapes: see :func:`torch_dynamic_shapes`
    :param specs: the user's specification of every leaf of the arguments
    :param is_supported: tells if an operator has a converter, others are decomposed
    :param verbose: prints the strategies and the exported program (10)
    :raises ExportError: no strategy works
    """
    request = _Request(mod, args, dict(kwargs), dynamic_shapes, specs or [])
    failures: list[tuple[ExportOptions, Exception]] = []
    for candidate in options.candidates():
        try:
            program = _export_once(request, candidate)
        except Exception as e:
            failures.append((candidate, e))
            if verbose:
                print(f"[to_onnx] strategy {candidate.label} failed: {_first_line(e)}")
            continue
        if verbose and options.fallback:
            print(f"[to_onnx] strategy {candidate.label} works")
        try:
            return _finish(program, candidate, is_supported, verbose)
        except ExportError as e:
            failures.append((candidate, e))
    raise ExportError(_failure_message(failures)) from failures[-1][1]


def _first_line(e: Exception) -> str:
    return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"


def _hints(errors: Iterable[Exception]) -> list[str]:
    """What is known of the errors, each hint once."""
    texts = [f"{type(e).__name__}: {e}" for e in errors]
    return [hint for keys, hint in _HINTS if any(k in t for k in keys for t in texts)]


def _failure_message(failures: list[tuple[ExportOptions, Exception]]) -> str:
    hints = _hints(e for _, e in failures)
    if len(failures) > 1:
        rows = [f"  {o.label}: {_first_line(e)}" for o, e in failures]
        advice = [*hints, f"What to try: {_DRAFT}"]
        return "\n".join(["torch.export failed with every strategy:", *rows, *advice])
    options, e = failures[0]
    text = f"{type(e).__name__}: {e}"
    told = "\n".join([text, *hints, _ADVICE])
    return f"torch.export failed (strategy {options.label}).\n{told}"


class _Request(NamedTuple):
    """What torch.export is asked for.

    :param mod: module
    :param args: positional arguments
    :param kwargs: named arguments
    :param dynamic_shapes: see :func:`torch_dynamic_shapes`
    :param specs: the user's specification of every leaf of the arguments
    """

    mod: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any
    specs: list[Any]


def _export_once(request: _Request, options: ExportOptions) -> torch.export.ExportedProgram:
    if options.jit:
        return _export_jit(request)
    if options.tracing:
        request = request._replace(mod=_traced(request, options))
    if options.fake:
        with without_data(request.mod, (request.args, request.kwargs)) as (args, kwargs):
            return _export_tensors(request._replace(args=args, kwargs=kwargs), options)
    return _export_tensors(request, options)


def _traced(request: _Request, options: ExportOptions) -> torch.nn.Module:
    """What torch.fx traces of a model, compared with it where there is data to run them."""
    mod, args, kwargs, shapes, _ = request
    traced = trace_module(mod, args, kwargs, options.tracing_module_leaves or (), shapes)
    if not options.fake:
        check_traced(traced, mod, args, kwargs)
    return traced


def _export_tensors(request: _Request, options: ExportOptions) -> torch.export.ExportedProgram:
    mod, args, kwargs, shapes, specs = request
    oblivious = options.backed_size_oblivious
    if oblivious == "auto":
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        oblivious = needs_size_oblivious(specs, leaves)
    config: Any = torch.fx.experimental._config
    with contextlib.ExitStack() as stack:
        if oblivious:
            stack.enter_context(config.patch(backed_size_oblivious=True))
        if not options.strict:
            stack.enter_context(kept_recurrent_layers())
            stack.enter_context(kept_associative_scans())
            stack.enter_context(steps_of_any_size())
            stack.enter_context(unread_masks())
        stack.enter_context(unchecked_distributions())
        stack.enter_context(named_keywords(mod, kwargs))
        return torch.export.export(
            mod,
            args,
            kwargs=kwargs,
            dynamic_shapes=shapes,
            strict=options.strict,
            prefer_deferred_runtime_asserts_over_guards=(
                options.prefer_deferred_runtime_asserts_over_guards
            ),
        )


def _export_jit(request: _Request) -> torch.export.ExportedProgram:
    """Traces with TorchScript: the result has static shapes."""
    mod, args, kwargs, shapes, _ = request
    if shapes is not None:
        raise ExportError("Strategy 'jit' produces static shapes, remove dynamic_shapes.")
    from torch._export.converter import TS2EPConverter

    trace: Callable[..., torch.jit.ScriptModule] = torch.jit.trace
    traced = trace(mod, args, example_kwarg_inputs=kwargs or None, strict=False)
    return TS2EPConverter(traced, args, kwargs).convert()


def has_inplace(graph: torch.fx.Graph) -> bool:
    """True if an operator of the graph modifies one of its arguments."""
    return any(
        isinstance(n.target, torch._ops.OpOverload)
        and n.target._schema.is_mutable
        and str(n.target) not in _HARMLESS
        for n in graph.nodes
    )


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
    :param is_supported: tells if an operator has a converter
    :param verbose: prints the operators decomposed because they have no converter
    """
    table, graphs = options.decomposition_table, _graphs(program)
    autocast = any(map(has_autocast, graphs))
    if autocast:
        program = without_type_checks(program)
    vectorized = any(map(has_vmap, graphs))
    if table is None:
        if autocast or vectorized or (options.remove_inplace and any(map(has_inplace, graphs))):
            program = _decomposed(program, {})
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
    """Decomposes the operators without converter, but those on complex tensors."""
    for _ in range(_MAX_ROUNDS):
        found = dict(_decompositions_of(_missing(_graphs(program), is_supported)))
        if not found:
            break
        if verbose:
            print(f"[to_onnx] no converter, decomposed: {sorted(map(str, found))}")
        program = _decomposed(program, found)
    return program


def _without_complex(
    program: torch.export.ExportedProgram,
    ops: Iterable[torch._ops.OpOverload],
    kept: set[Any],
    verbose: int,
) -> torch.export.ExportedProgram:
    """Decomposes operators on complex tensors, one at a time.

    torch fails on some of them: they stay as they are, and join *kept*.
    """
    for op, function in sorted(_decompositions_of(ops), key=lambda pair: str(pair[0])):
        try:
            program = _decomposed(program, {op: function})
        except ExportError as e:
            kept.add(op)
            if verbose:
                print(f"[to_onnx] {op} on complex tensors stays: {_first_line(e)}")
    return program


def _decomposed(program: torch.export.ExportedProgram, table: Any) -> torch.export.ExportedProgram:
    """Applies decompositions; torch fails on some operators, its own error is the cause."""
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
    :param is_supported: tells if an operator has a converter
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
    """The operators of a graph of torch functions, as dynamo gives them to a backend.

    :param module: graph whose inputs know their fake values, symbolic numbers included
    :raises ExportError: they do not
    """
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    fakes = [fake_value(n) for n in inputs]
    # torch gives a backend another mode than the one its graph was made with
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
    targets = {
        n.target
        for n in nodes
        if isinstance(n.target, torch._ops.OpOverload) and has_complex(n) == on_complex
    }
    return {t for t in targets if not is_supported(t, on_complex)}


def _expects_a_name(decomposition: Callable[..., Any]) -> bool:
    """True for those of the functions of torch: reduction is a name, aten gives a number."""
    parameter = inspect.signature(decomposition).parameters.get("reduction")
    return parameter is not None and parameter.annotation in (str, "str")


@functools.cache
def _known_decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        k: v
        for k, v in decomposition_table.items()
        if not str(k).startswith("prims.") and not _expects_a_name(v)
    }


def _all_decompositions() -> dict[Any, Callable[..., Any]]:
    """A new dictionary: torch changes those it is given."""
    return {**torch.export.default_decompositions(), **_known_decompositions()}


def _decompositions_of(
    operators: Iterable[torch._ops.OpOverload],
) -> Iterator[tuple[Any, Callable[..., Any]]]:
    table = _all_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    for op in operators:
        if op in table:
            yield op, table[op]
        elif op.has_kernel_for_dispatch_key(composite):
            yield op, op.decompose


def _finish(
    program: torch.export.ExportedProgram,
    options: ExportOptions,
    is_supported: Supported,
    verbose: int,
) -> torch.export.ExportedProgram:
    program = decompose(program, options, is_supported, verbose)
    if verbose >= 10:
        print(program)
    if options.save_ep:
        with open(f"{options.save_ep}.ep.txt", "w") as f:
            f.write(str(program))
        torch.export.save(program, f"{options.save_ep}.pt2")
    return program


def validate_program(
    program: torch.export.ExportedProgram,
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tolerance: float,
) -> None:
    """Compares the exported program with the model on the arguments of the export.

    :raises ValidationError: they differ
    """
    from .validation import clone_arguments, compare

    args1, kwargs1 = clone_arguments((args, dict(kwargs)))
    args2, kwargs2 = clone_arguments((args, dict(kwargs)))
    expected = mod(*args1, **kwargs1)
    got = program.module()(*args2, **kwargs2)
    leaves = torch.utils._pytree.tree_leaves
    problem = compare(leaves(expected), leaves(got), tolerance)
    if problem:
        raise ValidationError(f"The exported program and the model disagree: {problem}")
