"""Functions a user calls, ``xoptim.verify``, ``xoptim.compare``..., under the names of the
subcommands of the command line.
"""

from __future__ import annotations

from ..linting.model_check import check_model as check
from ..reports.model_diff import ModelDiff, diff_models
from ..surgery.opset_conversion import convert_opset as convert
from ..trust.bisection import bisect_rewrites as bisect
from ..trust.layers import compare_layers as compare
from ..trust.sessions.runtime import Model, container_of
from ..trust.verification import verify_models as verify
from .explain import explain_model as explain
from .extract import extract_model as extract
from .measure import measure_models as measure
from .summary import summarize as summary

__all__ = [
    "bisect",
    "check",
    "compare",
    "convert",
    "diff",
    "explain",
    "extract",
    "measure",
    "summary",
    "verify",
]


def diff(before: Model, after: Model) -> ModelDiff:
    """Lists what differs between two models: signature, opsets, weights, functions, nodes.

    Nothing is run. Weights are paired by content, nodes by what they compute, names come last.

    :param before: a model, its bytes, or its path
    :param after: the other one
    :return: the differences, ``same`` is true if there is none

    .. code-block:: python

        found = diff("model.onnx", "optimized.onnx")
        print(found.same, found.counts())
    """
    return diff_models(container_of(before), container_of(after))
