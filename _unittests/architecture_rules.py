"""The rules of the house as detectors over syntax trees: each returns the violations it sees.

A detector takes the parsed module (and facts about it), and returns a list of
``(line number, message)``. :mod:`test_architecture` runs them over the packages and tries each of
them on planted snippets, so that a rule that stops detecting anything is noticed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

Violation = tuple[int, str]

#: folders of a package in the order of their imports, lower ones first, and the modules at its root
ROOMS: dict[str, tuple[str, ...]] = {
    "xbuilder": (
        "errors",
        "support",
        "operators",
        "dims",
        "runtimes",
        "options",
        "tensors",
        "facts",
        "nodes",
        "store",
        "files",
        "constants",
        "shapes",
        "graph",
        "inference",
        "protos",
        "nested",
        "passes",
        "builder",
    ),
    "xoptim": (
        "authoring",
        "catalogue",
        "analysis",
        "engine",
        "declarative",
        "patterns",
        "patterns_ort",
        "patterns_ml",
        "patterns_cuda",
        "toolkit",
        "surgery",
        "reports",
        "repeated_optim",
        "unfused",
        "linting",
        "trust",
        "tasks",
        "testing",
        "cli",
        "__main__",
    ),
    "torch_interpreter": (
        "common",
        "inputs",
        "writing",
        "aten",
        "patches",
        "checking",
        "dispatch",
        "exporting",
        "conversion",
        "to_onnx",
        "piece_by_piece",
        "backend",
        "compare_with_torch",
        "transformers_backend",
    ),
}
#: modules that import others by name -> the modules they reach
HOOKS = {
    "xbuilder.passes.patterns": "the engine",
    "xoptim.catalogue.registry": "the families of patterns, which it names",
    "xoptim.catalogue.cards": "the module of a pattern, when its class is first needed",
    "xoptim.tasks.sources": "the converter of torch modules",
    "xoptim.cli.main": "the subcommands, when one is asked for",
    "xbuilder.shapes.registry": "the families of shape functions, which families.py lists",
    "xbuilder.support.lazy_names": "the public names of a package, when one is asked for",
    "xbuilder.support.walking": "the modules of the package that asks",
}
#: package -> packages of the project it may import
ALLOWED_PACKAGES = {
    "xbuilder": {"xbuilder"},
    "xoptim": {"xbuilder", "xoptim"},
    "torch_interpreter": {"xbuilder", "torch_interpreter"},
}
#: modules a module may import when it is loaded; others are optional, imported where they are used
CORE_DEPENDENCIES = {"click", "google", "ml_dtypes", "numpy", "onnx", "onnxruntime", "rich"}
#: a folder nothing else imports -> libraries of an extra it needs
EXTRA_DEPENDENCIES = {
    "xoptim.toolkit.relations": {"cons", "etuples", "kanren", "unification"},
    "torch_interpreter.transformers_backend": {"onnx_ir", "transformers"},
}
#: a word that looks like an operator, unlike a set of letters: "OUS"
OP_TYPE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
#: modules whose functions have the names of those they do the work of
_SAME_NAMES = {"xbuilder/dims/build.py"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def room_of(module: str) -> int:
    """The place of the room of a module in its package, 1 + the last one if it has none. The
    exports of the package itself (``from xbuilder import GraphBuilder``) are above everything."""
    package, name = [*module.split("."), ""][:2]
    rooms = ROOMS[package]
    return rooms.index(name) if name in rooms else len(rooms)


def check_room(module: str) -> list[Violation]:
    """Every module has a room, but the file of the package."""
    package = module.split(".")[0]
    if module == package or room_of(module) < len(ROOMS[package]):
        return []
    return [(1, f"{module} has no room, give it one in ROOMS")]


def type_checking_lines(tree: ast.Module) -> set[int]:
    """The lines under ``if TYPE_CHECKING:``, which never run."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for statement in node.body:
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def absolute_name(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """Resolves ``from ..x import y`` written in *module* into the absolute name of ``x``."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*parts, node.module] if node.module else parts)


def imported_modules(
    tree: ast.Module, module: str, is_package: bool, hints: bool = False
) -> Iterator[tuple[int, str, bool]]:
    """Enumerates ``(line, imported module, at module level)``.

    :param hints: type-checking imports count as well
    """
    ignored = set() if hints else type_checking_lines(tree)
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, FUNCTIONS) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) in ignored:
            continue
        top = id(node) not in inner
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, top
        elif isinstance(node, ast.ImportFrom):
            base = absolute_name(module, is_package, node)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}" if base else alias.name, top


def check_imports(tree: ast.Module, module: str, is_package: bool = False) -> list[Violation]:
    """Packages import each other one way, torch stays in torch_interpreter, rooms import those
    before them only: when they are loaded, later, and for type hints."""
    package = module.split(".")[0]
    found = []
    for line, name, _ in imported_modules(tree, module, is_package, hints=True):
        root = name.split(".")[0]
        if root in ALLOWED_PACKAGES and root not in ALLOWED_PACKAGES[package]:
            found.append((line, f"{package} imports {name}"))
        elif root == "torch" and package != "torch_interpreter":
            found.append((line, f"{package} imports torch"))
        elif package == root and room_of(name) > room_of(module):
            found.append((line, f"{module} imports {name}, a room above"))
    return found


def import_graph(
    trees: Mapping[str, tuple[ast.Module, bool]],
) -> dict[str, dict[str, int]]:
    """The modules each module imports, type hints included, with a line.

    :param trees: parsed modules by name, and whether they are packages
    """
    edges: dict[str, dict[str, int]] = {}
    for module, (tree, is_package) in trees.items():
        edges[module] = {}
        for line, name, _ in imported_modules(tree, module, is_package, hints=True):
            target = name if name in trees else name.rpartition(".")[0]
            if target in trees and target != module:
                edges[module].setdefault(target, line)
    return edges


def folder_graph(trees: Mapping[str, tuple[ast.Module, bool]]) -> dict[str, set[str]]:
    """The folders each folder imports; a module at the root of a package stands alone. The files of
    packages do not count, they only gather what is public.

    :param trees: as for :func:`import_graph`
    """
    edges: dict[str, set[str]] = {}
    for module, targets in import_graph(trees).items():
        if not trees[module][1]:
            arrows = edges.setdefault(_folder(module), set())
            arrows.update(_folder(t, trees[t][1]) for t in targets)
            arrows.discard(_folder(module))
    for target in set().union(*edges.values()) - set(edges):
        edges[target] = set()
    return edges


def _folder(module: str, is_package: bool = False) -> str:
    return module if is_package or module.count(".") < 2 else module.rpartition(".")[0]


def find_circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or not."""
    reached = {module: _reachable(module, edges) for module in edges}
    groups: list[list[str]] = []
    seen: set[str] = set()
    for module in sorted(edges):
        if module in seen or module not in reached[module]:
            continue
        group = sorted(m for m in reached[module] if module in reached.get(m, ()))
        seen.update(group)
        groups.append(group)
    return groups


def _reachable(module: str, edges: Mapping[str, Iterable[str]]) -> Collection[str]:
    found: set[str] = set()
    stack = list(edges[module])
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(edges.get(name, ()))
    return found


def check_dependencies(tree: ast.Module, module: str, is_package: bool = False) -> list[Violation]:
    """Loading a module needs the dependencies every installation has, nothing else."""
    known = CORE_DEPENDENCIES | set(ALLOWED_PACKAGES) | set(sys.stdlib_module_names)
    if module.split(".")[0] == "torch_interpreter":
        known.add("torch")
    for folder, libraries in EXTRA_DEPENDENCIES.items():
        if f"{module}.".startswith(f"{folder}."):
            known |= libraries
    return [
        (line, f"{module} needs {name}")
        for line, name, top in imported_modules(tree, module, is_package)
        if top and name.split(".")[0] not in known
    ]


def check_import_by_name(tree: ast.Module, module: str) -> list[Violation]:
    """Only the hooks import a module of the project by name, which no other rule sees."""
    if module in HOOKS:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) in {"import_module", "__import__"}:
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if not names or str(names[0]).split(".")[0] in ALLOWED_PACKAGES:
                found.append((node.lineno, "imports a module of the project by name"))
    return found


def check_environment(tree: ast.Module) -> list[Violation]:
    """No environment variable is read."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
            found.append((node.lineno, f"os.{node.attr}"))
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            names = [a.name for a in node.names if a.name in {"environ", "getenv", "environb"}]
            found.extend((node.lineno, f"from os import {n}") for n in names)
    return found


def check_length(n_lines: int, most: int = 500) -> list[Violation]:
    """No module over *most* lines."""
    return [(1, f"{n_lines} lines")] if n_lines > most else []


def check_sizes(tree: ast.Module, n_lines: int, function: int = 60) -> list[Violation]:
    """No module too long, no function over *function* lines."""
    found = check_length(n_lines)
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > function:
                found.append((node.lineno, f"{node.name}: {size} lines"))
    return found


def check_docstrings(tree: ast.Module) -> list[Violation]:
    """The module, its public classes and functions have a docstring.

    The signatures of an overloaded function share the docstring of its implementation.
    """
    found = [] if ast.get_docstring(tree) else [(1, "the module has no docstring")]
    for node in tree.body:
        public = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_")
        if public and not is_overload(node) and not ast.get_docstring(node):
            found.append((node.lineno, f"{node.name} has no docstring"))
    return found


#: how no docstring begins: "Whether x" says it shorter, and a noun or a verb says more than "What"
_BEGINNINGS = ("Says ", "Tells if", "Tells whether", "What ", "Why ", "How ", "Which ", "Who ")


def check_docstring_words(tree: ast.Module) -> list[Violation]:
    """A docstring begins with what the thing is or does."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node) or ""
            if text.startswith(_BEGINNINGS):
                found.append((getattr(node, "lineno", 1), text.splitlines()[0]))
    return found


def check_homonyms(trees: Mapping[str, ast.Module]) -> list[str]:
    """A public class has a name of its own in the packages, a public function in its package: one
    word has one meaning. A decorated function is known by the name it is registered with."""
    places: dict[tuple[str, str], list[str]] = {}
    for path, tree in trees.items():
        for node in tree.body:
            is_class = isinstance(node, ast.ClassDef)
            plain = isinstance(node, FUNCTIONS) and not node.decorator_list
            if (is_class or plain) and not node.name.startswith("_") and path not in _SAME_NAMES:
                scope = "" if is_class else path.split("/")[0]
                places.setdefault((scope, node.name), []).append(path)
    return [f"{name}: {', '.join(where)}" for (_, name), where in places.items() if len(where) > 1]


def is_overload(node: ast.AST) -> bool:
    """Whether a function is one of the signatures of an overloaded function."""
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in decorators)


def check_methods_docstrings(tree: ast.Module) -> list[Violation]:
    """Public methods of public classes have a docstring, unless the class refines another one."""
    found = []
    for cls in tree.body:
        if not isinstance(cls, ast.ClassDef) or cls.name.startswith("_") or cls.bases:
            continue
        for node in cls.body:
            if not isinstance(node, FUNCTIONS) or node.name.startswith("_"):
                continue
            setter = any(isinstance(d, ast.Attribute) for d in node.decorator_list)
            if not setter and not ast.get_docstring(node):
                found.append((node.lineno, f"{cls.name}.{node.name} has no docstring"))
    return found


def check_parameters(tree: ast.Module) -> list[Violation]:
    """A public docstring that describes a parameter describes all of them but `g`, which is always
    what a rewrite asks, and no unknown one."""
    found = []
    classes = [n.body for n in tree.body if isinstance(n, ast.ClassDef)]
    for node in [*tree.body, *(n for body in classes for n in body)]:
        if not isinstance(node, FUNCTIONS) or is_overload(node) or node.name.startswith("_"):
            continue
        text = ast.get_docstring(node) or ""
        told = set(re.findall(r":param \**(\w+):", text))
        arguments = node.args
        rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names = {a.arg for a in named} - {"self", "cls"}
        wrong = told - names - {a.arg for a in rest}
        missing = {n for n in names - told - {"g"} if told and not n.startswith("_")}
        if wrong or missing:
            found.append((node.lineno, f"{node.name}: parameters {sorted(wrong | missing)}"))
    return found


def check_op_type_tricks(tree: ast.Module) -> list[Violation]:
    """No ``op_type in "MatMul"`` (true for "Mul"), no ``"Mul" in node.op_type``."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        left = [node.left, *node.comparators[:-1]]
        for a, op, b in zip(left, node.ops, node.comparators, strict=True):
            if not isinstance(op, (ast.In, ast.NotIn)):
                continue
            word = isinstance(b, ast.Constant) and isinstance(b.value, str)
            if word and (is_op_type(a) or OP_TYPE.fullmatch(b.value)):
                found.append((node.lineno, f"in {b.value!r}"))
            elif is_op_type(b):
                found.append((node.lineno, f"in {ast.unparse(b)}"))
    return found


def is_op_type(node: ast.AST) -> bool:
    """Whether an expression is the type of an operator: ``node.op_type`` or ``op_type``."""
    return (isinstance(node, ast.Attribute) and node.attr == "op_type") or (
        isinstance(node, ast.Name) and node.id == "op_type"
    )


def called_name(node: ast.Call) -> str:
    """The last identifier of the function of a call: ``g.make_node(...)`` gives ``make_node``."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def check_leftovers(text: str) -> list[Violation]:
    """No work left open: no TODO, FIXME, nothing announced as not implemented yet."""
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|not implemented yet|NotImplementedError\(\)")
    return [(i, line.strip()) for i, line in enumerate(text.splitlines(), 1) if marks.search(line)]


TREE_RULES: dict[str, Callable[[ast.Module], list[Violation]]] = {
    "docstrings": check_docstrings,
    "docstring_words": check_docstring_words,
    "methods_docstrings": check_methods_docstrings,
    "parameters": check_parameters,
    "environment": check_environment,
    "op_type_tricks": check_op_type_tricks,
}
