"""Reports of the engine: reasons, statistics, verbosity, dumps, time."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import onnx
import pandas
import pytest
from ut_xoptim.chains import chain, engine, types
from ut_xoptim.toy_patterns import NegNeg, Rename, Silent

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text


def test_explain() -> None:
    optimizer = engine(chain("Neg", "Neg", "Relu"), [NegNeg()])
    first, second, relu = optimizer.iter_nodes()
    pattern = optimizer.patterns[0]
    assert optimizer.explain(pattern, first).startswith("no Neg before")
    assert "a comment" in optimizer.explain(pattern, second)
    assert "is not a root of NegNeg" in optimizer.explain(pattern, relu)
    assert "gives no reason" in optimizer.explain(Silent(), first)
    assert "is not a root of Gelu" in optimizer.explain("Gelu", first), "a name is enough"
    with pytest.raises(OptionError, match="not a node of this graph"):
        optimizer.explain(pattern, onnx.helper.make_node("Neg", ["X"], ["Z"]))
    assert types(optimizer) == ["Neg", "Neg", "Relu"], "nothing changed"


def test_iter_roots_and_enumerate_matches() -> None:
    optimizer = engine(chain("Neg", "Neg", "Neg", "Relu"), [NegNeg()])
    pattern = optimizer.patterns[0]
    assert [n.op_type for n in optimizer.iter_roots(pattern)] == ["Neg"] * 3
    assert len(list(pattern.enumerate_matches(optimizer))) == 2, "they may overlap"


#: how the documentation groups rows of statistics
AGGREGATION = {
    "time_in": "sum",
    "added": "sum",
    "removed": "sum",
    "iteration": "max",
    "match_index": "max",
    "instances": "sum",
}


def test_statistics_with_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    optimizer = engine(chain("Neg", "Neg", "Relu", "Neg", "Neg", "Abs"), [NegNeg(), Rename()])
    rows = optimizer.optimize()
    frame = pandas.DataFrame(rows)
    table = frame.groupby("pattern").agg(AGGREGATION)
    assert table.loc["apply_NegNeg", "instances"] == 2
    assert table.loc["apply_NegNeg", "removed"] == 4
    assert table.loc["apply_NegNeg", "added"] == 2
    assert table.loc["apply_ReluToSigmoid", "instances"] == 1
    assert table.loc["match_NegNeg", "instances"] == 2
    assert (table["time_in"] >= 0).all()


def test_statistics_of_the_builder_with_pandas() -> None:
    """The rows of every pass together, aggregated as users of this kind of tool do."""
    pandas = pytest.importorskip("pandas")
    options = OptimizationOptions(patterns=[NegNeg()])
    builder = GraphBuilder(chain("Neg", "Neg", "Relu"), optimization_options=options)
    _, rows = builder.to_onnx(return_optimize_report=True)
    frame = pandas.DataFrame(rows)
    for column in ("added", "removed"):
        frame[column] = frame[column].fillna(0).astype(int)
    table = frame[["pattern", "added", "removed", "time_in"]].groupby("pattern").sum()
    assert table.loc["apply_NegNeg", "removed"] == 2


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    engine(chain("Neg", "Neg", "Relu"), [NegNeg()]).optimize()
    assert capsys.readouterr().out == ""


def test_verbosity_1(capsys: pytest.CaptureFixture[str]) -> None:
    engine(chain("Neg", "Neg", "Relu"), [NegNeg()], verbose=1).optimize()
    out = capsys.readouterr().out
    assert "start with 3 nodes, 0 initializers, 1 patterns" in out
    assert "iteration 0: 3 nodes, priority 1" in out
    assert "NegNeg: 1 match\n" in out
    assert "end with 1 nodes, fixed point" in out
    assert "refuses" not in out and "Relu" not in out


def test_verbosity_11(capsys: pytest.CaptureFixture[str]) -> None:
    optimizer = engine(chain("Neg", "Neg", "Relu"), [NegNeg()], verbose=11)
    optimizer.optimize()
    out = capsys.readouterr().out
    assert "NegNeg refuses" in out and "no Neg before" in out
    assert "apply MatchResult: NegNeg replaces [Neg, Neg] (a comment)" in out
    assert out.count("Y = Relu(") == 2, "the graph before and after"
    assert "- Neg(X) -> r0" in out and "+ Identity(X) -> r1" in out
    assert optimizer.patterns[0].listener is None, "nobody listens any more"


def test_verbosity_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = OptimizationOptions(patterns=[NegNeg()], verbose=1)
    GraphBuilder(chain("Neg", "Neg"), optimization_options=options).optimize()
    assert "NegNeg: 1 match\n" in capsys.readouterr().out


def test_dump(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    model = chain("Neg", "Neg", "Relu", "Neg", "Neg", "Abs")
    engine(model, [NegNeg()], dump_applied_patterns=str(folder)).optimize()
    files = sorted(p.name for p in folder.iterdir())
    assert len(files) == 4 and all(f.startswith("NegNeg_000_") for f in files)
    before = onnx.load(folder / "NegNeg_000_0000_before.onnx")
    after = onnx.load(folder / "NegNeg_000_0000_after.onnx")
    onnx.checker.check_model(before)
    assert [n.op_type for n in before.graph.node] == ["Neg", "Neg"]
    assert [n.op_type for n in after.graph.node] == ["Identity"]
    assert [i.name for i in before.graph.input] == ["X"]
    assert [o.name for o in before.graph.output] == ["r1"]


def test_dump_by_the_options(tmp_path: Path) -> None:
    options = OptimizationOptions(patterns=[NegNeg()], dump_applied_patterns=str(tmp_path))
    GraphBuilder(chain("Neg", "Neg", "Relu"), optimization_options=options).optimize()
    assert len(list(tmp_path.iterdir())) == 2


def test_time_is_linear_in_the_number_of_matches() -> None:
    """Roots visited after the first sweep stay near the changes: no square of the graph."""
    n = 200
    ops = ["Neg", "Neg", "Abs"] * n
    pattern = Rename("Abs", "Relu")
    optimizer = engine(chain(*ops), [NegNeg(), pattern], verifies=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = optimizer.optimize()
    visited = sum(r.get("visited", 0) for r in rows)
    assert visited < 10 * 3 * n


@pytest.mark.parametrize("patterns", [None, [], "default", "CastCast"])
@pytest.mark.parametrize("method", ["optimize", "optimize_with_patterns"])
def test_rows_can_be_grouped(patterns: Any, method: str) -> None:
    """Rows can be grouped in every case, with the very expression of the documentation."""
    options = OptimizationOptions(patterns=patterns)
    builder = GraphBuilder(chain("Abs", "Neg"), optimization_options=options)
    stat = pandas.DataFrame(getattr(builder, method)())
    table = stat.groupby("pattern").agg(AGGREGATION)
    sums = table.drop(columns=["iteration", "match_index"])
    assert len(table) >= 1 and not sums.isna().any().any()
    assert stat["match_index"].isna().all(), "nothing is applied"
    assert (table["instances"] == 0).all() and (table["removed"] == 0).all()
    assert "changed" in stat.columns


def test_rows_when_nothing_runs() -> None:
    options = OptimizationOptions(patterns=None, passes=())
    builder = GraphBuilder(chain("Abs"), optimization_options=options)
    assert [r["pattern"] for r in builder.optimize()] == ["nothing"]


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("recursive", [False, True])
def test_stop_after_counts_subgraphs_and_functions(stop_after: int, recursive: bool) -> None:
    """Rewrites of a model are counted together, wherever they are."""
    model = model_from_text(
        """agraph (float[a] X, bool c) => (float[a] Y, float[a] Z) {
            r = Relu(X)
            Y = If(c) < then_branch = t () => (float[a] T) { T = Relu(r) },
                        else_branch = e () => (float[a] E) { u = Relu(r) E = Relu(u) } >
            Z = Relu(Y) }"""
    )
    options = OptimizationOptions(patterns=[Rename()], stop_after=stop_after)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    if recursive:
        optimizer = GraphBuilderPatternOptimization(builder, [Rename()], recursive=True)
        rows = optimizer.optimize(stop_after=stop_after)
    else:
        rows = builder.optimize()
    assert sum(r["instances"] for r in rows if r["pattern"].startswith("apply_")) == min(
        stop_after, 5
    )
