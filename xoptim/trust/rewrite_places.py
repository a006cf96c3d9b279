"""Records the places of rewrites, to count those in a part of the model."""

from __future__ import annotations

from ..engine.engine import Engine
from ..engine.observers import Observer
from ..engine.outcomes import Application
from .windows.certificates import RIGHT, ROUNDS


class RewritePlaces(Observer):
    """Records, for each rewrite, the results of the nodes it removes and writes.

    ::

        places = RewritePlaces()
        options = OptimizationOptions(patterns="default", features=[places])
        GraphBuilder(model, optimization_options=options).to_onnx()
        print(len(places.results))
    """

    def __init__(self) -> None:
        self.results: list[frozenset[str]] = []
        #: whether each rewrite is right in its own window, False if it was not checked
        self.right: list[bool] = []

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Records a rewrite."""
        if not done.refusal:
            records = [*done.removed, *done.added]
            self.results.append(frozenset(n for r in records for n in r.outputs if n))
            self.right.append(done.certificate.get("verdict") in (RIGHT, ROUNDS))
