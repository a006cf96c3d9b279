"""Aliases: other names of a pattern."""

from __future__ import annotations

import pickle

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization, get_pattern, get_pattern_list
from xoptim.catalogue import registry, rewrite
from xoptim.catalogue.database import ProxyDatabase, RewriteDatabase
from xoptim.catalogue.order import check_names, in_order
from xoptim.catalogue.registry import all_patterns, pattern_database
from xoptim.declarative import rule
from xoptim.testing import model_from_text, optimize_with

#: alias -> the pattern that does its work
ALIASES = {
    "AddZeros": "FilledOperand",
    "BatchNormalization": "Identity",
    "Cast": "Identity",
    "CastCastBinary": "ComputationCastOpCast",
    "CastComplement": "CastCompare",
    "ComplexMulConj": "ComplexMul",
    "ConcatGather": "GatherConcat",
    "ContribRotaryEmbedding3D": "RotaryEmbedding3D",
    "Dropout": "Identity",
    "Expand": "Identity",
    "ExpandBroadcast": "ShapeBasedExpandBroadcast",
    "ExpandSwap": "ShapeBasedExpandSwap",
    "ExpandWhereSwap": "ShapeBasedExpandSwap",
    "FlattenReshape": "ReshapeReshape",
    "FunctionInterleavedRotaryEmbedding": "FunctionHalfRotaryEmbedding",
    "FunctionRotaryEmbeddingParts": "FunctionHalfRotaryEmbedding",
    "GatherSqueeze": "GatherEach",
    "GeluOrt": "GeluErf",
    "InstanceNormalizationScale": "BatchNormalizationAffine",
    "LogSoftmaxDefinition": "SoftmaxDefinition",
    "MatMulReshapeNormalization": "MatMulAddMul",
    "MissingCosSin": "MissingType",
    "MissingRandomNormal": "MissingRandomUniform",
    "MissingRange": "MissingType",
    "MissingReduceMax": "MissingType",
    "MissingTopK": "MissingType",
    "MulMulMatMul": "MulMulMulScalar",
    "MulUnsqueezeUnsqueeze": "SqueezeAdd",
    "NotWhere": "NotNot",
    "ReduceUnsqueeze": "ReduceReshape",
    "Reshape": "Identity",
    "ReshapeGemmReshape": "ReshapeGemm",
    "ReshapeMatMulReshape": "MatMulReshape2Of3",
    "ReshapeReshapeBinary": "Reshape2Of3",
    "ReshapeSpaceToDepth": "ReshapeDepthToSpace",
    "ReshapeUnsqueeze": "ReshapeSqueeze",
    "SameChildrenFromInput": "SameChildren",
    "ShapeBasedConcatExpand": "ShapeBasedStaticExpand",
    "ShapeBasedExpandCastWhereSwap": "ShapeBasedExpandSwap",
    "ShapeBasedIdentity": "Identity",
    "ShapeBasedSameChildren": "SameChildren",
    "ShapedBasedReshape": "Identity",
    "SimplifiedLayerNormalizationMul": "RMSNormalizationMul",
    "SkipSimplifiedLayerNormalizationMul": "RMSNormalizationMul",
    "SqueezeBinaryUnsqueeze": "SqueezedElementwise",
    "SqueezeFlatten": "ReshapeReshape",
    "SwapExpandReshape": "ShapeBasedExpandSwap",
    "SwapExpandUnsqueeze": "ShapeBasedExpandSwap",
    "SwitchReshapeActivation": "SwapUnary",
    "UnsqueezeEqual": "SqueezedElementwise",
    "UnsqueezeOrSqueezeReshape": "ReshapeReshape",
    "UnsqueezeReshape": "ReshapeReshape",
    "UnsqueezeUnsqueeze": "SqueezeUnsqueeze",
}


def test_every_alias() -> None:
    found = {a: cls.name for cls in all_patterns().values() for a in cls.aliases}
    assert found == ALIASES and not set(found) & set(all_patterns())
    assert set(pattern_database().names()) == {*all_patterns(), *ALIASES}


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_the_pattern(alias: str) -> None:
    name = ALIASES[alias]
    assert get_pattern(alias) == get_pattern(f"{alias}Pattern") == get_pattern(name)
    assert get_pattern(alias).name == name
    assert get_pattern_list(f"{alias}+{name}") == [get_pattern(name)]
    sets = ("default", "onnxruntime", "approximate")
    ours = next(tag for tag in sets if tag in get_pattern(name).tags)
    assert get_pattern_list(f"{ours}&{alias}") == [get_pattern(name)]
    without = get_pattern_list(f"{ours}-{alias}")
    assert without == get_pattern_list(f"{ours}-{name}")
    assert len(without) == len(get_pattern_list(ours)) - 1
    # the order of the others may depend on the one that is taken away afterwards
    assert {p.name for p in get_pattern_list(ours, alias)} == {p.name for p in without}
    assert pattern_database().find(alias) is pattern_database().find(name)


def test_statistics_have_the_name_of_the_pattern() -> None:
    text = """agraph (float[1,3] x, float[4,3] z) => (float[4,3] y) <int64[2] s = {4, 1}> {
        e = Expand(x, s) y = Sub(e, z) }"""
    model, statistics, _ = optimize_with(model_from_text(text), "ExpandBroadcast")
    assert [n.op_type for n in model.graph.node] == ["Sub"]
    applied = {row["pattern"] for row in statistics if row.get("added")}
    assert applied == {"apply_ShapeBasedExpandBroadcast"}


def test_pickle() -> None:
    pattern = pickle.loads(pickle.dumps(get_pattern("ExpandBroadcast")))
    assert pattern == get_pattern("ShapeBasedExpandBroadcast")
    # pickled when the alias was a pattern
    assert registry._restored("ExpandBroadcast", {"verbose": 1}) == pattern


def test_close_names_and_parameters() -> None:
    with pytest.raises(OptionError, match="Did you mean ReshapeReshapeBinary"):
        get_pattern("ReshapeReshapeBinaryy")
    assert get_pattern("ExpandBroadcast(priority=3)").priority == 3


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty database, filled by the test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.empty_database())


@pytest.mark.usefixtures("empty")
def test_declared_by_each_decorator() -> None:
    @rewrite("toy", root="Neg", aliases=("Old", "Older"))
    def first(g: object, node: object) -> None: ...

    @rule("toy", "Not(Not(x)) -> x", aliases="Former")
    def second(g: object) -> None: ...

    registry.register_pattern("toy", aliases=["Past"])(
        type("ThirdPattern", (PatternOptimization,), {})
    )
    found = {a: cls.name for cls in all_patterns().values() for a in cls.aliases}
    assert found == {"Old": "First", "Older": "First", "Former": "Second", "Past": "Third"}
    for alias in ("Old", "Past"):
        with pytest.raises(OptionError, match=f"'{alias}' is already registered"):
            rewrite("toy", root="Neg", name=alias)(lambda g, node: None)
    with pytest.raises(OptionError, match="'First' is already registered"):
        rewrite("toy", root="Neg", name="Fourth", aliases="First")(lambda g, node: None)
    with pytest.raises(OptionError, match="'toy' is a tag"):
        rewrite("toy", root="Neg", name="Fourth", aliases="toy")(lambda g, node: None)
    with pytest.raises(OptionError, match="'Old' is the name of a rewrite, it cannot be a tag"):
        rewrite("Old", root="Neg", name="Fourth")(lambda g, node: None)


def test_before_and_behind_take_an_alias() -> None:
    one = rewrite(root="Neg", aliases="Old", name="One")(lambda g, node: None)
    zero = rewrite(root="Neg", behind="Old", name="Zero")(lambda g, node: None)
    two = rewrite(root="Neg", before="Old", name="Two")(lambda g, node: None)
    assert in_order([zero, one, two]) == [two, one, zero]
    check_names([zero, one, two], ())
    with pytest.raises(OptionError, match="Unknown pattern 'Old'"):
        check_names([zero, two], ())


def test_a_database_of_somebody() -> None:
    database = RewriteDatabase("mine")
    inner = RewriteDatabase("inner")
    database.register("inner", inner)
    cls = type("OnePattern", (PatternOptimization,), {})
    ProxyDatabase(inner).add("One", cls, ("small",), aliases=("Old",))
    for word in ("One", "Old", "OnePattern", "OldPattern"):
        assert word in database and database[word] is cls
        assert database.select(word) == [cls] and database.select(f"small-{word}") == []
    assert database.names() == ["One", "Old"]
    copied = database.copy()
    database.remove("Old")
    assert "Old" not in database and "OldPattern" not in database and "One" not in database
    assert copied.select("Old") == [cls]
