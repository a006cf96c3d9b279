"""Models drawn in the language of graphviz: any name gives a valid graph, and is shown as it is."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from onnx import TensorProto

from xoptim.reports.drawing.shapes import model_shapes
from xoptim.reports.model_dot import model_dot, quoted

NAMES = [
    "a.b/c:d-e", "q\"uo'te", "new\nline", "{br|ace}<f0>", "ünï→日本", "back\\slash\\", "\\N \\G",
    "&amp;<b>", "tab\tnull\x00escape\x1b", " ", "graph", "a->b;", "\u202e", "// no /* comment", "#",
]  # fmt: skip
# the grammar of graphviz for what is written: one statement a line, quoted strings
STRING = r'"(?:[^"\\\n]|\\.)*"'
ATTRIBUTES = rf"\[\w+={STRING}(, \w+=(\w+|{STRING}))*\]"
STATEMENT = re.compile(
    rf"digraph {STRING} \{{|label={STRING};|node \[fontsize=11\];|edge \[fontsize=9\];"
    rf"|n\d+( -> n\d+)? {ATTRIBUTES};|subgraph cluster_n\d+ \{{|\}}"
)


def check_grammar(text: str) -> None:
    """Checks every line, and that graphviz accepts the whole where it is installed."""
    for line in text.split("\n"):
        assert STATEMENT.fullmatch(line.strip()), line
    assert text.count("{\n") == len(re.findall(r"^ *\}$", text, re.M))
    program = shutil.which("dot")
    if program is not None:
        done = subprocess.run([program, "-Tcanon"], input=text.encode(), capture_output=True)
        assert done.returncode == 0 and not done.stderr, done.stderr


def everywhere(name: str) -> onnx.ModelProto:
    """A model with a subgraph and a function where everything has the same odd name."""
    inner = oh.make_tensor_value_info(f"{name}1", TensorProto.FLOAT, [name])
    branch = oh.make_graph([oh.make_node(name, [name], [f"{name}1"])], name, [], [inner])
    nodes = [
        oh.make_node("If", ["c"], [f"{name}2"], name, then_branch=branch, else_branch=branch),
        oh.make_node(name, [f"{name}2", f"{name}3", ""], ["y"], domain=name, text=name),
        oh.make_node("Add", [f"{name} of nobody", "y"], ["z"]),
    ]
    weight = onh.from_array(np.array([name.encode()], dtype=object), name=f"{name}3")
    inputs = [
        oh.make_tensor_value_info(name, TensorProto.FLOAT, [name, 2]),
        oh.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    outputs = [oh.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    graph = oh.make_graph(nodes, name, inputs, outputs, [weight])
    body = [oh.make_node("Neg", [name], ["r"])]
    opsets = [oh.make_opsetid("", 18)]
    function = oh.make_function(name, name, [name], ["r"], body, opsets, [f"{name}4"])
    return oh.make_model(graph, functions=[function], opset_imports=opsets)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name(name: str) -> None:
    check_grammar(model_dot(everywhere(name)))


@pytest.mark.parametrize(
    "name,expected",
    [
        ("a.b/c:d", '"a.b/c:d"'),
        ('a"b', '"a\\"b"'),
        ("a\\", '"a\\\\"'),
        ("a\nb", '"a\\nb"'),
        ("a&lt;b", '"a&amp;lt;b"'),
        ("a\0b", '"a\\\\x00b"'),
        ("é日", '"é日"'),
        (b"\xff", "\"b'\\\\xff'\""),
        ("x" * 5000, f'"{"x" * 300}..."'),
    ],
)
def test_quoted(name: str | bytes, expected: str) -> None:
    assert quoted(name) == expected


MODEL = """
<ir_version: 8, opset_import: ["" : 18, "d" : 1]>
g (float[N] x, bool c) => (float[N] y) <float one = {1}> {
    a = d.Double(x)
    y = If(c) <
        then_branch = tg () => (float[N] t) { x2 = Add(a, one)  t = Neg(x2) },
        else_branch = eg () => (float[N] e) { e = Identity(a) }>
}
<domain: "d", opset_import: ["" : 18]>
Double (x) => (r) { r = Add(x, x) }
"""


def test_edges() -> None:
    """Results of the outer graph reach the subgraphs, the function has a scope of its own."""
    text = model_dot(onnx.parser.parse_model(MODEL))
    check_grammar(text)
    labels = dict(re.findall(r'^  (n\d+) \[label="(.*?)", shape', text, re.M))
    edges = re.findall(r'^  (n\d+) -> (n\d+) \[label="(.*?)"\]', text, re.M)
    found = {(labels[a], labels[b], name) for a, b, name in edges}
    assert found == {
        ("x: float[N]", "d.Double", "x"),
        ("c: bool[]", "If", "c"),
        ("d.Double", "Add", "a"),
        ("one: float[] = 1.", "Add", "one"),
        ("Add", "Neg", "x2"),
        ("Neg", "t: float[N]", "t"),
        ("d.Double", "Identity", "a"),
        ("Identity", "e: float[N]", "e"),
        ("If", "y: float[N]", "y"),
        ("x", "Add", "x"),
        ("Add", "r", "r"),
    }
    frames = re.findall(r'^  label="(.*)";', text, re.M)
    assert frames[0] == "g" and sorted(frames[1:]) == [
        "else_branch of If", "function d.Double", "then_branch of If",
    ]  # fmt: skip
    assert text.index(" -> ") > text.rindex("subgraph"), "an edge in a frame pulls its ends there"


def test_shapes_and_families() -> None:
    model = onnx.parser.parse_model(MODEL)
    text = model_dot(model, model_shapes(model))
    check_grammar(text)
    assert '[label="a\\nfloat[N]"]' in text and '[label="x2\\nfloat[N]"]' in text
    colours = dict(
        re.findall(r'label="(\S+)", shape=box, style="rounded,filled", fillcolor="(.*)"', text)
    )
    assert colours["Add"] == colours["Neg"] != colours["If"]


def test_a_broken_model_is_drawn() -> None:
    """Looking at a model is how one finds what is wrong with it."""
    proto = onnx.parser.parse_model(MODEL)
    proto.graph.initializer[0].ClearField("float_data")
    proto.graph.initializer[0].raw_data = b"123"
    proto.graph.input[0].type.tensor_type.elem_type = 999
    proto.graph.node[0].input[0] = "nobody"
    text = model_dot(proto, model_shapes(proto))
    check_grammar(text)
    assert "nobody: undefined" in text and "unknown type 999" in text
    assert "one: float[] = not readable" in text
