"""The command run in the process of the test."""

from __future__ import annotations

from click.testing import CliRunner, Result

from xoptim.cli.main import main

#: a model three nodes of which are useless
TRANSPOSES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
    a = Transpose<perm: ints = [0, 2, 1]>(x)
    b = Transpose<perm: ints = [0, 2, 1]>(a)
    c = Identity(b)
    y = Neg(c)
}
"""


def run(*args: object, code: int = 0) -> Result:
    """Runs the command, checks its exit code, and that no traceback is shown."""
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
