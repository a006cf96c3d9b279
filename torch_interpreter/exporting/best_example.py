"""Exports with the arguments, or with others when torch treats their sizes apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from xbuilder.support.user_warnings import warn_user

from ..checking.other_sizes import allowed_sizes, at_sizes
from ..checking.trials import ExampleTrial
from ..common.errors import ExportError, first_line
from ..inputs.dimension_conditions import assumptions
from ..inputs.dynamic_shapes import DimensionNamer, dynamic_sizes, is_symbol
from ..inputs.examples import Example, larger_examples
from ..patches.fake_tensors import has_no_data
from ..patches.texts import made_texts
from .torch_program import TorchProgram

#: what the dimensions are multiplied by, when one that is computed from them is 0 or 1
_FACTORS = (2, 3, 4, 8)
#: how many sizes at which a graph is wrong are tried as those of the export
_BRANCHES = 2
#: sizes whose texts differ in length and in digits
_LENGTHS = (3, 8, 12, 25, 77, 101, 1009)
pytree = torch.utils._pytree
Export = Callable[[tuple[Any, ...], dict[str, Any]], TorchProgram]


def export_example(
    export: Export,
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: Sequence[Any],
    verbose: int,
) -> TorchProgram:
    """Exports with the arguments, with larger ones if a dynamic dimension is 0 or 1 in them, with
    other sizes if the graph is wrong at these.

    A graph made with other arguments is kept if it gives the results of the model on those of the
    user.

    :param export: exports the model with some arguments
    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    :param specs: specification of every leaf
    :param verbose: prints the sizes that are tried
    """
    weights = itertools.chain(mod.parameters(), mod.buffers())
    values = (*pytree.tree_leaves((args, kwargs)), *weights)
    if all(s is None for s in specs) or any(map(has_no_data, values)):
        return export(args, kwargs)
    model = _Model(export, mod, args, kwargs, verbose)
    with made_texts() as lines:
        program = model.best(specs)
    if lines and program.trial is not None:
        model.check_texts(program, program.trial, specs, lines[0])
    return program


class _Model(NamedTuple):
    """The arguments of :func:`export_example`."""

    export: Export
    mod: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    verbose: int

    def best(self, specs: Sequence[Any]) -> TorchProgram:
        """Exports with the best example."""
        leaves, _ = pytree.tree_flatten((self.args, self.kwargs))
        best, program = Example(leaves, {}), None
        for example in larger_examples(specs, leaves):
            program = self.tried(example)
            if program is not None:
                best = example
                break
        program = program or self.with_trial(self.export(self.args, self.kwargs))
        larger, trial = _larger_results(program, best.leaves), program.trial
        if (
            larger is not None
            and trial is not None
            and (trial.fails_on(larger.leaves) or trial.has_other_shapes(larger.leaves))
        ):
            program, best = self.tried(larger) or program, larger
        return self.more_general(program, specs, best.leaves)

    def check_texts(
        self, program: TorchProgram, trial: ExampleTrial, specs: Sequence[Any], line: str
    ) -> None:
        """Refuses a graph if a text made from a dynamic dimension decides its results: it is wrong
        at a size that no condition excludes, or right on the arguments with the text they make.

        :param program: the graph
        :param trial: compares it with the model
        :param specs: specification of every leaf
        :param line: the line that makes a text
        :raises ExportError: the graph is wrong
        """
        text = f"{line}, makes a text from a dynamic dimension, which has no value during the "
        if trial.is_right():
            leaves = pytree.tree_leaves((self.args, self.kwargs))
            is_wrong = any(map(trial.fails_at, allowed_sizes(program.inputs, leaves, _LENGTHS)))
        else:
            with made_texts(digits=True):
                other = self.best(specs).trial
            is_wrong = other is not None and other.is_right()
            if not is_wrong:
                warn_user(
                    f"The graph does not give the results of the model on the arguments: {text}"
                    "export."
                )
        if is_wrong:
            raise ExportError(
                f"The results depend on a text: {text}export. Compute the number from the "
                "dimension, or do not make it dynamic."
            )

    def more_general(
        self, program: TorchProgram, specs: Sequence[Any], leaves: Sequence[Any]
    ) -> TorchProgram:
        """Exports with sizes at which a graph is wrong, and keeps the result if it is right there
        and on the arguments: of the branches of ``if padding > 0``, one is right for all sizes.
        Its shapes are right too: ``x[:, :10]`` has not always 10 columns. A result that is wrong
        at fewer sizes only is kept as well."""
        own = pytree.tree_leaves((self.args, self.kwargs))
        wrong = _wrong_sizes(program, specs)
        for sizes in wrong[:_BRANCHES]:
            other = self.tried(Example(at_sizes(program.inputs, leaves, sizes), dict(sizes)))
            if other is None or other.trial is None or other.trial.has_other_shapes(own):
                continue
            left = _wrong_sizes(other, specs)
            if not left:
                return other
            if _is_better((other, left), (program, wrong), leaves):
                program, wrong = other, left
        return program

    def tried(self, example: Example) -> TorchProgram | None:
        """Exports with an example, None if the graph is wrong on the arguments."""
        _, tree = pytree.tree_flatten((self.args, self.kwargs))
        try:
            program = self.export(*pytree.tree_unflatten(example.leaves, tree))
        except ExportError as e:
            if self.verbose:
                print(f"[to_onnx] the model is not exported with {example.sizes}: {first_line(e)}")
            return None
        trial = self.with_trial(program).trial
        right = trial is not None and trial.is_right()
        if self.verbose:
            verdict = "exported" if right else "the graph is wrong on the arguments when exported"
            print(f"[to_onnx] {verdict} with {example.sizes}")
        return program if right else None

    def with_trial(self, program: TorchProgram) -> TorchProgram:
        """A program that can be compared with the model."""
        program.trial = trial_of(program, self.mod, self.args, self.kwargs)
        return program


def trial_of(
    program: TorchProgram, mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExampleTrial:
    """The comparison of a graph with the model.

    :param program: the graph
    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    """
    count = len(program.outputs)
    return ExampleTrial(mod, args, kwargs, program.module, program.weights, program.inputs, count)


def _wrong_sizes(program: TorchProgram, specs: Sequence[Any]) -> list[Mapping[str, int]]:
    """Sizes at which a graph is wrong because of a decision in Python, by symbol of torch; none if
    the values of its results cannot be compared."""
    named = [(i.onnx_name or i.name, i.fake) for i in program.inputs]
    found: list[Mapping[str, int]] = []
    trial = program.trial
    if trial is None or trial.is_random:
        return found

    tried = False

    def fails_at(sizes: Mapping[str, int]) -> bool:
        nonlocal tried
        tried = True
        fails = trial.is_right() and trial.fails_at(sizes)
        found.extend([sizes] if fails else [])
        return fails

    namer = DimensionNamer()
    namer.name_inputs(named, specs)
    conditions = assumptions(named, specs, program.module, namer, fails_at)
    program.is_general = not conditions and (not tried or trial.is_right())
    return found


def _is_better(
    new: tuple[TorchProgram, Sequence[Mapping[str, int]]],
    old: tuple[TorchProgram, Sequence[Mapping[str, int]]],
    leaves: Sequence[Any],
) -> bool:
    """Whether a graph is right at some of the sizes at which another one is wrong, which is wrong
    wherever the new one is.

    :param new: a graph and the sizes at which it is wrong
    :param old: another one
    :param leaves: leaves of the arguments
    """
    (program, left), (former, wrong) = new, old
    if program.trial is None or former.trial is None:
        return False
    mended = (not program.trial.fails_on(at_sizes(former.inputs, leaves, s)) for s in wrong)
    kept = (former.trial.fails_on(at_sizes(program.inputs, leaves, s)) for s in left)
    return any(mended) and all(kept)


def _larger_results(program: TorchProgram, leaves: Sequence[Any]) -> Example | None:
    """The example in which no dimension that is computed from others is 0 or 1, None if there is
    nothing to change."""
    dims = [d.node for d in dynamic_sizes(program.module.graph)]
    small = {
        node.expr: node
        for node in dims
        if node.hint in (0, 1) and not node.expr.is_Symbol and not node.expr.is_number
    }
    symbols = {s for expr in small for s in expr.free_symbols}
    fakes = (i.fake for i in program.inputs if isinstance(i.fake, torch.Tensor))
    own: list[Any] = [dim for fake in fakes for dim in fake.shape if is_symbol(dim)]
    sizes = {d.node.expr: d.node.hint for d in own if d.node.expr in symbols}
    changes = max(_scaled(sizes), key=lambda s: _count_large(small, s), default=None)
    if changes is None or not _count_large(small, changes):
        return None
    named = {symbol.name: size for symbol, size in changes.items()}
    return Example(at_sizes(program.inputs, leaves, named), named)


def _scaled(sizes: Mapping[Any, int]) -> Iterator[dict[Any, int]]:
    """Multiples of some sizes."""
    return ({s: n * factor for s, n in sizes.items()} for factor in _FACTORS if sizes)


def _count_large(exprs: Mapping[Any, Any], sizes: Mapping[Any, int]) -> int:
    """The number of expressions that are 2 or more at some sizes."""
    values = (expr.subs(sizes) for expr in exprs)
    return sum(bool(v.is_Integer and v >= 2) for v in values)
