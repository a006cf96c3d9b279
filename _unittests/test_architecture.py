"""The layering and the size of the house, enforced; then the detectors themselves, on snippets."""

from __future__ import annotations

import ast
import textwrap
from functools import cache
from pathlib import Path

import architecture_rules as rules
import pytest
from architecture_mutations import check_node_mutation

from xbuilder.operators import op_traits

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("xbuilder", "xoptim", "torch_interpreter")
#: the modules that may change a node, because they own it or write it
NODE_WRITERS = {
    "xbuilder/store/graph_store.py",
    "xbuilder/protos/exporting.py",
    "xoptim/engine/guards/mutation_guard.py",  # undoes what a pattern changed
    "xbuilder/nodes/copies.py",  # edits the private copies that the store asks for
    "xbuilder/nodes/mended_attributes.py",  # mends private copies
    "xbuilder/nodes/subgraph_order.py",  # sorts private copies
    "xbuilder/nodes/sources.py",  # edits private copies, of nodes to inline
    "xbuilder/nested/splicing.py",  # edits private copies of the nodes it brings into a graph
    "xoptim/trust/inputs/coverage.py",  # names the nodes of a private copy
    "xoptim/trust/noise.py",  # edits private copies
    "xoptim/surgery/opset_conversion.py",  # completes the nodes that the converter of onnx wrote
    "xoptim/trust/windows/doubles.py",  # converts a private copy of a small model
}


@cache
def modules() -> list[tuple[str, str, ast.Module]]:
    """Returns ``(relative path, text, tree)`` for every module of the three packages."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text, filename=str(path))
            found.append((path.relative_to(ROOT).as_posix(), text, tree))
    return found


def dotted(path: str) -> tuple[str, bool]:
    """Turns a path into the name of the module, tells if it is a package."""
    is_package = path.endswith("/__init__.py")
    return path.removesuffix("/__init__.py").removesuffix(".py").replace("/", "."), is_package


def report(path: str, violations: list[rules.Violation]) -> list[str]:
    return [f"{path}:{line}: {message}" for line, message in violations]


def fail_if(violations: list[str]) -> None:
    assert not violations, "\n" + "\n".join(violations)


def test_packages_exist():
    paths = {path.split("/")[0] for path, _, _ in modules()}
    assert paths == set(PACKAGES)
    assert len(modules()) > 20


def test_imports_go_one_way():
    found = []
    for path, _, tree in modules():
        name, is_package = dotted(path)
        found += report(path, rules.check_imports(tree, name, is_package))
        found += report(path, rules.check_import_by_name(tree, name))
        found += report(path, rules.check_room(name))
    fail_if(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_circle(package):
    """Files do not import each other in circles, type hints included."""
    trees = {}
    for path, _, tree in modules():
        if path.startswith(f"{package}/"):
            name, is_package = dotted(path)
            trees[name] = tree, is_package
    assert rules.find_circles(rules.import_graph(trees)) == []


def test_no_circle_between_folders():
    """Folders are a picture of the architecture: none needs, even in part, one that needs it."""
    trees = {}
    for path, _, tree in modules():
        name, is_package = dotted(path)
        trees[name] = tree, is_package
    assert rules.find_circles(rules.folder_graph(trees)) == []


def test_names_have_one_meaning():
    fail_if(rules.check_homonyms({path: tree for path, _, tree in modules()}))


def test_sizes_of_folders():
    """Converters of torch follow the list of its operators: their folder is longer."""
    found = []
    for package in (*PACKAGES, "_unittests"):
        for folder in sorted(p for p in (ROOT / package).rglob("*") if p.is_dir()):
            names = [p.name for p in folder.glob("*.py") if p.name != "__init__.py"]
            if folder.name != "aten" and len(names) > 20:
                found.append(f"{folder.relative_to(ROOT)}: {len(names)} files")
    fail_if(found)


def test_core_dependencies():
    found = []
    for path, _, tree in modules():
        found += report(path, rules.check_dependencies(tree, *dotted(path)))
    fail_if(found)


#: the only function over 60 lines: 24 public parameters, each typed, documented, passed by name
LONGEST = "to_onnx: 88 lines"


def test_sizes():
    found = []
    for path, text, tree in modules():
        found += report(path, rules.check_sizes(tree, len(text.splitlines())))
    fail_if([v for v in found if not v.endswith(LONGEST)])
    assert len(found) == 1


def test_sizes_of_tests():
    found = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        found += report(path, rules.check_length(n_lines, most=700))
    fail_if(found)


@pytest.mark.parametrize("rule", [r for r in rules.TREE_RULES if r != "environment"])
def test_rule(rule):
    fail_if([v for path, _, tree in modules() for v in report(path, rules.TREE_RULES[rule](tree))])


def test_no_environment_variable_outside_options():
    found = []
    for path, _, tree in modules():
        if "options" not in Path(path).stem:
            found += report(path, rules.check_environment(tree))
    fail_if(found)


def test_only_the_store_changes_nodes():
    found = []
    for path, _, tree in modules():
        if path not in NODE_WRITERS and not path.startswith("torch_interpreter/"):
            found += report(path, check_node_mutation(tree))
    fail_if(found)


def test_sets_of_operators_are_in_the_table():
    """Sets of operators are defined once, in xbuilder/op_traits.py."""
    kinds = (tuple, frozenset)
    rows = [(n, v) for n, v in vars(op_traits).items() if n.isupper() and type(v) in kinds]
    sets = {n: frozenset(v) for n, v in rows if len(v) > 2 and not n.startswith("_")}
    assert sets["ARITHMETIC"] == {"Add", "Sub", "Mul", "Div"}
    found = []
    for path, _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
                names = {e.value for e in node.elts if isinstance(e, ast.Constant)}
                same = [n for n, v in sets.items() if names == v and len(names) == len(node.elts)]
                found += [f"{path}:{node.lineno}: {name} again" for name in same]
    fail_if([f for f in found if not f.startswith("xbuilder/operators/op_traits.py")])


def test_no_leftovers():
    fail_if([v for path, text, _ in modules() for v in report(path, rules.check_leftovers(text))])


def test_xbuilder_does_not_need_torch_nor_xoptim():
    """The imports that are declared are those python makes when it runs."""
    import subprocess
    import sys

    code = (
        "import sys, xbuilder; "
        "print([m for m in ('torch', 'xoptim', 'torch_interpreter') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def parse(text: str) -> ast.Module:
    return ast.parse(textwrap.dedent(text))


@pytest.mark.parametrize(
    "module,text",
    [
        ("xbuilder.support.names", "import xoptim"),
        ("xbuilder.support.names", "from xoptim.catalogue.registry import x"),
        ("xbuilder.support.names", "def f():\n    import torch_interpreter.to_onnx"),
        ("xbuilder.support.names", "import torch"),
        ("xoptim.catalogue.registry", "def f():\n    from torch.nn import Module"),
        ("xoptim.catalogue.registry", "from torch_interpreter import to_onnx"),
        ("torch_interpreter.aten.unary", "from xoptim import get_pattern"),
        ("torch_interpreter.aten.unary", "from ..conversion.interpreter import Interpreter"),
        ("torch_interpreter.writing.symbols", "def f():\n    from ..aten.operands import cast"),
        ("xbuilder.dims.parse", "from xbuilder.facts.facts import Facts"),
        ("xbuilder.dims.parse", "from ..shapes.registry import shape_function"),
        ("xbuilder.dims.parse", "from .. import graph_store"),
        ("xbuilder.shapes.unary", "from ..graph_store import GraphStore"),
        ("xbuilder.passes.order", "from ..graph_builder import GraphBuilder"),
        ("xbuilder.passes.order", "def f():\n    from ..graph_builder import GraphBuilder"),
        ("xbuilder.dims.parse", "if TYPE_CHECKING:\n    from ..facts import Facts"),
        ("xbuilder.inference.refresh", "def f():\n    from ..nested.bodies import children_of"),
        ("xbuilder.graph.graph", "from ..inference.graph_inference import add_node"),
        ("xbuilder.store.graph_store", "def f():\n    from xbuilder import GraphBuilder"),
    ],
)
def test_detects_imports(module, text):
    assert rules.check_imports(parse(text), module)


@pytest.mark.parametrize(
    "module,text",
    [
        ("xbuilder.builder.graph_builder", "from .dims import Dim\nfrom .shapes import registry"),
        ("xbuilder.builder.graph_builder", "from .passes import run"),
        ("xbuilder.facts.facts", "if TYPE_CHECKING:\n    from .dims.parse import parse"),
        ("xbuilder.passes.order", "def f():\n    from ..graph import Graph"),
        ("xoptim.catalogue.registry", "from xbuilder import GraphBuilder\nfrom . import selection"),
        ("torch_interpreter.to_onnx", "import torch\nfrom xbuilder import GraphBuilder"),
    ],
)
def test_accepts_imports(module, text):
    assert rules.check_imports(parse(text), module) == []


def test_every_module_has_a_room():
    assert rules.room_of("xbuilder.dims.parse") < rules.room_of("xbuilder.graph.graph")
    assert rules.room_of("xbuilder.builder.graph_builder_facts") == rules.room_of(
        "xbuilder.builder.graph_builder"
    )
    assert rules.check_room("xbuilder") == rules.check_room("xbuilder.dims.parse") == []
    assert rules.check_room("xbuilder.somewhere.module")


@pytest.mark.parametrize(
    "texts,expected",
    [
        ({"a": "from . import b", "b": "import os"}, []),
        ({"a": "from .b import f", "b": "def f():\n    from .a import g"}, [["p.a", "p.b"]]),
        (
            {
                "a": "from .b import f",
                "b": "from . import c",
                "c": "if TYPE_CHECKING:\n  import p.a",
            },
            [["p.a", "p.b", "p.c"]],
        ),
    ],
)
def test_detects_circles(texts, expected):
    trees = {f"p.{name}": (parse(text), False) for name, text in texts.items()}
    assert rules.find_circles(rules.import_graph(trees)) == expected


def test_detects_circles_between_folders():
    """No module is in a circle, their folders are; a module at the root is alone."""
    texts = {"p.a.x": "from p.b import y", "p.a.z": "", "p.b.y": "", "p.b.w": "from p.a import z"}
    trees = {name: (parse(text), False) for name, text in texts.items()}
    assert rules.find_circles(rules.import_graph(trees)) == []
    assert rules.find_circles(rules.folder_graph(trees)) == [["p.a", "p.b"]]
    texts = {"p.errors": "", "p.options": "from p.b import y", "p.b.y": "from p import errors"}
    trees = {name: (parse(text), False) for name, text in texts.items()}
    assert rules.find_circles(rules.folder_graph(trees)) == []


def test_imports_of_a_package_file():
    tree = parse("from .context import ShapeContext")
    assert rules.check_imports(tree, "xbuilder.shapes", is_package=True) == []
    tree = parse("from ..passes import run")
    assert rules.check_imports(tree, "xbuilder.shapes", is_package=True)


def test_detects_dependencies():
    assert rules.check_dependencies(parse("import pandas"), "xoptim.engine.observers")
    assert rules.check_dependencies(parse("import torch"), "xbuilder.support.names")
    assert rules.check_dependencies(parse("import torch"), "torch_interpreter.to_onnx") == []
    text = "import os, numpy\nfrom onnx import helper\ndef f():\n    import pandas"
    assert rules.check_dependencies(parse(text), "xbuilder.support.names") == []


def test_an_extra_has_its_libraries():
    tree = ast.parse("import kanren")
    assert rules.check_dependencies(tree, "xoptim.toolkit.relations.terms") == []
    assert rules.check_dependencies(tree, "xoptim.toolkit.relations", True) == []
    assert len(rules.check_dependencies(tree, "xoptim.toolkit.rewriters")) == 1


def test_detects_imports_by_name():
    tree = parse("import importlib\nimportlib.import_module('xoptim.catalogue.selection')")
    assert rules.check_import_by_name(tree, "xbuilder.builder.graph_builder")
    assert rules.check_import_by_name(tree, "xbuilder.passes.registry")
    assert rules.check_import_by_name(tree, "xbuilder.passes.patterns") == []
    assert rules.check_import_by_name(tree, "xoptim.catalogue.selection")
    tree = parse("import_module(name)")
    assert rules.check_import_by_name(tree, "torch_interpreter.dispatch.dispatcher")
    assert rules.check_import_by_name(tree, "xoptim.catalogue.registry") == []
    tree = parse("importlib.import_module('onnx_ir')")
    assert rules.check_import_by_name(tree, "xbuilder.builder.graph_builder") == []


@pytest.mark.parametrize(
    "text",
    ["os.environ['A']", "os.getenv('A', '')", "from os import environ", "from os import getenv"],
)
def test_detects_environment(text):
    assert rules.check_environment(parse(text))


def test_detects_sizes():
    tree = parse("def f():\n" + "    x = 1\n" * 60)
    assert rules.check_sizes(tree, 61)
    assert rules.check_sizes(parse("def f():\n" + "    x = 1\n" * 59), 60) == []
    assert rules.check_sizes(parse("x = 1"), 501)
    assert rules.check_length(501) and rules.check_length(500) == []


def test_detects_missing_docstrings():
    found = rules.check_docstrings(
        parse('"""Doc."""\nclass A: pass\ndef f(): pass\ndef _g(): pass')
    )
    assert [message.split()[0] for _, message in found] == ["A", "f"]
    assert rules.check_docstrings(parse("x = 1")) == [(1, "the module has no docstring")]
    signature = '"""Doc."""\n@overload\ndef f(x: int): ...\n'
    assert rules.check_docstrings(parse(f'{signature}def f(x):\n    """Does it."""')) == []
    assert rules.check_docstrings(parse(f"{signature}def f(x): pass")) == [
        (4, "f has no docstring")
    ]
    text = "class A:\n    def f(self): pass\nclass B(A):\n    def f(self): pass"
    assert rules.check_methods_docstrings(parse(text)) == [(2, "A.f has no docstring")]


def test_detects_words_of_docstrings():
    text = 'def f():\n    """{} a node is live."""'
    assert rules.check_docstring_words(parse(text.format("Tells if"))) == [
        (1, "Tells if a node is live.")
    ]
    assert rules.check_docstring_words(parse(text.format("Says why")))
    assert rules.check_docstring_words(parse(text.format("Whether"))) == []
    assert rules.check_docstring_words(parse('"""What a file holds."""'))
    assert rules.check_docstring_words(parse('class A:\n    """What it is."""'))


def test_detects_homonyms():
    one, two = parse("class A: pass\nclass _B: pass"), parse("class _B: pass\nclass C: pass")
    assert rules.check_homonyms({"one.py": one, "two.py": two}) == []
    assert rules.check_homonyms({"one.py": one, "two.py": parse("class A: pass")}) == [
        "A: one.py, two.py"
    ]
    first, other = (
        parse("def f(): pass\ndef _g(): pass"),
        parse("@rule\ndef f(): pass\ndef _g(): pass"),
    )
    assert rules.check_homonyms({"p/one.py": first, "p/two.py": other, "q/one.py": first}) == []
    assert rules.check_homonyms({"p/one.py": first, "p/two.py": first}) == ["f: p/one.py, p/two.py"]


def test_detects_parameters():
    text = 'def f(a, *b, c=1):\n    """Does.\n\n    :param {}: what\n    """'
    assert rules.check_parameters(parse(text.format("a"))) == [(1, "f: parameters ['c']")]
    assert rules.check_parameters(parse(text.format("d"))) == [(1, "f: parameters ['a', 'c', 'd']")]
    text = 'class A:\n    def f(self, a, **k):\n        """Does.\n\n        :param a: what\n        """'
    assert rules.check_parameters(parse(text)) == []
    assert rules.check_parameters(parse(text.replace("self, a", "g, a"))) == []
    assert rules.check_parameters(parse('def f(a, b):\n    """Does."""')) == []


@pytest.mark.parametrize(
    "text",
    [
        'if node.op_type in "MatMul": pass',
        'if x in "MatMul": pass',
        'if node.op_type in ("MatMul"): pass',
        'if op_type not in "a": pass',
        'if "Mul" in node.op_type: pass',
    ],
)
def test_detects_op_type_tricks(text):
    assert rules.check_op_type_tricks(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        'node.op_type in {"MatMul"}',
        'node.op_type == "MatMul"',
        'c in "+-*/"',
        'array.dtype.kind in "OUS"',
        '"a" in names',
    ],
)
def test_accepts_op_type_tests(text):
    assert rules.check_op_type_tricks(parse(text)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "node.input[0] = 'x'",
        "node.input[:] = []",
        "del node.output[:]",
        "node.input.append('x')",
        "nodes[0].output.extend(['x'])",
        "anything.attribute.append(att)",
        "node.attribute[0].i = 5",
        "node.op_type = 'Add'",
        "other.op_type = 'Add'",
        "before.name = before.name\n    node.name = 'x'",
        "node.domain = 'ai.onnx.ml'",
        "node.CopyFrom(other)",
        "node.ClearField('input')",
        "g.node_before(name).input.pop()",
        "g.node_before(name).CopyFrom(node)",
        "inputs = node.input\n    inputs.append('x')",
        "inputs = node.input\n    inputs[0] = 'x'",
        "att = node.attribute[0]\n    att.i = 5",
        "for att in node.attribute:\n        att.ints[:] = [1]",
        "for att in node.attribute:\n        att.t.CopyFrom(tensor)",
        "setattr(node, 'op_type', 'Add')",
        "node.input[0], x = 'a', 'b'",
        "node.doc_string += 'x'",
        "new_node = g.make_node('Add')\n    new_node = node\n    new_node.input[0] = 'x'",
    ],
)
def test_detects_node_mutation(statement):
    assert check_node_mutation(parse(f"def apply(self, g, node):\n    {statement}\n"))


@pytest.mark.parametrize(
    "statement",
    [
        "new_node = g.make_node('Add')\n    new_node.attribute.append(att)",
        "res = oh.make_node('Add')\n    res.op_type = 'Sub'\n    res.input.extend(['x'])",
        "graph.input.append(vi)",
        "model.graph.output.extend(outs)",
        "function.attribute.append('axis')",
        "names = list(node.input)\n    names.append('x')",
        "inputs = []\n    inputs.append(node.input[0])",
        "self.op_type = op_type",
        "self.name = 'x'",
        "nodes.append(node)",
        "copy = NodeProto()\n    copy.CopyFrom(node)\n    copy.name = 'x'",
        "c = NodeProto()\n    for att in c.attribute:\n        att.g.CopyFrom(graph)",
    ],
)
def test_accepts_without_node_mutation(statement):
    found = check_node_mutation(parse(f"def apply(self, g, node):\n    {statement}\n"))
    assert found == []


def test_detects_leftovers():
    assert rules.check_leftovers("x = 1  # TO" + "DO later")
    assert rules.check_leftovers("x = 1  # to do") == []
