"""Names of operators in the declaration of a pattern: a typo matches nothing, without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import onnx

from xbuilder.errors import OptionError
from xbuilder.operators.domains import MICROSOFT
from xbuilder.runtimes.kernel_table import shipped_kernels
from xbuilder.support.close_names import closest_names
from xbuilder.support.user_warnings import warn_user

#: operators onnxruntime has in the main domain, and onnx does not
_RUNTIME = frozenset({"SimplifiedLayerNormalization"})
#: the modules whose patterns a test checks, so that no process does it again
_TESTED = "xoptim.patterns"
#: declarations of a pattern that are types of operators
DECLARATIONS = ("roots", "after", "reads", "beyond", "read_by")


@lru_cache(maxsize=1 << 10)
def _is_known(op_type: str) -> bool:
    return op_type in _RUNTIME or onnx.defs.has(op_type)  # its schema would be made to be dropped


def check_operators(owner: str, names: Iterable[str], form: str = "domain::Operator") -> None:
    """Checks that the operators of onnx exist. Those of another domain, `"domain::Operator"`, may
    be anything, nor is a name checked that ends with `*`. An operator of `com.microsoft` without a
    kernel is only warned of, when its name is close to another one.

    :param owner: what names them, for the message
    :param names: the names
    :param form: the way the owner writes an operator of another domain
    :raises OptionError: one does not exist
    """
    for name in names:
        domain, _, op_type = name.rpartition("::")
        if name.endswith("*") or (not domain and _is_known(op_type)):
            continue
        if domain == MICROSOFT:
            hint = close_operator(name)
            if hint:
                warn_user(f"{owner} names operator {name!r}, which onnxruntime does not have{hint}")
        elif (hint := close_operator(name)) is not None:
            place = f"of domain {domain!r}" if domain else "of the main domain"
            advice = "" if domain else f" One of another domain is written {form!r}."
            hint = hint or ", that onnx does not know."
            raise OptionError(f"{owner} names operator {op_type!r} {place}{hint}{advice}")


def is_tested(module: object) -> bool:
    """Whether the patterns of a module are those of this project, which a test checks.

    :param module: its name
    """
    return str(module).startswith(_TESTED)


def check_declared_operators(owner: str, declared: Mapping[str, object]) -> None:
    """Checks the operators that a pattern declares.

    :param owner: the pattern, for the message
    :param declared: the declarations, by name; those that are not tuples are not checked
    :raises OptionError: an operator does not exist
    """
    for word in DECLARATIONS:
        names = declared.get(word)
        if isinstance(names, tuple):
            check_operators(owner, names)


@lru_cache(maxsize=1 << 8)
def close_operator(name: str) -> str | None:
    """The end of the message about an operator that does not exist: `", did you mean Log?"`, empty
    without a close name.

    :param name: the operator, written as roots are
    :return: None if it exists, or if nothing tells
    """
    domain, _, op_type = name.rpartition("::")
    if op_type in _RUNTIME and not domain:
        return None
    if domain == MICROSOFT:
        tables = (shipped_kernels(processor).operators for processor in ("CPU", "CUDA"))
        known = {key.rpartition("::")[2] for t in tables for key in t if key.startswith(domain)}
    elif onnx.defs.has(op_type, domain):
        return None  # the usual case
    else:
        schemas = onnx.defs.get_all_schemas_with_history()
        known = {s.name for s in schemas if s.domain == domain}
    if not known or op_type in known:
        return None
    close = closest_names(op_type, known)
    return f", did you mean {' or '.join(close)}?" if close else ""


def check_call(owner: str, name: str, operands: int, attributes: Iterable[str]) -> None:
    """Checks that an operator of the main domain accepts operands and attributes at some opset: a
    node that onnx refuses matches nothing.

    :param owner: what names them, for the message
    :param name: the operator
    :param operands: number of inputs
    :param attributes: names of attributes
    :raises OptionError: no version of the operator accepts them
    """
    most = 0
    unknown = list(attributes)
    known: dict[str, None] = {}
    for schema in _versions(name):
        most = max(most, schema.max_input)
        unknown = [word for word in unknown if word not in schema.attributes]
        if operands <= most and not unknown:
            return
        known.update(dict.fromkeys(schema.attributes))
    if unknown:
        close = closest_names(unknown[0], known, 1)
        newest = ", ".join(onnx.defs.get_schema(name).attributes)
        hint = f"did you mean {close[0]}?" if close else f"it has {newest or 'none'}."
        raise OptionError(f"{owner} gives {name} an attribute {unknown[0]!r}, {hint}")
    if known or most:
        raise OptionError(f"{owner} gives {name} {operands} inputs, it has {most} at most.")


def _versions(name: str) -> Iterator[onnx.defs.OpSchema]:
    """The versions of an operator, the newest first."""
    if not onnx.defs.has(name):
        return
    schema = onnx.defs.get_schema(name)
    yield schema
    while schema.since_version > 1 and onnx.defs.has(name, schema.since_version - 1):
        schema = onnx.defs.get_schema(name, schema.since_version - 1)
        yield schema
