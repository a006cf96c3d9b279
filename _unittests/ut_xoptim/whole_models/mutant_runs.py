"""Optimizes mutants in processes under limits, and says how it went.

``python -m ut_xoptim.whole_models.mutant_runs --count 4000`` runs more of them than the tests do, from the
folder ``_unittests``.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import pickle
import re
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, TypeProto
from onnx.helper import np_dtype_to_tensor_dtype
from ut_xbuilder.backend_cases import node_cases, to_numpy
from ut_xoptim.whole_models.mutants import Mutator
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import XoptimError
from xbuilder.runtimes.sessions import plain_session
from xoptim.testing import PatternTestError, assert_same_outputs
from xoptim.trust.inputs.random_inputs import random_inputs

ROOT = Path(__file__).resolve().parents[3]
#: the two classes a mutant may be in: the optimized model is as good as the mutant, or the error is
#: one of ours and names the fault of the model
OK, CLEAN_ERROR = "ok", "clean error"
SECONDS = 60
#: mutants judged in one process: it takes longer to fork it than to judge most of them
BATCH = 10
#: memory a run may allocate above the memory of the process
MEMORY = 3 << 30


class Source(NamedTuple):
    """A valid model, and inputs it runs with (random ones if there are none)."""

    name: str
    model: ModelProto
    feeds: dict[str, Any]


class Verdict(NamedTuple):
    """How a mutant went: a class, and why."""

    kind: str
    reason: str = ""
    ran: bool = False


def node_sources() -> list[Source]:
    """The node tests of onnx."""
    sources = []
    for name, case in sorted(node_cases().items()):
        inputs = case.data_sets[0][0] if case.data_sets else []
        pairs = zip(case.model.graph.input, inputs, strict=False)
        sources.append(Source(name, case.model, {i.name: to_numpy(x) for i, x in pairs}))
    return sources


def random_sources(count: int = 40) -> list[Source]:
    """Models made of the operators patterns look for."""
    return [Source(f"random{i}", RandomModel(i, 12).model(), {}) for i in range(count)]


def real_sources() -> list[Source]:
    """The light models of onnx and those of the wheels `make models` fetches."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    paths = [*sorted(light.glob("*.onnx")), *sorted((ROOT / ".models").rglob("*.onnx"))]
    return [Source(p.stem, onnx.load(p), {}) for p in paths if p.stat().st_size < 2**22]


@lru_cache(maxsize=1)
def all_sources() -> tuple[list[Source], list[Source], list[Source]]:
    """Every source: node tests, random models, real ones."""
    return node_sources(), random_sources(), real_sources()


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Optimizes some models to fill the caches of this process before it forks."""
    nodes, randoms, _ = all_sources()
    for source in (*nodes[::80], *randoms[::4]):
        optimize(source.model.SerializeToString())
    gc.collect()
    gc.freeze()


def mutant_of(seed: int, real: float = 0.02) -> tuple[str, bytes, dict[str, Any]]:
    """The mutant of a seed.

    :param seed: seed of every choice
    :param real: share of light and real models, which are longer to optimize
    :return: name of its source, its bytes, inputs of the source
    """
    mutator = Mutator(seed)
    nodes, randoms, reals = all_sources()
    draw = mutator.rng.random()
    group = reals if reals and draw < real else randoms if draw < 0.2 else nodes
    source = mutator.pick(group)
    return source.name, mutator.mutant(source.model), source.feeds


# -- processes

#: runs a function: True and its result, or False and why there is none
Caller = Callable[[Callable[[], Any]], tuple[bool, Any]]


def limited(function: Callable[[], Any], seconds: int = SECONDS) -> tuple[bool, Any]:
    """Runs a function in a process of its own, under limits of time and memory.

    :return: True and its result, or False and the end of its process
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            _limit(seconds)
            with os.fdopen(writer, "wb") as stream:
                stream.write(pickle.dumps(function(), protocol=5))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    status = os.waitpid(child, 0)[1]
    if data:
        return True, pickle.loads(data)
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "no answer"
    return False, name


def direct(function: Callable[[], Any]) -> tuple[bool, Any]:
    """Runs a function in this process, which has limits already."""
    return True, function()


def _limit(seconds: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with open("/proc/self/statm") as status:
        used = int(status.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    # a process that waits uses no CPU: a lock, a pipe
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20 * seconds)


# -- one mutant


def optimize(data: bytes) -> tuple[str, Any]:
    """Writes a mutant into a file, reads it, optimizes it.

    :return: a class and the bytes of the optimized model, or the error
    """
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.onnx"
        path.write_bytes(data)
        options = OptimizationOptions(patterns="default+onnxruntime")
        try:
            builder = GraphBuilder(
                str(path), infer_shapes_options=True, optimization_options=options
            )
            return OK, builder.to_onnx().SerializeToString()
        except XoptimError as error:
            return CLEAN_ERROR, f"{type(error).__name__}: {error}"
        except BaseException as error:
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            line = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
            return "exception", f"{type(error).__name__}: {error} ({line})"


def run(data: bytes, feeds: dict[str, Any], checked: bool) -> tuple[str, Any]:
    """The answer of onnx's checker and of onnxruntime to a model.

    :return: the last step it passes ("", "checker", "session", "run"), and its outputs or the error
    """
    reached = ""
    try:
        if checked:
            onnx.checker.check_model(onnx.load_from_string(data))
            reached = "checker"
        session = plain_session(data)
        reached = "session"
        outputs = session.run(None, feeds)
        pickle.dumps(outputs)
        return "run", outputs
    except BaseException as error:
        return reached, f"{type(error).__name__}: {error}"


def feeds_of(model: ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
    """Inputs of a mutant: those of its source that still fit, random ones for the others."""
    sizes = {}
    for info in model.graph.input:
        for i, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                sizes[dim.dim_param or f"{info.name}[{i}]"] = 3
    kept = {i.name: feeds[i.name] for i in model.graph.input if fits(feeds.get(i.name), i.type)}
    if kept.keys() == {i.name for i in model.graph.input}:
        return kept
    with contextlib.suppress(Exception):
        return {**random_inputs(model, sizes), **kept}
    return {**random_inputs(model), **kept}


def fits(value: Any, declared: TypeProto) -> bool:
    """Whether an array has the declared type and shape; a value that is no array always does."""
    if not isinstance(value, np.ndarray):
        return value is not None
    tensor = declared.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim]
    same = len(dims) == value.ndim and all(
        d in (-1, n) for d, n in zip(dims, value.shape, strict=True)
    )
    return same and np_dtype_to_tensor_dtype(value.dtype) == tensor.elem_type


_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli"}
_RANDOM |= {"Multinomial", "Dropout"}


def judge(data: bytes, feeds: dict[str, Any], call: Caller = limited) -> Verdict:
    """Optimizes a mutant and compares it with the result.

    :param data: the bytes of the mutant
    :param feeds: inputs of its source
    :param call: how each step runs, in a process of its own or not
    """
    answered, answer = call(lambda: optimize(data))
    if not answered:
        return Verdict("death", str(answer))
    kind, result = answer
    if kind == CLEAN_ERROR and not names_something(result):
        return Verdict("vague error", result)
    if kind != OK:
        return Verdict(kind, result)
    return _compare(data, result, feeds, call)


def names_something(message: str) -> bool:
    """Whether a message names its subject: a file, a node, a result, an option."""
    return bool(re.search(r"'[^']*'|mutant\.onnx|[Nn]odes? |cycle|opset|ir_version", message))


def _compare(before: bytes, after: bytes, feeds: dict[str, Any], call: Caller) -> Verdict:
    model = onnx.load_from_string(before)
    given: dict[str, Any] = {}
    made = True
    try:
        given = feeds_of(model, feeds)
    except Exception:
        made = False
    answered, answer = call(lambda: run(before, given, True))
    if not answered or not answer[0]:
        return Verdict(OK)  # the mutant is not valid, or kills onnxruntime
    reached, expected = answer
    answered, answer = call(lambda: run(after, given, True))
    if not answered:
        return Verdict("worse", f"the mutant passes {reached!r}, the result dies: {answer}")
    steps = ("", "checker", "session", "run")
    if reached == "session" and ("while running" in expected or not made):
        # a node fails, or would on inputs too large to be made: the result may say so before
        reached = "checker"
    if steps.index(answer[0]) < steps.index(reached):
        return Verdict("worse", f"the mutant passes {reached!r}, not the result: {answer[1]}")
    if reached != "run" or any(n.op_type in _RANDOM for n in model.graph.node):
        return Verdict(OK)
    try:
        assert_same_outputs(expected, answer[1], 1e-3, 1e-3, "onnxruntime")
    except (PatternTestError, TypeError, ValueError) as error:
        return Verdict("wrong result", str(error))
    return Verdict(OK, "", True)


def verdicts(seeds: Iterable[int], real: float = 0.02) -> Iterator[tuple[int, str, Verdict]]:
    """Judges the mutants of some seeds: the seed, the source, the verdict.

    A process judges several of them. If it ends before the last one, or if one of them is wrong,
    each is judged again in a process of its own.
    """
    np.seterr(all="ignore")
    warm_up()

    def judged(seed: int, call: Caller) -> tuple[int, str, Verdict]:
        name, data, feeds = mutant_of(seed, real)
        return seed, name, judge(data, feeds, call)

    left = iter(seeds)
    while batch := list(islice(left, BATCH)):
        answered, rows = limited(lambda batch=batch: [judged(s, direct) for s in batch])
        fine = answered and all(row[2].kind in (OK, CLEAN_ERROR) for row in rows)
        yield from rows if fine else (judged(seed, limited) for seed in batch)


def main() -> None:
    """Judges many mutants, prints those that are neither ok nor a clean error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--real", type=float, default=0.02, help="share of real models")
    parser.add_argument("--verbose", action="store_true", help="prints the clean errors too")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed, name, verdict in verdicts(
        range(options.start, options.start + options.count), options.real
    ):
        counts[verdict.kind] += 1
        counts["ran on both sides"] += verdict.ran
        if verdict.kind != OK and (verdict.kind != CLEAN_ERROR or options.verbose):
            print(f"{seed} {name}: {verdict.kind}: {verdict.reason[:600]}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    sys.exit(main())
