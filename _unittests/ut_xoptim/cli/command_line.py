"""The command run in the process of the test."""

from __future__ import annotations

from click.testing import CliRunner, Result

from xoptim.cli.main import main


def run(*args: object, code: int = 0) -> Result:
    """Runs the command, checks its exit code, and that no traceback is shown."""
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result
