"""
Test a rewrite, and publish it
==============================

``check_pattern`` tests what a rewrite does, ``check_no_match`` tests what it refuses. A package then
gives it to the command.
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
# Both models are text. ``check_pattern`` compares the graphs, runs both models on random inputs of several
# sizes, and checks that a second run changes nothing.

header = "agraph (float[n] x) => (float[n] y) "
check_pattern(header + "{ a = Neg (x)  y = Abs (a) }", header + "{ y = Abs (x) }", [abs_neg])

# %%
# Each condition has a model that nearly matches, and the reason of the refusal.

twice = "agraph (float[n] x) => (float[n] y, float[n] a) { a = Neg (x)  y = Abs (a) }"
check_no_match(twice, abs_neg, "used elsewhere")

# %%
# Publish
# +++++++
#
# A file is enough for the command::
#
#     xoptim model.onnx out.onnx --load my_rewrites.py -p default+AbsNeg
#
# A package of yours names its module in ``pyproject.toml``. Its rewrites are then there for every user
# who installs it:
#
# .. code-block:: toml
#
#     [project.entry-points."xoptim.patterns"]
#     mine = "my_package.rewrites"
#
# :doc:`/rewrite_databases` has the details.
