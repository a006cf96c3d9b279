"""Writes a model as the Python code of the pattern that matches it."""

from __future__ import annotations

import keyword
import re

from onnx import ModelProto, NodeProto

from xbuilder.errors import OptionError
from xbuilder.operators.domains import main_domain
from xbuilder.protos.python_code import (
    attribute_arguments,
    check_python_name,
    check_written_model,
    tensor_code,
)
from xbuilder.support.argument_types import check_type


def to_graph_pattern_matching(
    onx: ModelProto, class_name: str = "ModelPattern", domain: str = "fused", max_elements: int = 16
) -> str:
    """Writes a model as the Python code of the pattern that matches its nodes.

    The code defines a class, an :class:`xoptim.EasyPatternOptimization`. It replaces the nodes by
    one operator that has its name: change `apply_pattern` to write other nodes. The operators have
    the form they have in recent opsets.

    :param onx: the model, usually a part of a larger one, as :func:`xoptim.extract` gives
    :param class_name: name of the class, and of the operator
    :param domain: domain of the operator
    :param max_elements: initializers with more elements are inputs of the pattern, the others are
        constants the model must have
    :return: the code
    :raises OptionError: the model has local functions, sparse initializers, or inputs or outputs
        that are not tensors, or no node; the name is not the one of a class

    .. code-block:: python

        code = to_graph_pattern_matching(part, "Gelu", domain="mine")
        scope = {}
        exec(code, scope)
        options = OptimizationOptions(patterns=[scope["Gelu"]()])
    """
    check_type("onx", onx, ModelProto)
    check_python_name("class_name", class_name)
    check_written_model(onx)
    if not onx.graph.node:
        raise OptionError("The model has no node, there is nothing to match.")
    names = _Names()
    constants = {i.name: tensor_code(i, max_elements) for i in onx.graph.initializer}
    inputs = [i.name for i in onx.graph.input]
    inputs.extend(name for name, code in constants.items() if code is None and name not in inputs)
    # an initializer that is an input too may have another value
    given = {i.name for i in onx.graph.input}
    known = {n: code for n, code in constants.items() if code is not None and n not in given}
    parameters = ", ".join(["self", "g", *(names.of(name) for name in inputs)])
    passed = "".join(f"{names.of(name)}, " for name in inputs)
    match = [_node_code(node, names, known) for node in onx.graph.node]
    results = [names.of(o.name) for o in onx.graph.output]
    lines = [
        f"    def match_pattern({parameters}):",
        *(f"        {line}" for line in match),
        f"        return {', '.join(results)}",
        "",
        f"    def apply_pattern({parameters}):",
        f"        return g.anyop.{class_name}({passed}outputs={len(results)}, domain={domain!r})",
    ]
    body = "".join(f"{line}\n" for line in lines)
    return (
        "import numpy as np\n"
        "from onnx import AttributeProto, TensorProto\n\n"
        "from xoptim import EasyPatternOptimization\n\n\n"
        f"class {class_name}(EasyPatternOptimization):\n{body}"
    )


class _Names:
    """The Python name of each result."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.taken = {"self", "g", "np", "AttributeProto", "TensorProto", "_"}

    def of(self, name: str) -> str:
        """The name of a result, the first one of its kind that is free."""
        if name not in self.names:
            prefix = re.sub(r"\W", "_", name)
            prefix = (
                f"r_{prefix}" if not prefix.isidentifier() or keyword.iskeyword(prefix) else prefix
            )
            found, i = prefix, 1
            while found in self.taken:
                found, i = f"{prefix}_{i}", i + 1
            self.taken.add(found)
            self.names[name] = found
        return self.names[name]


def _node_code(node: NodeProto, names: _Names, constants: dict[str, str]) -> str:
    """One node: ``y = g.op.Add(x, np.array([1], dtype=np.float32))``."""
    domain = main_domain(node.domain)
    arguments = [
        "None" if not name else constants.get(name) or names.of(name) for name in node.input
    ]
    if len(node.output) > 1:
        arguments.append(f"outputs={len(node.output)}")
    if domain:
        arguments.append(f"domain={domain!r}")
    arguments.extend(attribute_arguments(node))
    results = ", ".join(names.of(name) if name else "_" for name in node.output)
    return f"{results} = g.{'anyop' if domain else 'op'}.{node.op_type}({', '.join(arguments)})"
