"""The options of a user, in ``xoptim.toml`` or in ``[tool.xoptim]`` of ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

#: where the context of the command holds its settings
SETTINGS = "xoptim.settings"
_FILE, _PROJECT = "xoptim.toml", "pyproject.toml"


@dataclass(frozen=True)
class Settings:
    """The options that a file gives to the commands.

    :param path: the file, None if there is none
    :param values: command -> parameter -> value, as :attr:`click.Context.default_map` wants it
    :param keys: command and parameter -> the key of the file
    """

    path: Path | None = None
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)

    def key_of(self, ctx: click.Context | None, param: click.Parameter | None) -> str:
        """The place in the file of the value of an option, empty if it is not there.

        :param ctx: the context of the subcommand
        :param param: its option
        """
        if ctx is None or param is None or param.name is None:
            return ""
        if ctx.get_parameter_source(param.name) not in (None, ParameterSource.DEFAULT_MAP):
            return ""
        key = self.keys.get((ctx.info_name or "", param.name))
        return f"{key} of {self.path}" if key else ""


def find_settings(folder: Path) -> Path | None:
    """The file of the closest folder that has one: this one, or one of those that hold it.

    :param folder: where the search begins
    :return: `xoptim.toml`, or a `pyproject.toml` with a table `tool.xoptim`
    """
    for place in (folder, *folder.parents):
        if (place / _FILE).is_file():
            return place / _FILE
        if (place / _PROJECT).is_file() and _table(place / _PROJECT):
            return place / _PROJECT
    return None


def read_settings(path: Path | None, group: click.Group) -> Settings:
    """Reads the options of a file. Keys at the top are for every command that has the option, those
    of a table are for the command of this name.

    :param path: the file, None for no option
    :param group: the commands
    :raises OptionError: the file cannot be read, a key is unknown or has a value of another kind
    """
    if path is None:
        return Settings()
    table = _table(path)
    found = Settings(path)
    tables = {k: v for k, v in table.items() if isinstance(v, Mapping) and k in group.commands}
    shared = {k: v for k, v in table.items() if k not in tables}
    known = {k: _options_of(command) for k, command in group.commands.items()}
    for key in shared:
        if not any(key in options for options in known.values()):
            names = {*known, *(n for options in known.values() for n in options)}
            raise OptionError(f"{key!r} of {path} is no option and no command{_close(key, names)}")
    for name, options in known.items():
        own = tables.get(name, {})
        for key in own:
            if key not in options:
                hint = _close(key, options)
                raise OptionError(f"{key!r} of {path} is no option of xoptim {name}{hint}")
        for key, value in {**shared, **own}.items():
            if key in options:
                param = options[key]
                place = f"{name}.{key}" if key in own else key
                given = _value(param, value, f"{place!r} of {path}", path.parent)
                found.values.setdefault(name, {})[param.name or key] = given
                found.keys[name, param.name or key] = place
    return found


def _table(path: Path) -> dict[str, Any]:
    """The options of a file.

    :raises OptionError: it is not valid
    """
    import tomllib

    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        content: dict[str, Any] = tomllib.loads(text)
    except (OSError, ValueError) as e:
        if path.name == _PROJECT and "tool.xoptim" not in text:  # it is for other tools
            return {}
        raise OptionError(f"{path} cannot be read: {e}.") from e
    if path.name != _PROJECT:
        return content
    found = content.get("tool", {}).get("xoptim", {})
    return dict(found) if isinstance(found, Mapping) else {}


def _options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names, without dashes."""
    return {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("--") and name not in ("--help", "--version")
    }


def _close(key: str, names: Any) -> str:
    close = closest_names(key, names)
    return f", did you mean {' or '.join(close)}?" if close else f": it has {sorted(names)}."


def _value(param: click.Option, value: Any, place: str, folder: Path) -> Any:
    """The value of an option as click takes it from the command line: texts, booleans.

    :raises OptionError: it is of another kind
    """
    if param.is_flag:
        if not isinstance(value, bool):
            raise OptionError(f"{place} is {value!r}, true or false is expected.")
        return value if param.is_bool_flag else (param.flag_value if value else None)
    if isinstance(value, Mapping):  # set-dim = {batch = 1}
        value = [f"{k}={v}" for k, v in value.items()]
    texts = [str(v) for v in (value if isinstance(value, list) else [value])]
    if isinstance(param.type, click.Path):
        texts = [str(folder / text) for text in texts]
    return texts if param.multiple else ",".join(texts)
