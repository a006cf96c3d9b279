"""
Test a rewrite, and publish it
==============================

``check_pattern`` tests the graph that a rewrite writes, and ``check_no_match`` tests a model that it refuses. Once it
is tested, publish it in a file or in a package, so that the command finds it.
"""

from xoptim import rewrite
from xoptim.testing import check_no_match, check_pattern


@rewrite(root="Abs", after="Neg", sole_use=True)
def abs_neg(g, node):
    """Abs(Neg(x)) -> Abs(x)."""
    return g.op.Abs(g.before(node, "Neg").input[0])


# %%
# Test
# ++++
#
# You write both models as text. ``check_pattern`` compares the graphs, runs both models on random inputs of several
# sizes, and checks that a second run changes nothing.

header = "agraph (float[n] x) => (float[n] y) "
done = check_pattern(header + "{ a = Neg (x)  y = Abs (a) }", header + "{ y = Abs (x) }", [abs_neg])
print([node.op_type for node in done.graph.node])

# %%
# Write one model that nearly matches for each condition, with the reason of the refusal:

twice = "agraph (float[n] x) => (float[n] y, float[n] a) { a = Neg (x)  y = Abs (a) }"
check_no_match(twice, abs_neg, "used elsewhere")

# %%
# Publish
# +++++++
#
# For your own use, a file is enough. The command loads it::
#
#     xoptim model.onnx out.onnx --load my_rewrites.py -p default+AbsNeg
#
# To share rewrites, name their module in the ``pyproject.toml`` of your package. Every user who installs the package
# can then select them:
#
# .. code-block:: toml
#
#     [project.entry-points."xoptim.patterns"]
#     mine = "my_package.rewrites"
#
# :doc:`/rewrites/rewrite_databases` explains the details.
