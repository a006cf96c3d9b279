"""Options that are given several times, each with a name and its value."""

from __future__ import annotations

import click
import pytest

from xoptim.cli.options.pairs import pairs, parse_sizes

OPTION = click.Option(["--dim"])
COMMAND = click.Context(click.Command("one"))


def test_sizes() -> None:
    found = parse_sizes(COMMAND, OPTION, ["batch=4", "x[1]=3", "batch=4"])
    assert found == {"batch": 4, "x[1]": 3}


@pytest.mark.parametrize("text", ["batch", "=4", "batch=", "batch=-1", "batch=²", "batch=four"])
def test_another_form(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not name=size, such as batch=4"):
        parse_sizes(COMMAND, OPTION, [text])


def test_two_values() -> None:
    with pytest.raises(click.BadParameter, match="'batch' has two sizes"):
        parse_sizes(COMMAND, OPTION, ["batch=4", "batch=5"])


def test_another_sign() -> None:
    read = pairs(lambda text: text.split(","), "name:a,b", "lists", ":")
    assert read(COMMAND, OPTION, ["x:a,b", "y:c"]) == {"x": ["a", "b"], "y": ["c"]}
