"""Models around those the patterns of a family are tested on: same results before and after.

``python -m ut_xoptim.whole_models.families_around --count 200`` judges that many cases of each family, others for
each ``--start``, from the folder ``_unittests``.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from ut_xoptim.patterns_cuda.cuda_ops import CUDA_OPS
from ut_xoptim.patterns_ort.cuda_reference import OPS
from ut_xoptim.whole_models.around_changes import (
    CHANGES,
    LIMITS,
    SPECIAL,
    STEPS,
    Around,
    changed,
    special_value,
)
from ut_xoptim.whole_models.mutant_runs import limited
from ut_xoptim.whole_models.near_misses import (
    CANNOT_RUN,
    SAME,
    UNDEFINED,
    WRONG,
    Verdict,
    is_undefined,
    sources,
)

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.nodes.functions import all_nodes
from xbuilder.runtimes.sessions import plain_session
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import assert_same_outputs, make_feeds, optimize_with

Feeds = dict[str, Any]
#: selections that optimize: the patterns of the family alone, a set
SELECTIONS = ("family", "family", "default", "default+onnxruntime")
#: sizes of symbols
SIZES = (0, 1, 2, 5)
#: families whose operators only run on CUDA: results are those of their definitions, in numpy
ON_CUDA = (
    *(f"patterns_cuda.{name}" for name in ("arithmetic", "elementwise", "layout", "scatter")),
    "patterns_ort.normalization.bias_dropout",
    "patterns_ort.products.complex",
    "patterns_ort.attention.decoder_attention",
    "patterns_ort.for_models.gated_position",
    "patterns_ort.attention.gemma_rotary",
    "patterns_ort.attention.relative_position",
    "patterns_ort.elementwise.split_gelu",
)
#: families that say they are exact, and whose kernels are computed in numpy otherwise than the
#: operators they stand for: a formula with Exp instead of Sigmoid
KERNELS = ("patterns_cuda.elementwise",)
#: families whose models do not run, and why
NOT_RUN = {
    "patterns_ort.attention.generation": "GreedySearch without its decoder, the pattern looks around it",
    "patterns_ort.lowering.random": "numbers at random, others each time",
    "patterns_ort.lowering.types": "no runtime has a kernel for the models of its tests",
    "patterns_ort.lowering.recurrent": "nothing runs layout=1, its tests compare with layout=0",
}
#: families that are not compared on infinities, and why
FINITE = {
    "patterns.elementwise.residual": "x * m + x -> x * (m + 1): documented, inf - inf is NaN before",
    "patterns.products.conv_sum": "Conv(x, v) + Conv(x, w) -> Conv(x, v + w): inf * 1 - inf * 2 is NaN before",
    **dict.fromkeys(
        ("patterns_ort.attention.attention_products", "patterns_ort.attention.floored_scores"),
        "null weights become exp(-80), documented: 0 * inf is NaN before",
    ),
}
#: tolerance of rewrites that round, of sets, of patterns that say they are not exact
ROUNDING, SET, APPROXIMATE = 1e-3, 2e-3, 5e-3


class Case(NamedTuple):
    """A model around one of a family, and how it is optimized."""

    #: number of the model among those of the family
    example: int
    changes: tuple[str, ...]
    seed: int
    selection: str
    #: sizes of the symbols, again and again
    sizes: tuple[int, ...]
    #: NaN, infinities... among the inputs
    special: bool


@lru_cache(maxsize=1)
def families() -> dict[str, tuple[list[str], list[ModelProto]]]:
    """Module of patterns -> its patterns, the models of their tests."""
    found: dict[str, tuple[list[str], list[ModelProto]]] = {}
    classes = {n: c for n, c in all_patterns().items() if c.__module__.startswith("xoptim.pat")}
    modules = {name: cls.__module__.partition(".")[2] for name, cls in classes.items()}
    for name, module in modules.items():
        found.setdefault(module, ([], []))[0].append(name)
    for name, model in sources():
        if name in modules:
            found[modules[name]][1].append(model)
    return dict(sorted(found.items()))


def specials_of(family: str, case: Case) -> tuple[Any, ...]:
    """Special values of a case; a rewrite that rounds may overflow where the original does not."""
    if case.selection != "family" or precisions(family) == {"exact"}:
        return (*SPECIAL, *LIMITS)
    return tuple(v for v in SPECIAL if family not in FINITE or not np.isinf(v))


def precisions(family: str) -> set[str]:
    """How exact the rewrites of a family say they are."""
    return {all_patterns()[name].precision for name in families()[family][0]}


def around(family: str, case: Case) -> Around:
    """The model of a case."""
    models = families()[family][1]
    model = models[case.example % len(models)]
    return changed(model, case.changes, case.seed, specials_of(family, case))


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Fills the caches once in this process, so that its children do not."""
    for family in list(families())[::8]:
        for selection in SELECTIONS:
            judge(family, Case(0, (), 0, selection, (2, 1, 5), False))
    gc.collect()
    gc.freeze()


# -- one case


def judge(family: str, case: Case) -> Verdict:
    """Makes the model of a case, optimizes it, compares."""
    np.seterr(all="ignore")
    made = around(family, case)
    expected = _runs(family, case, made.model)
    if not expected:
        return Verdict(CANNOT_RUN, made.changes)
    atol = tolerance(family, case)
    try:
        run = _runner(family, case)(_optimized(made.model, family, case))
        for feeds, results in expected:
            assert_same_outputs(results, run(feeds), atol, atol, "after")
    except Exception as error:
        # the reference of onnx does not give new operators to local functions
        known = isinstance(error, NotImplementedError) and "function_body" in case.changes
        known = known or _copies_dimensions(made.model, case)
        if known or any(is_undefined(made.model, *given) for given in expected):
            return Verdict(UNDEFINED, made.changes)
        return Verdict(WRONG, made.changes, f"{type(error).__name__}: {error}"[:900])
    return Verdict(SAME, made.changes)


def _copies_dimensions(model: ModelProto, case: Case) -> bool:
    """Whether a Reshape may copy a dimension instead of a computed one that happens to be 0: its
    result does not have the shape everything says."""
    dims = [d.dim_value for i in model.graph.input for d in i.type.tensor_type.shape.dim]
    constants = {i.name for i in model.graph.initializer}
    return (0 in case.sizes or 0 in dims) and any(
        node.op_type == "Reshape"
        and node.input[1] not in constants
        and not any(a.name == "allowzero" and a.i for a in node.attribute)
        for node in all_nodes(model.graph.node)
    )


def tolerance(family: str, case: Case) -> float:
    """How far from the others results may be."""
    if case.selection != "family":
        return SET
    if family in KERNELS:
        return ROUNDING
    found = precisions(family)
    return APPROXIMATE if "approximate" in found else ROUNDING if "rounding" in found else 0.0


def _optimized(model: ModelProto, family: str, case: Case) -> ModelProto:
    """The optimized model; approximate patterns say nothing of special values."""
    special = case.special or "special_constant" in case.changes
    if case.selection == "family":
        processor = "CUDA" if family in ON_CUDA else "CPU"
        known, names = all_patterns(), families()[family][0]
        names = [n for n in names if not (special and known[n].precision == "approximate")]
        return optimize_with(model, names, processor=processor)[0]
    selection = f"{case.selection}&exact" if special else case.selection
    options = OptimizationOptions(patterns=selection)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    optimized: ModelProto = builder.to_onnx()
    return optimized


Run = Callable[[Feeds], list[Any]]


def _runner(family: str, case: Case) -> Callable[[ModelProto], Run]:
    on_cuda = case.selection == "family" and family in ON_CUDA
    return _run_in_numpy if on_cuda else _run_onnxruntime


def _run_onnxruntime(model: ModelProto) -> Run:
    session = plain_session(model.SerializeToString())
    return lambda feeds: session.run(None, feeds)


def _run_in_numpy(model: ModelProto) -> Run:
    evaluator = ReferenceEvaluator(model, new_ops=[*CUDA_OPS, *OPS])
    return lambda feeds: evaluator.run(None, feeds)


def _runs(family: str, case: Case, model: ModelProto) -> list[tuple[Feeds, list[Any]]]:
    """Inputs a model runs with, and its results: the sizes of the case, then 3 for all symbols."""
    try:
        # numpy would run an invalid model
        run = [read(model) for read in (_run_onnxruntime, _runner(family, case))][1]
    except Exception:
        return []
    dims = [d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim]
    names = sorted(filter(None, set(dims)))
    found = []
    for sizes in (case.sizes, (3,)):
        try:
            table = {name: sizes[i % len(sizes)] for i, name in enumerate(names)}
            feeds = make_feeds(model, table, case.seed)
            add_specials(feeds, case, specials_of(family, case))
            found.append((feeds, run(feeds)))
        except Exception:
            continue
    return found


def add_specials(feeds: Feeds, case: Case, specials: Sequence[Any]) -> None:
    """Puts special values in the inputs of a case, in place; a Loop has a step at least."""
    rng = np.random.default_rng(case.seed)
    if STEPS in feeds:
        feeds[STEPS] = np.array(1 + case.seed % 3)
    for value in feeds.values() if case.special else ():
        if value.dtype.kind == "f" and value.dtype.itemsize > 1:
            chosen = rng.random(value.shape) < 0.3
            values = [special_value(v, value.dtype) for v in specials]
            value[chosen] = rng.choice(np.array(values, value.dtype), int(chosen.sum()))


def judge_apart(family: str, case: Case, seconds: int = 5) -> Verdict:
    """Judges a case in processes of its own: one that onnxruntime dies of, or that never ends, is no
    case."""
    if not limited(lambda: len(_runs(family, case, around(family, case).model)), seconds)[0]:
        return Verdict(CANNOT_RUN)
    answered, verdict = limited(lambda: judge(family, case), seconds)
    return verdict if answered else Verdict(WRONG, (), f"the process ends: {verdict}")


# -- many cases


def random_case(rng: np.random.Generator) -> Case:
    """A case, as hypothesis draws them."""
    return Case(
        int(rng.integers(1000)),
        tuple(map(str, rng.choice(list(CHANGES), int(rng.integers(4))))),
        int(rng.integers(1 << 30)),
        str(rng.choice(SELECTIONS)),
        tuple(map(int, rng.choice(SIZES, 3))),
        bool(rng.random() < 0.3),
    )


def main() -> None:
    """Judges many cases, prints those that are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--family", default="")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    warm_up()
    for family in families():
        if options.family not in family:
            continue
        seeds = [(options.start, i) for i in range(options.count)]
        cases = [random_case(np.random.default_rng(seed)) for seed in seeds]
        counts: Counter[str] = Counter()
        groups = [cases[i : i + 25] for i in range(0, len(cases), 25)]
        for case, verdict in chain.from_iterable(verdicts(family, group) for group in groups):
            counts[verdict.kind] += 1
            if verdict.kind == WRONG:
                print(
                    f"{family} {case} {'; '.join(verdict.changes)}: {verdict.reason}\n", flush=True
                )
        print(f"# {family} {dict(counts)}", flush=True)
        total += counts
    print(dict(total))


def verdicts(family: str, cases: Sequence[Case]) -> Iterator[tuple[Case, Verdict]]:
    """Judges cases together, one by one if their process dies."""
    answered, found = limited(lambda: [judge(family, case) for case in cases], 3 + len(cases) // 4)
    found = found if answered else [judge_apart(family, case) for case in cases]
    yield from zip(cases, found, strict=True)


if __name__ == "__main__":
    sys.exit(main())
