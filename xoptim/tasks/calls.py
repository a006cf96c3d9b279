"""The functions a user calls first: ``xoptim.optimize``, ``xoptim.verify``...

Each is a subcommand of the command line as well.
"""

from __future__ import annotations

from ..linting.model_check import check_model as check
from ..reports.model_diff import ModelDiff, diff_models
from ..surgery.opset_conversion import convert_opset as convert
from ..trust.bisection import bisect_rewrites as bisect
from ..trust.layers import compare_layers as compare
from ..trust.sessions.runtime import Model, container_of
from ..trust.verification import verify_models as verify
from .batch import batch
from .explain import explain_model as explain
from .explain import near_misses
from .extract import extract_model as extract
from .measure import measure_models as measure
from .optimize import optimize
from .summary import summarize as summary

__all__ = [
    "batch",
    "bisect",
    "check",
    "compare",
    "convert",
    "diff",
    "explain",
    "extract",
    "measure",
    "near_misses",
    "optimize",
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
