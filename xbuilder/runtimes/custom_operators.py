"""Libraries of custom operators that the sessions of onnxruntime load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ..errors import OptionError, short_message
from ..operators.domains import MICROSOFT

#: what onnxruntime says of an operator that no library defines, after its domain
_UNKNOWN = re.compile(r"([\w.]+):\w+\(-?\d+\) is not a registered function/op")
#: the domains whose operators are those of onnxruntime
KNOWN_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", MICROSOFT}
_LIBRARIES: ContextVar[tuple[str, ...]] = ContextVar("_LIBRARIES", default=())


def custom_libraries() -> tuple[str, ...]:
    """The paths of the libraries that a session loads now."""
    return _LIBRARIES.get()


@contextmanager
def custom_operators(*libraries: str | Path) -> Iterator[None]:
    """Every session of onnxruntime loads these libraries of custom operators, in this context.

    A model that has operators of its own can then be verified, measured, compared.

    :param libraries: files for ``SessionOptions.register_custom_ops_library``
    :raises OptionError: a file does not exist, or onnxruntime cannot load it

    .. code-block:: python

        import onnxruntime_extensions
        import xoptim

        with xoptim.custom_operators(onnxruntime_extensions.get_library_path()):
            xoptim.optimize("model.onnx", verify=True, measure=True)
    """
    known = dict.fromkeys((*custom_libraries(), *map(_checked, libraries)))
    token = _LIBRARIES.set(tuple(known))
    try:
        yield
    finally:
        _LIBRARIES.reset(token)


def is_unknown_operator(error: object) -> bool:
    """Whether a session does not open because nothing defines an operator.

    :param error: the error of onnxruntime
    """
    return _UNKNOWN.search(str(error)) is not None


def loading_message(error: object) -> str:
    """The message of an error of a session that does not open; it names the option that loads the
    operators of another domain.

    :param error: the error of onnxruntime
    """
    text = short_message(error)
    found = _UNKNOWN.search(text)
    if found is None or found[1] in KNOWN_DOMAINS:
        return text
    return f"{text}; --custom-ops, or xoptim.custom_operators, gives it the library of {found[1]}"


def _checked(library: str | Path) -> str:
    """The absolute path of a library, once onnxruntime loaded it."""
    import onnxruntime

    path = Path(library).absolute()
    if not path.is_file():
        raise OptionError(f"The library of custom operators {str(library)!r} is not a file.")
    try:
        onnxruntime.SessionOptions().register_custom_ops_library(str(path))
    except Exception as e:
        raise OptionError(
            f"{str(library)!r} is not a library of custom operators: {short_message(e)}"
        ) from e
    return str(path)
