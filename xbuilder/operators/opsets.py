"""Opsets and IR versions: the newest ones, and which IR version an opset needs."""

from __future__ import annotations

import onnx.helper as oh
from onnx import FunctionProto, ModelProto
from onnx.defs import onnx_opset_version

from ..errors import OptionError
from .domains import main_domain

#: IR version that came with each opset of the main domain
_IR_OF_OPSET: dict[int, int] = {}
for (_domain, _opset), _ir in oh.OP_SET_ID_VERSION_MAP.items():
    if _domain == "ai.onnx":
        _IR_OF_OPSET[_opset] = _ir


def newest_opset() -> int:
    """The newest opset the installed onnx package knows."""
    return onnx_opset_version()


def ir_version_for(opset: int) -> int:
    """The lowest IR version that allows an opset, at least 8 (named subgraphs, large tensors).

    The lowest is taken so that runtimes older than the onnx package still load the model.
    """
    return max([8, *(ir for known, ir in _IR_OF_OPSET.items() if known <= opset)])


def newest_ml() -> int:
    """The newest version of ai.onnx.ml the installed onnx package knows."""
    return max(v for (d, v) in oh.OP_SET_ID_VERSION_MAP if d == "ai.onnx.ml")


def check_opset(version: int) -> int:
    """Checks an opset of the main domain, and returns it.

    :raises OptionError: the installed onnx package does not know it
    """
    known = isinstance(version, int) and not isinstance(version, bool)
    if not known or not 1 <= version <= newest_opset():
        raise OptionError(
            f"Opset {version!r} is not one of the installed onnx package, "
            f"expected an integer between 1 and {newest_opset()}."
        )
    return version


def opsets_of(proto: ModelProto | FunctionProto) -> dict[str, int]:
    """Versions of the domains a model or a function imports."""
    return {main_domain(o.domain): o.version for o in proto.opset_import}
