"""``xoptim config``: the options that a file gives, and where they come from."""

from __future__ import annotations

from typing import Any

import click

from xbuilder.errors import OptionError

from .terminal.output import common_options, print_json, print_list
from .terminal.settings import SETTINGS, Settings


@click.command()
@click.argument("command", required=False)
@common_options
@click.pass_context
def config(ctx: click.Context, command: str | None, as_json: bool) -> None:
    """Shows the options of xoptim.toml, or of [tool.xoptim] in pyproject.toml.

    With COMMAND, shows every option it has and the value it takes.
    """
    settings: Settings = ctx.meta[SETTINGS]
    group = ctx.find_root().command
    assert isinstance(group, click.Group), "it is the group of the commands"
    if command is not None and command not in group.commands:
        raise OptionError(f"xoptim has no command {command!r}, it has {sorted(group.commands)}.")
    names = list(group.commands) if command is None else [command]
    rows = [row for name in names for row in _rows(ctx, group, name, settings)]
    if command is None:
        rows = [row for row in rows if row["from"]]
    if as_json:
        path = None if settings.path is None else str(settings.path)
        print_json({"ok": True, "file": path, "options": rows})
        return
    where = settings.path or "no xoptim.toml, no [tool.xoptim] in pyproject.toml, here or above"
    columns = ["command", "option", "value", "from"]
    print_list(str(where), columns, [[str(row[c]) for c in columns] for row in rows])


def _rows(
    ctx: click.Context, group: click.Group, name: str, settings: Settings
) -> list[dict[str, Any]]:
    """The options of a command with their values."""
    given = settings.values.get(name, {})
    rows = []
    for param in group.commands[name].params:
        if isinstance(param, click.Option) and param.name is not None:
            value = given.get(param.name, param.to_info_dict().get("default"))
            key = settings.keys.get((name, param.name), "")
            option = next((o for o in param.opts if o.startswith("--")), param.opts[0])
            row = {"command": name, "option": option, "value": _shown(value), "from": key}
            rows.append(row)
    return rows


def _shown(value: Any) -> Any:
    """A value as a table shows it."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return "" if value is None or "UNSET" in repr(value) else value
