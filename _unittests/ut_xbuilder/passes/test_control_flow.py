"""If with a known condition, Loop running zero or one time, loop-invariant nodes."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import initializer_names, op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes.control_flow import _scan_is_not_empty

IF = """
agraph (float[N,2] x) => (float[N,2] y) <float[2] w = {{1.0, 2.0}}, bool[1] c = {{{c}}}>
{{
    z = Neg(x)
    y = If (c) <
        then_branch = a () => (float[N,2] r) <float[2] k = {{5.0, 6.0}}>
            {{ n = Abs(z) m = Mul(n, k) r = Add(m, w) }},
        else_branch = b () => (float[N,2] s) {{ n = Exp(z) s = Add(n, w) }}
    >
}}
"""


@pytest.mark.parametrize(
    "c,expected", [(1, ["Neg", "Abs", "Mul", "Add"]), (0, ["Neg", "Exp", "Add"])]
)
def test_constant_condition(c, expected):
    after = optimized(parse(IF.format(c=c)))
    assert op_types(after) == expected
    assert initializer_names(after) == (["k", "w"] if c else ["w"])
    # the names of the branch survive, they are not used twice any more
    assert "n" in [o for node in after.graph.node for o in node.output]


def test_condition_that_may_be_overridden():
    model = parse(IF.format(c=1))
    model.graph.input.append(oh.make_tensor_value_info("c", 9, [1]))
    assert op_types(optimized(model, run=False))[1] == "If"


def test_control_flow_follows_constant_folding():
    model = parse(IF.format(c=1))
    assert op_types(optimized(model, constant_folding=False)) == op_types(model)
    assert op_types(optimized(model, constant_folding=["Neg"])) == op_types(model)


@pytest.mark.parametrize(
    "branch,expected",
    [
        ("{ r = Identity(z) }", ["Neg", "Identity"]),
        ("<float[2] r = {5.0, 6.0}> { unused = Neg(z) }", ["Identity"]),
    ],
)
def test_branch_returning_what_it_does_not_compute(branch, expected):
    """An outer result, one of its own initializers."""
    model = parse(
        f"""
        agraph (float[2] x) => (float[2] y, float[2] u) <bool[1] c = {{1}}>
        {{
            z = Neg(x)
            y = If (c) <
                then_branch = a () => (float[2] r) {branch},
                else_branch = b () => (float[2] s) {{ s = Exp(z) }}
            >
            u = Identity(z)
        }}
        """
    )
    after = optimized(model)
    assert "If" not in op_types(after)
    assert sorted(op_types(after)) == ["Identity", "Neg"]


def test_nested_if_with_names_used_twice():
    """Both Ifs define `n`: one must get another name."""
    branch = "a () => (float[2] r) { n = Abs(z) r = Mul(n, z) }"
    other = "b () => (float[2] s) { s = Exp(z) }"
    model = parse(
        f"""
        agraph (float[2] z) => (float[2] y) <bool[1] c = {{1}}>
        {{
            u = If (c) < then_branch = {branch}, else_branch = {other} >
            v = If (c) < then_branch = {branch}, else_branch = {other} >
            y = Add(u, v)
        }}
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Abs", "Mul", "Abs", "Mul", "Add"]


def test_if_inside_if():
    model = parse(
        """
        agraph (float[2] x, bool k) => (float[2] y) <bool[1] c = {1}>
        {
            z = Neg(x)
            y = If (k) <
                then_branch = a () => (float[2] r)
                {
                    q = Abs(z)
                    r = If (c) <
                        then_branch = d () => (float[2] t) { t = Exp(q) },
                        else_branch = e () => (float[2] t) { t = Neg(q) }
                    >
                },
                else_branch = b () => (float[2] s) { s = Exp(z) }
            >
        }
        """
    )
    assert op_types(optimized(model)) == ["Neg", "If", "Abs", "Exp", "Exp"]


def test_condition_known_in_the_outer_if_only():
    """if c: (if c: a else b): the inner one depends on c, which is not a constant."""
    model = parse(
        """
        agraph (float[2] z, bool c) => (float[2] y)
        {
            y = If (c) <
                then_branch = a () => (float[2] r) { r = Abs(z) },
                else_branch = b () => (float[2] s) { s = Exp(z) }
            >
        }
        """
    )
    assert op_types(optimized(model)) == ["If", "Abs", "Exp"]


LOOP = """
agraph (float[2] x{inputs}) => (float[2] y, float[K,2] z) <{inits}>
{{
    y, z = Loop ({trip}, {cond}, x) <
        body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w, float[2] s)
        {{
            co = Identity(ci)
            f = Cast<to=1>(i)
            w = Add(v, f)
            s = Neg(w)
        }}
    >
}}
"""


def loop(trip, cond="", inputs=""):
    inits = []
    if trip is not None:
        inits.append(f"int64 trip = {{{trip}}}")
    if cond in (0, 1):
        inits.append(f"bool c = {{{cond}}}")
    names = {"trip": "trip" if trip is not None else "t", "cond": "c" if cond != "" else '""'}
    text = LOOP.format(inputs=inputs, inits=", ".join(inits), **names)
    text = text.replace("<>", "")
    if cond == "":
        text = text.replace('trip, ""', "trip, c0")
    model = parse(text)
    if cond == "":
        for node in model.graph.node:
            inputs = ["" if n == "c0" else n for n in node.input]
            del node.input[:]
            node.input.extend(inputs)
    return model


@pytest.mark.parametrize("trip,cond", [(1, ""), (1, 1)])
def test_one_iteration(trip, cond):
    after = optimized(loop(trip, cond))
    assert "Loop" not in op_types(after)
    assert {"Add", "Neg", "Unsqueeze"} <= set(op_types(after))


@pytest.mark.parametrize("trip,cond", [(0, ""), (0, 1), (5, 0), (-3, 1)])
def test_no_iteration(trip, cond):
    after = optimized(loop(trip, cond))
    assert "Loop" not in op_types(after)
    assert set(op_types(after)) <= {"Identity"}


@pytest.mark.parametrize("trip,cond", [(2, ""), (2, 1)])
def test_several_iterations_stay(trip, cond):
    assert "Loop" in op_types(optimized(loop(trip, cond)))


def test_unknown_condition_stays():
    assert "Loop" in op_types(optimized(loop(1, "c", ", bool c")))


def test_empty_loop_with_unknown_shapes_stays():
    """The scanned result is empty but its other dimensions are not known."""
    model = parse(
        """
        agraph (float[N] x) => (float[K,N] z) <int64 trip = {0}, bool c = {1}>
        {
            z = Loop (trip, c) <
                body = b (int64 i, bool ci) => (bool co, float[N] s) { co = Identity(ci) s = Neg(x) }
            >
        }
        """
    )
    assert "Loop" in op_types(optimized(model))


EMPTY = """
agraph (float[N,3] x, float[2,3] w, int64[2] d) => (float[P,Q,R] z) <int64 trip = {0}, bool c = {1}>
{
    shape = Constant <value = int64[2] {2, -1}> ()
    z = Loop (trip, c) <
        body = b (int64 i, bool ci) => (bool co, %s) { co = Identity(ci) %s }
    >
}
"""


@pytest.mark.parametrize(
    "declared,node,expected",
    [
        ("float[2,3] s", "s = Neg(w)", (0, 2, 3)),
        # a symbol of the declaration, an integer once inferred
        ("float[A,B] s", "s = Neg(w)", (0, 2, 3)),
        ("float[A,3] s", "s = Reshape(w, shape)", (0, 2, 3)),
        ("float[N,3] s", "s = Neg(x)", None),
        ("float[A,B] s", "s = Reshape(w, d)", None),
    ],
)
def test_empty_loop_with_symbolic_dimensions(declared, node, expected):
    model = parse(EMPTY % (declared, node))
    feeds = {"x": np.ones((4, 3), np.float32), "w": np.ones((2, 3), np.float32)}
    after = optimized(model, {**feeds, "d": np.array([3, 2])})
    if expected is None:
        assert "Loop" in op_types(after)
        return
    assert op_types(after) == ["Identity"]
    (empty,) = after.graph.initializer
    assert tuple(empty.dims) == expected


STOPS = """
agraph (float[2] x, int64 t, bool k) => (float[2] y, float[M,2] z)
    <int64 trip = {{{trip}}}, bool c = {{{cond}}}>
{{
    y, z = Loop ({names}, x) <
        body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w, float[2] s)
        {{ co = {stop} f = Cast<to=1>(i) w = Add(v, f) s = Neg(w) }}
    >
}}
"""
NEVER_AGAIN = "Constant <value = bool {0}> ()"


@pytest.mark.parametrize(
    "names,trip,cond,stop,inlined",
    [
        ("trip, c", 5, 1, NEVER_AGAIN, True),
        ('trip, ""', 5, 1, NEVER_AGAIN, True),
        ('"", c', 5, 1, NEVER_AGAIN, True),
        ("trip, c", 5, 1, "Not(c)", True),
        ("trip, c", 5, 1, "Constant <value = bool {1}> ()", False),
        ("trip, c", 5, 1, "Identity(ci)", False),
        ("t, c", 5, 1, NEVER_AGAIN, False),
        ("trip, k", 5, 1, NEVER_AGAIN, False),
    ],
)
def test_a_loop_that_never_goes_on(names, trip, cond, stop, inlined):
    names = names.replace('""', "absent")
    model = parse(STOPS.format(names=names, trip=trip, cond=cond, stop=stop))
    for node in model.graph.node:
        inputs = ["" if n == "absent" else n for n in node.input]
        del node.input[:]
        node.input.extend(inputs)
    assert ("Loop" in op_types(optimized(model))) != inlined


def fixed_point(model, infer=True, patterns=None):
    """Optimizes once, checks that a second time changes nothing."""
    once = optimized(model, infer=infer, patterns=patterns)
    twice = optimized(once, infer=infer, patterns=patterns)
    assert op_types(twice) == op_types(once)
    return op_types(once)


@pytest.mark.parametrize("infer", [False, True])
def test_facts_after_an_empty_loop(infer):
    """The shape of what replaces the loop is known, so is what Shape gives."""
    model = parse(
        """
        agraph (float[3,4] x, float[12] z) => (float[A,B] y) <int64 zero = {0}, bool c = {1}>
        {
            v = Loop (zero, c, x) <
                body = b (int64 i, bool ci, float[N,4] p) => (bool co, float[N,4] q)
                { co = Identity(ci) q = Identity(p) }
            >
            s = Shape(v)
            y = Reshape(z, s)
        }
        """
    )
    assert fixed_point(model, infer) == ["Reshape"]


def test_facts_after_a_branch():
    """`If` gives one of two shapes; once it is replaced its symbols are those of the input."""
    model = parse(
        """
        agraph (float[n,m] x) => (float[A,B] y, float[C,D] f) <bool c = {1}>
        {
            f = If (c) <
                then_branch = t () => (float[N,4] p) { p = Neg(x) },
                else_branch = e () => (float[3,4] q) { q = Constant <value = float[3,4] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}> () }
            >
            s = Shape(f)
            u = Sigmoid(x)
            y = Reshape(u, s)
        }
        """
    )
    assert fixed_point(model, patterns="default") == ["Neg", "Sigmoid"]


def test_facts_inside_another_owner():
    """Better facts of the result of a loop decide a condition inside a branch."""
    model = parse(
        """
        agraph (float[3,4] x, bool k) => (float[A,B] y) <int64 one = {1}, bool c = {1}>
        {
            v = Loop (one, c, x) <
                body = b (int64 i, bool ci, float[N,4] p) => (bool co, float[N,4] q)
                { co = Identity(ci) q = Neg(p) }
            >
            y = If (k) <
                then_branch = t () => (float[E,F] g) {
                    s = Size(v)
                    twelve = Constant <value = int64 {12}> ()
                    is = Equal(s, twelve)
                    g = If (is) <
                        then_branch = t2 () => (float[G,H] a) { a = Exp(v) },
                        else_branch = e2 () => (float[I,J] b) { b = Abs(v) }
                    >
                },
                else_branch = e () => (float[K,L] h) { h = Identity(v) }
            >
        }
        """
    )
    assert fixed_point(model) == ["Neg", "If", "Exp", "Identity"]


def test_patterns_see_what_folding_inlines_after_them():
    """Two nodes of two graphs meet once the condition is known: the passes run again."""
    model = parse(
        """
        agraph (float[2,3] x) => (float[A,B] y) <bool c = {1}>
        {
            t = Transpose<perm=[1,0]>(x)
            y = If (c) <
                then_branch = t1 () => (float[A,B] p) { a = Transpose<perm=[1,0]>(t) p = Exp(a) },
                else_branch = e1 () => (float[A,B] q) { q = Neg(x) }
            >
        }
        """
    )
    passes = ("patterns", "constant_folding", "remove_unused")
    assert op_types(optimized(model, patterns="default", passes=passes)) == ["Exp"]
    stopped = optimized(model, patterns="default", passes=passes, stop_after=0)
    assert op_types(stopped) == ["Transpose", "Transpose", "Exp"]


def test_one_iteration_inside_a_loop_keeps_names_apart():
    model = parse(
        """
        agraph (float[2] x) => (float[2] y) <int64 one = {1}, int64 three = {3}, bool c = {1}>
        {
            y = Loop (three, c, x) <
                body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w)
                {
                    co = Identity(ci)
                    w = Loop (one, c, v) <
                        body = d (int64 j, bool cj, float[2] p) => (bool ck, float[2] q)
                        { ck = Identity(cj) k = Abs(p) m = Exp(k) q = Add(m, p) }
                    >
                }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Loop", "Identity", "Abs", "Exp", "Add"]


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_one_iteration_at_every_opset(opset):
    after = optimized(parse(loop_text(1), opset=opset))
    assert "Loop" not in op_types(after)


def loop_text(trip):
    return LOOP.format(
        inputs="", inits=f"int64 trip = {{{trip}}}, bool c = {{1}}", trip="trip", cond="c"
    )


def test_sequences_in_old_opsets_stay():
    """Identity does not take a sequence before opset 14."""
    body = parse(
        """
        agraph (float[2] x, bool k) => (float[2] y) <int64 zero = {0}>
        {
            q = SequenceConstruct(x)
            y = SequenceAt(q, zero)
        }
        """,
        opset=11,
    )
    branches = []
    for name in ("a", "b"):
        out = oh.make_tensor_sequence_value_info(f"q{name}", 1, None)
        nodes = [oh.make_node("SequenceConstruct", ["x", "x"], [f"q{name}"])]
        branches.append(oh.make_graph(nodes, name, [], [out]))
    node = oh.make_node("If", ["c"], ["q"], then_branch=branches[0], else_branch=branches[1])
    body.graph.node[0].CopyFrom(node)
    body.graph.initializer.append(from_array(np.array(True), "c"))
    assert op_types(optimized(body, run=False))[0] == "If"
    body.opset_import[0].version = 18
    assert op_types(optimized(body)) == ["SequenceConstruct", "SequenceAt"]


def test_names_of_dimensions_do_not_leave_a_branch():
    model = parse(
        """
        agraph (float[N] X, bool[K] m) => (float[P] Y)
        {
            c = Constant<value = bool {1}> ()
            Y = If (c) <
                then_branch = a () => (float[N] t) { u = Compress(X, m) t = Neg(u) },
                else_branch = b () => (float[N] e) { e = Neg(X) }
            >
        }
        """
    )
    branch = model.graph.node[1].attribute[0].g
    branch.value_info.append(oh.make_tensor_value_info("u", TensorProto.FLOAT, ["N"]))
    new = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=None)).to_onnx()
    assert [n.op_type for n in new.graph.node] == ["Compress", "Neg"]
    assert not any(d.dim_param for i in new.graph.value_info for d in i.type.tensor_type.shape.dim)


@pytest.mark.parametrize(
    "damage", ["num_scan_inputs: int = 2147483648", "scan_input_axes: ints = [7]"]
)
def test_scanned_inputs_no_node_has(damage):
    """Nothing as long as what a damaged attribute says is made, nor read."""
    given = damage if "num" in damage else f"num_scan_inputs: int = 1, {damage}"
    text = """
        agraph (float s, float[5] x) => (float y, float[5] z) {
            y, z = Scan (s, x) <GIVEN, body: graph =
                b (float i, float n) => (float o, float c) { o = Add(i, n) c = Identity(o) }>
        }
        """
    builder = GraphBuilder(parse(text.replace("GIVEN", given)), infer_shapes_options=True)
    (scan,) = builder.graph.store.bucket("", "Scan")
    assert not _scan_is_not_empty(builder.graph, scan)
    assert [n.op_type for n in builder.to_onnx().graph.node] == ["Scan"]
