"""Names of operators in the declaration of a pattern: a typo matches nothing, without a word."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import onnx

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

#: operators onnxruntime has in the main domain, and onnx does not
_RUNTIME = frozenset({"SimplifiedLayerNormalization"})


@lru_cache(maxsize=1 << 10)
def _is_known(op_type: str) -> bool:
    return op_type in _RUNTIME or onnx.defs.has(op_type)  # its schema would be made to be dropped


def check_operators(owner: str, names: Iterable[str]) -> None:
    """Checks that the operators of the main domain exist. Those of another domain,
    `"domain::Operator"`, are not checked, nor those that end with `*`.

    :param owner: what names them, for the message
    :param names: the names
    :raises OptionError: one does not exist
    """
    for name in names:
        if "::" in name or name.endswith("*") or _is_known(name):
            continue
        known = {s.name for s in onnx.defs.get_all_schemas_with_history() if not s.domain}
        close = closest_names(name, known)
        hint = f"did you mean {' or '.join(close)}?" if close else "that onnx does not know."
        raise OptionError(
            f"{owner} names operator {name!r} of the main domain, {hint} One of another domain is "
            "written 'domain::Operator'."
        )
