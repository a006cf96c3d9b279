"""Operators of domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from ...dims import Dim, prod
from ...facts.facts import ResultFacts
from ..common import FLOAT, INT64, STRING, facts_like, refuses_negative, same_as_first, several
from ..context import ShapeContext
from ..moving.creation import type_of_array
from ..shipped import shipped_function, shipped_table

ML = "ai.onnx.ml"


def rows(ctx: ShapeContext) -> Dim:
    """Number of observations: the first dimension of a matrix, 1 for a vector."""
    shape = ctx.shape(0)
    if shape is None:
        return 1 if ctx.rank(0) == 1 else ctx.new_dim("batch")
    return shape[0] if len(shape) > 1 else 1


def _float_like(ctx: ShapeContext) -> ResultFacts:
    """Float result of the shape of the input."""
    return facts_like(ctx.facts(0), FLOAT)


shipped_table([("Binarizer", same_as_first), ("Imputer", same_as_first)], ML)
shipped_table([("Normalizer", _float_like), ("Scaler", _float_like)], ML)


@shipped_function("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(ctx: ShapeContext) -> ResultFacts:
    """Elements picked along the last axis; a vector becomes one row."""
    facts = ctx.facts(0)
    if not facts.shape:
        return ResultFacts(facts.type)
    indices = ctx.shape(1)
    picked = ctx.new_dim("features") if indices is None else prod(indices)
    head = facts.shape[:-1] if len(facts.shape) > 1 else (1,)
    return ResultFacts(facts.type, (*head, picked))


#: attributes of the values of LabelEncoder and the type they give
_VALUES = {
    "values_strings": STRING,
    "values_int64s": INT64,
    "values_floats": FLOAT,
}


@shipped_function("LabelEncoder", domain=ML)
def label_encoder_1(ctx: ShapeContext) -> ResultFacts:
    """LabelEncoder in opset 1: strings become integers and the other way round."""
    return category_mapper(ctx)


@shipped_function("LabelEncoder", domain=ML, since=2)
def label_encoder(ctx: ShapeContext) -> ResultFacts:
    """LabelEncoder: the type is the one of the values."""
    facts = ctx.facts(0)
    tensor = ctx.attr("values_tensor")
    if isinstance(tensor, np.ndarray):
        return facts_like(facts, type_of_array(tensor))
    for name, elem_type in _VALUES.items():
        if ctx.attr(name) is not None:
            return facts_like(facts, elem_type)
    return facts_like(facts, 0)


@shipped_function("CategoryMapper", domain=ML)
def category_mapper(ctx: ShapeContext) -> ResultFacts:
    """CategoryMapper: strings become integers and the other way round."""
    facts = ctx.facts(0)
    swapped: dict[int, int] = {STRING: INT64, INT64: STRING}
    return facts_like(facts, swapped.get(facts.type, 0))


@shipped_function("CastMap", domain=ML)
@refuses_negative
def cast_map(ctx: ShapeContext) -> ResultFacts:
    """CastMap: one row."""
    names = {"TO_FLOAT": FLOAT, "TO_STRING": STRING, "TO_INT64": INT64}
    elem_type = names.get(ctx.attr("cast_to", "TO_FLOAT"), 0)
    sparse = ctx.attr("map_form", "DENSE") == "SPARSE"
    return ResultFacts(elem_type, (1, ctx.attr("max_map", 1) if sparse else ctx.new_dim("map")))


@shipped_function("DictVectorizer", domain=ML)
def dict_vectorizer(ctx: ShapeContext) -> ResultFacts:
    """DictVectorizer: one column for each word; the type is hidden in the map."""
    words = ctx.attr("string_vocabulary") or ctx.attr("int64_vocabulary") or []
    return ResultFacts(0, (1, len(words)) if words else None, 2)


@shipped_function("FeatureVectorizer", domain=ML)
@refuses_negative
def feature_vectorizer(ctx: ShapeContext) -> ResultFacts:
    """FeatureVectorizer: columns are joined."""
    sizes = ctx.attr("inputdimensions")
    columns = ctx.new_dim("features") if not sizes else sum(sizes)
    return ResultFacts(FLOAT, (rows(ctx), columns))


@shipped_function("OneHotEncoder", domain=ML)
def one_hot_encoder(ctx: ShapeContext) -> ResultFacts:
    """OneHotEncoder: one more axis for the categories."""
    facts = ctx.facts(0)
    categories = ctx.attr("cats_int64s") or ctx.attr("cats_strings") or []
    if facts.shape is None:
        return ResultFacts(FLOAT, None, None if facts.rank is None else facts.rank + 1)
    return ResultFacts(FLOAT, (*facts.shape, len(categories)))


@shipped_function("LinearRegressor", "SVMRegressor", domain=ML)
@refuses_negative
def regressor(ctx: ShapeContext) -> ResultFacts:
    """One column for each target."""
    targets = ctx.attr("targets", 1) if ctx.op_type == "LinearRegressor" else 1
    return ResultFacts(FLOAT, (rows(ctx), targets))


@shipped_function("TreeEnsemble", "TreeEnsembleRegressor", domain=ML)
@refuses_negative
def tree_ensemble(ctx: ShapeContext) -> ResultFacts:
    """TreeEnsemble has the type of its input, TreeEnsembleRegressor is always float."""
    targets = ctx.attr("n_targets")
    columns = ctx.new_dim("targets") if targets is None else targets
    elem_type = ctx.type(0) if ctx.op_type == "TreeEnsemble" else FLOAT
    return ResultFacts(elem_type, (rows(ctx), columns))


def _labels(ctx: ShapeContext) -> tuple[int, int]:
    """Type of the labels of a classifier and their number, 0 if it is unknown."""
    for elem_type, names in (
        (STRING, ("classlabels_strings",)),
        (INT64, ("classlabels_int64s", "classlabels_ints")),
    ):
        for name in names:
            labels = ctx.attr(name)
            if labels:
                return elem_type, len(labels)
    return 0, 0


def _classifier(ctx: ShapeContext, columns: Dim | None) -> list[ResultFacts]:
    elem_type, _ = _labels(ctx)
    batch = rows(ctx)
    width = ctx.new_dim("classes") if columns is None else columns
    return several(ctx, ResultFacts(elem_type, (batch,)), ResultFacts(FLOAT, (batch, width)))


@shipped_function("TreeEnsembleClassifier", domain=ML)
def tree_classifier(ctx: ShapeContext) -> list[ResultFacts]:
    """TreeEnsembleClassifier: labels and scores."""
    _, count = _labels(ctx)
    return _classifier(ctx, count if count > 1 else None)


@shipped_function("LinearClassifier", domain=ML)
def linear_classifier(ctx: ShapeContext) -> list[ResultFacts]:
    """LinearClassifier: as many scores as intercepts, two when a binary classifier has one."""
    _, count = _labels(ctx)
    intercepts = len(ctx.attr("intercepts") or [])
    if intercepts == 1 and count == 2:
        return _classifier(ctx, 2)
    return _classifier(ctx, intercepts if intercepts > 1 and intercepts == count else None)


@shipped_function("SVMClassifier", domain=ML)
def svm_classifier(ctx: ShapeContext) -> list[ResultFacts]:
    """SVMClassifier: one score for each class when there are probabilities."""
    _, count = _labels(ctx)
    known = count > 1 and bool(ctx.attr("prob_a"))
    return _classifier(ctx, count if known else None)


@shipped_function("ZipMap", domain=ML)
def zip_map(ctx: ShapeContext) -> ResultFacts:
    """ZipMap: a sequence of maps."""
    return ResultFacts(sequence=ResultFacts())
