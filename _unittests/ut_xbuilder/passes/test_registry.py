"""The table of passes."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions, OptionError
from xbuilder.options import DEFAULT_PASSES
from xbuilder.passes import PassReport, get_pass, pass_names, register_pass, run_pass

MODEL = parse("agraph (float[N] x) => (float[N] y) { a = Identity(x) y = Neg(a) }")


def test_default_passes_exist():
    assert set(DEFAULT_PASSES) <= set(pass_names())
    assert "control_flow" in pass_names()


def test_unknown_pass():
    with pytest.raises(OptionError, match="did you mean remove_unused"):
        get_pass("remove_unuse")
    with pytest.raises(OptionError, match="known"):
        get_pass("zzz")
    builder = GraphBuilder(MODEL, optimization_options=OptimizationOptions(passes=["unknown_one"]))
    with pytest.raises(OptionError):
        builder.optimize()


def test_names_are_taken_once():
    with pytest.raises(OptionError, match="already registered"):
        register_pass("order")(lambda graph: PassReport())


def test_rows():
    (report,) = run_pass(GraphBuilder(MODEL).graph, "remove_identity")
    assert report.changed
    (row,) = report.rows
    assert row["pattern"] == "remove_identity"
    assert (row["removed"], row["added"], row["changed"]) == (1, 0, 1)
    assert row["time_in"] >= 0


@pytest.mark.parametrize(
    "passes,expected", [((), ["Identity", "Neg"]), (["remove_identity"], ["Neg"])]
)
def test_passes_are_chosen(passes, expected):
    assert op_types(optimized(MODEL, passes=passes)) == expected


@pytest.mark.parametrize(
    "switch", ["remove_identity", "remove_unused", "constant_folding", "constant_fusing"]
)
def test_switches(switch):
    builder = GraphBuilder(
        MODEL, optimization_options=OptimizationOptions(patterns=None, **{switch: False})
    )
    name = {"constant_fusing": "remove_duplicated_initializer"}.get(switch, switch)
    assert name not in {row["pattern"] for row in builder.optimize()}
