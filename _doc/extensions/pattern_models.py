"""The examples of the catalogue: models before and after a pattern, taken from its tests.

A test module of patterns has a dictionary at its top level: name -> (before, after), or
name -> {case: (before, after)}. The tests check what the documentation shows.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from onnx import ModelProto
from onnx.parser import ParseError

from xbuilder import pretty_onnx
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import model_from_text

TESTS = Path(__file__).resolve().parents[2] / "_unittests" / "ut_xoptim"
_HIGHEST_OPSET = 23


def test_modules() -> Iterator[ModuleType]:
    """Loads the test modules of the patterns."""
    for path in sorted(TESTS.glob("patterns*/**/test_*.py")):
        # a test module may import what is beside it, or above
        above = list(path.parents).index(TESTS.parent)
        folders = [str(folder) for folder in path.parents[: above + 1]]
        sys.path[:0] = folders
        try:
            name = "_".join(path.relative_to(TESTS).with_suffix("").parts)
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        finally:
            for folder in folders:
                sys.path.remove(folder)
        yield module


def pair_of(example: object) -> tuple[ModelProto, ModelProto] | None:
    """Reads the first example of an entry.

    :param example: ``(before, after)``, models or their text, or a dictionary of them
    :return: two models, None if the entry is something else, such as a refusal and its reason
    """
    if isinstance(example, dict):
        example = next(iter(example.values()), None)
    if not (isinstance(example, tuple) and len(example) >= 2):
        return None
    if all(isinstance(model, ModelProto) for model in example[:2]):
        return example[:2]
    if not all(isinstance(text, str) and "=>" in text for text in example[:2]):
        return None
    try:
        before, after = (model_from_text(text, _HIGHEST_OPSET) for text in example[:2])
    except ParseError:
        return None
    return before, after


def collect_examples() -> dict[str, tuple[ModelProto, ModelProto]]:
    """Collects one example for each registered pattern.

    :return: name of a pattern, without its suffix -> models before and after
    :raises LookupError: if a pattern has no example
    """
    names = {cls.__name__.removesuffix("Pattern") for cls in all_patterns().values()}
    found: dict[str, tuple[ModelProto, ModelProto]] = {}
    for module in test_modules():
        for table in vars(module).values():
            if not isinstance(table, dict):
                continue
            for name in names.intersection(k for k in table if isinstance(k, str)) - set(found):
                pair = pair_of(table[name])
                if pair is not None:
                    found[name] = pair
    if names - set(found):
        raise LookupError(
            f"No test module has an example for {sorted(names - set(found))}: add a dictionary "
            "{name: (before, after)} at the top level of its test module."
        )
    return found


def model_lines(model: ModelProto) -> str:
    """Renders a model for a reader: inputs, constants, nodes, outputs, one by line."""
    return pretty_onnx(model.graph)
