"""
From PyTensor, Aesara, Theano
=============================

``xoptim`` has graph rewriters, node rewriters and equilibria, as PyTensor has, but they rewrite ONNX graphs. The
table gives the name of each object here. Then the page writes the rewrite of the PyTensor tutorial.

======================================  =====================================================
in PyTensor                             in ``xoptim``
======================================  =====================================================
``FunctionGraph``                       the graph of a ``GraphBuilder``
``Apply``, ``Variable``                 a node, the name of a result
``Op``                                  the name of an operator, ``"Div"``
``@node_rewriter([Op])``                ``@node_rewriter("Div")``
``PatternNodeRewriter``                 the same, or ``@rule``
``EquilibriumGraphRewriter``            the same; a list of patterns is one
``RewriteDatabaseQuery``                the same, or ``"default+onnxruntime-Cast"``
``pytensor.dprint``                     ``pretty_onnx``
``optimizer_verbose``                   ``verbose=10``
======================================  =====================================================
"""

import onnx

from xbuilder import GraphBuilder, OptimizationOptions, pretty_onnx
from xoptim.toolkit import node_rewriter

model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[n] x, float[n] y) => (float[n] z) {
        m = Mul (x, y)
        d = Div (m, y)
        z = Exp (d)
    }
""")
print(pretty_onnx(model))

# %%
# The rewrite of the PyTensor tutorial turns ``x * y / y`` into ``x``. It is not exact, because *y* may be 0.


@node_rewriter("Div")
def local_simplify(graph, node):
    """Mul(x, y) / y -> x."""
    product = graph.before(node, "Mul")
    if node.input[1] not in product.input:
        return False
    (other,) = [name for name in product.input if name != node.input[1]]
    return [other]


options = OptimizationOptions(patterns=[local_simplify])
print(pretty_onnx(GraphBuilder(model, optimization_options=options).to_onnx()))

# %%
# :doc:`/rewrites/rewriting_toolkit` explains walks, equilibria and merges. :doc:`/rewrites/relations` explains unification and
# miniKanren. :doc:`/rewrites/features` explains ``History`` and ``ReplaceValidate``.
