"""Calls torch.export with one or several strategies, and validates the exported program."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.fx import _lazy_graph_module

from ..checking.own_attributes import restored_attributes
from ..checking.validation import clone_arguments, compare
from ..common.errors import ExportError, ValidationError, first_line
from ..common.export_options import ExportOptions
from ..inputs.dynamic_shapes import needs_size_oblivious
from ..patches.assignments import assign_at_expressions
from ..patches.assumed_sizes import AssumedSizes, assumed_sizes
from ..patches.box_categories import separate_categories
from ..patches.content_checks import skip_content_checks
from ..patches.dynamic_steps import allow_dynamic_steps
from ..patches.fake_tensors import without_data
from ..patches.graph_checks import (
    accept_caught_errors,
    accept_symbolic_functions,
    light_conditions,
)
from ..patches.kept_operators import (
    any_number_of_queries,
    keep_associative_scans,
    keep_fake_quantizers,
    keep_signals,
    keep_spectra,
    scale_queries,
    skip_distribution_checks,
    skip_mask_detection,
)
from ..patches.keywords import name_keywords
from ..patches.packed import keep_packed_sequences
from ..patches.python_numbers import keep_python_numbers
from ..patches.recurrent import keep_recurrent_layers
from ..patches.scripted import in_python
from ..patches.squeezed import remove_dynamic_ones
from .decompositions import Supported, decompose
from .example_branches import decide_with_example
from .failure_message import argument_leaves, failure_message, without_printed_graphs
from .in_place import changed_buffers
from .jit_traces import jit_trace
from .known_buffers import decide_with_buffers
from .known_numbers import known_numbers
from .segments import attend_inside_segments
from .selected_rows import loop_on_all_rows
from .sliding_windows import any_number_of_tokens
from .tracing import check_traced, trace_module


def export_program(
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: ExportOptions,
    dynamic_shapes: Any = None,
    specs: list[Any] | None = None,
    is_supported: Supported = lambda op, on_complex: True,
    verbose: int = 0,
    changed: list[str] | None = None,
) -> torch.export.ExportedProgram:
    """Exports a module, functional and decomposed as the options ask.

    :param mod: module
    :param args: positional arguments
    :param kwargs: named arguments
    :param options: options
    :param dynamic_shapes: see :func:`torch_dynamic_shapes`
    :param specs: the user's specification of every leaf of the arguments
    :param is_supported: whether an operator has a converter, others are decomposed
    :param verbose: prints the strategies and the exported program (10)
    :param changed: receives the names of the buffers and of the values of Python that the model
        changes
    :raises ExportError: no strategy works
    """
    request = _Request(mod, args, dict(kwargs), dynamic_shapes, specs or [])
    failures: list[tuple[ExportOptions, Exception]] = []
    constants: list[AssumedSizes] = []
    for candidate in options.candidates():
        try:
            printed = contextlib.nullcontext() if verbose else without_printed_graphs()
            held_by = restored_attributes(mod, not candidate.strict)
            with assumed_sizes() as assumed, held_by as held, printed:
                program = _export_once(request, candidate)
        except Exception as e:
            failures.append((candidate, e))
            constants.append(assumed)
            if verbose:
                print(f"[to_onnx] strategy {candidate.label} failed: {first_line(e)}")
            continue
        if verbose and options.fallback:
            print(f"[to_onnx] strategy {candidate.label} works")
        try:
            finished = _finish(program, candidate, is_supported, verbose)
        except ExportError as e:
            failures.append((candidate, e))
            continue
        if changed is not None:
            changed += [*changed_buffers(program), *held]
        return finished
    leaves = argument_leaves(mod, args, kwargs, request.specs)
    raise ExportError(failure_message(mod, failures, constants, leaves)) from failures[-1][1]


class _Request(NamedTuple):
    """The arguments of a call to torch.export.

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
    mod, args, kwargs, shapes, _ = request
    if options.jit and shapes is not None:
        raise ExportError("Strategy 'jit' produces static shapes, remove dynamic_shapes.")
    if options.jit:
        request = request._replace(mod=jit_trace(mod, args, kwargs))
        check_traced(request.mod, mod, args, kwargs)
    if options.tracing:
        request = request._replace(mod=_traced(request, options))
    if options.fake:
        with without_data(request.mod, (request.args, request.kwargs)) as (args, kwargs):
            return _export_tensors(request._replace(args=args, kwargs=kwargs), options)
    return _export_tensors(request, options)


def _traced(request: _Request, options: ExportOptions) -> torch.nn.Module:
    """The module torch.fx traces, compared with the model when there is data to run both."""
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
            # the code of the graphs of each step of the export, which nothing runs, is not written
            stack.enter_context(_lazy_graph_module._use_lazy_graph_module(True))
            stack.enter_context(keep_recurrent_layers())
            stack.enter_context(keep_packed_sequences())
            stack.enter_context(keep_associative_scans())
            stack.enter_context(keep_spectra())
            stack.enter_context(keep_signals())
            stack.enter_context(allow_dynamic_steps())
            stack.enter_context(skip_mask_detection())
            stack.enter_context(remove_dynamic_ones())
            stack.enter_context(any_number_of_queries())
            stack.enter_context(any_number_of_tokens())
            stack.enter_context(attend_inside_segments(mod))
            stack.enter_context(scale_queries())
            stack.enter_context(skip_content_checks())
            stack.enter_context(assign_at_expressions())
            stack.enter_context(known_numbers())
            stack.enter_context(accept_caught_errors())
        stack.enter_context(in_python(mod))
        stack.enter_context(skip_distribution_checks())
        stack.enter_context(separate_categories())
        stack.enter_context(keep_fake_quantizers(mod))
        stack.enter_context(accept_symbolic_functions())
        stack.enter_context(light_conditions())
        stack.enter_context(name_keywords(mod, kwargs))

        def export() -> torch.export.ExportedProgram:
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

        if options.strict:
            return export()
        numbered = partial(keep_python_numbers, export, mod)
        decided = partial(decide_with_buffers, numbered, mod, (args, kwargs))
        looped = partial(loop_on_all_rows, decided, mod, (args, kwargs))
        if not options.example_branches:
            return looped()
        return decide_with_example(looped, mod, (args, kwargs))


def _finish(
    program: torch.export.ExportedProgram,
    options: ExportOptions,
    is_supported: Supported,
    verbose: int,
) -> torch.export.ExportedProgram:
    program = decompose(program, options, is_supported, verbose)
    if verbose >= 10:
        print(program)
    prefix, size = options.saved
    if prefix:
        Path(f"{prefix}.ep.txt").write_text(str(program), encoding="utf-8")
        tensors = (*program.state_dict.values(), *program.constants.values())
        weights = sum(t.nbytes for t in tensors if isinstance(t, torch.Tensor))
        if size is None or weights <= size:
            torch.export.save(program, f"{prefix}.pt2")
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
    args1, kwargs1 = clone_arguments((args, dict(kwargs)))
    args2, kwargs2 = clone_arguments((args, dict(kwargs)))
    expected = mod(*args1, **kwargs1)
    got = program.module()(*args2, **kwargs2)
    leaves = torch.utils._pytree.tree_leaves
    problem = compare(leaves(expected), leaves(got), tolerance)
    if problem:
        raise ValidationError(f"The exported program and the model disagree: {problem}")
