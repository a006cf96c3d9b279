"""The wrong rewrites on real models: each is caught in its window and named by a bisection.

``python -m ut_xoptim.trust.windows.wrong_table MODEL.onnx ...`` prints the table, in some minutes, from the
folder ``_unittests``; the models are those of ``.models`` if none is given.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import onnx
from ut_xoptim.trust.windows.wrong_rewrites import WRONG, Wrong

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xoptim.trust.bisection import find_wrong_rewrite
from xoptim.trust.windows.validation import Validation, WrongRewriteError

#: the rewrite never applies; it breaks a rule of the engine; its window shows that it is wrong
NEVER, REFUSED, CAUGHT = "not applicable", "refused", "caught"
#: it applies and nothing shows that it is wrong; a bisection blames nothing, or something else
MISSED, UNNAMED = "missed", "not named"
KINDS = (NEVER, REFUSED, CAUGHT, MISSED, UNNAMED)
MODELS = Path(__file__).parents[4] / ".models"


def judge(model: onnx.ModelProto, wrong: Wrong) -> tuple[str, str]:
    """The outcome of a wrong rewrite on a model, and why it is one.

    :param model: a model
    :param wrong: the rewrite
    """
    validation = Validation()
    options = OptimizationOptions(patterns=[wrong.pattern], features=[validation], max_iter=2)
    try:
        GraphBuilder(model, infer_shapes_options=True, optimization_options=options).optimize()
    except PatternError as error:
        kind, reason = CAUGHT if isinstance(error, WrongRewriteError) else REFUSED, str(error)
    else:
        counts = validation.summary.counts()
        return (MISSED, f"its windows are {counts}") if counts else (NEVER, "")
    found = find_wrong_rewrite(model, [wrong.pattern])
    if found is None or found.patterns != [wrong.name]:
        return UNNAMED, "nothing is" if found is None else f"{found.patterns} are"
    return kind, reason


def main() -> int:
    """Judges the rewrites on the models, prints a row for each rewrite that applies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, default=sorted(MODELS.rglob("*.onnx")))
    parser.add_argument("--rewrites", nargs="+", default=[wrong.name for wrong in WRONG])
    arguments = parser.parse_args()
    models = [onnx.load(path) for path in arguments.models]
    totals: Counter[str] = Counter()
    for i, path in enumerate(arguments.models):
        print(f"model {i}: {path.stem}")
    print("rewrite", *range(len(models)), sep=" | ", flush=True)
    for wrong in WRONG:
        if wrong.name in arguments.rewrites:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cells = [judge(model, wrong) for model in models]
            kinds = [kind for kind, _ in cells]
            totals.update(kinds)
            if set(kinds) != {NEVER}:
                print(wrong.name, *kinds, sep=" | ", flush=True)
            for i, (kind, reason) in enumerate(cells):
                if kind in (MISSED, UNNAMED):
                    print(f"{wrong.name} on model {i}: {kind}, {reason}"[:300], flush=True)
    print(", ".join(f"{totals[kind]} {kind}" for kind in KINDS))
    return int(any(totals[kind] for kind in (MISSED, UNNAMED)))


if __name__ == "__main__":
    sys.exit(main())
