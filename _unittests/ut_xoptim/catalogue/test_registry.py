"""The database of patterns, and the names users may write."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import PatternOptimization, get_pattern, get_pattern_list, register_pattern
from xoptim.catalogue import registry
from xoptim.catalogue.database_query import RewriteDatabaseQuery
from xoptim.catalogue.phases import PHASES
from xoptim.catalogue.registry import all_patterns, pattern_database

PRECISIONS = {"exact", "rounding", "approximate"}


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "PATTERNS", registry.empty_database())
    monkeypatch.setattr(registry, "load_patterns", lambda: None)
    yield


def make(name: str) -> type[PatternOptimization]:
    return type(name, (PatternOptimization,), {})


@pytest.mark.usefixtures("empty")
def test_register() -> None:
    cls = register_pattern(
        "default", "toy", roots=("Add", "Mul"), priority=3, min_opset=13, precision="rounding"
    )(make("OnePattern"))
    assert cls.tags == ("default", "toy", "rounding") and cls.precision == "rounding"
    assert cls.roots == ("Add", "Mul") and cls.priority == 3 and cls.min_opset == 13
    pattern = cls()
    assert (pattern.name, pattern.priority, pattern.min_opset) == ("One", 3, 13)
    assert all_patterns() == {"One": cls}


@pytest.mark.usefixtures("empty")
def test_roots_of_the_class_are_kept() -> None:
    cls = make("TwoPattern")
    cls.roots = ("Neg",)
    assert register_pattern("toy")(cls).roots == ("Neg",)


@pytest.mark.usefixtures("empty")
def test_refusals() -> None:
    register_pattern("toy")(make("OnePattern"))
    with pytest.raises(OptionError, match="register_pattern expects a class, not 3"):
        register_pattern("toy")(3)
    with pytest.raises(OptionError, match="'One' is already registered"):
        register_pattern("toy")(make("OnePattern"))
    with pytest.raises(OptionError, match="Precision of 'Two'"):
        register_pattern("toy", precision="wild")(make("TwoPattern"))
    for tag in ("default", "onnxruntime"):
        with pytest.raises(OptionError, match="approximate, it cannot be in a default set"):
            register_pattern(tag, precision="approximate")(make("TwoPattern"))
    assert list(all_patterns()) == ["One"]


@pytest.mark.usefixtures("empty")
def test_words_designate_one_thing() -> None:
    register_pattern("toy")(make("OnePattern"))
    with pytest.raises(OptionError, match="'toy' is a tag, it cannot be the name"):
        register_pattern("other")(make("toy"))
    with pytest.raises(OptionError, match="'One' is the name of a rewrite, it cannot be a tag"):
        register_pattern("One")(make("TwoPattern"))
    with pytest.raises(OptionError, match="'merge' is already registered"):
        register_pattern("toy")(make("merge"))


@pytest.mark.usefixtures("empty")
def test_queries_and_tags() -> None:
    a = register_pattern("default")(make("APattern"))
    b = register_pattern("default", "toy", precision="rounding")(make("BPattern"))
    c = register_pattern("approximate", precision="approximate")(make("CPattern"))
    database = pattern_database()
    assert database.select(RewriteDatabaseQuery(None)) == [a, b, c]
    assert database.select("default") == [a, b]
    assert database.select("default&exact") == database.select("default-toy") == [a]
    found = database.tags()
    assert found.pop("ml") == [], "known sets are listed even when they are empty"
    assert {k: v for k, v in found.items() if v} == {
        "default": ["A", "B"],
        "exact": ["A"],
        "toy": ["B"],
        "rounding": ["B"],
        "approximate": ["C"],
        "specialize": ["A", "B", "C"],
    }


@pytest.mark.usefixtures("empty")
def test_phase_of_a_pattern() -> None:
    cls = register_pattern("default", "merge")(make("OnePattern"))
    assert cls.phase == "merge" and cls.tags == ("default", "exact")
    assert pattern_database()["merge"].select("One") == [cls]
    assert register_pattern("default")(make("TwoPattern")).phase == "specialize"
    with pytest.raises(OptionError, match="has one phase, not"):
        register_pattern("merge", "stabilize")(make("ThreePattern"))


def test_every_pattern_has_one_phase() -> None:
    database = pattern_database()
    assert [e.name for e in database.entries()] == list(PHASES)
    positions = [e.position for e in database.entries()]
    assert positions == sorted(positions) == [p.position for p in PHASES.values()]
    by_phase = [database[phase].select(RewriteDatabaseQuery(None)) for phase in PHASES]
    assert all(by_phase), "no phase is empty"
    found = [c for row in by_phase for c in row]
    assert len(found) == len(set(found)) and set(found) == set(all_patterns().values())
    for phase, row in zip(PHASES, by_phase, strict=True):
        assert {c.phase for c in row} == {phase}


@pytest.mark.parametrize("name", ["default", "onnxruntime"])
def test_sets_are_made_of_phases(name: str) -> None:
    database = pattern_database()
    parts = [database.select(f"{name}&{phase}") for phase in PHASES]
    whole = database.select(name)
    found = [c for part in parts for c in part]
    assert whole == database.select(RewriteDatabaseQuery(PHASES, require=name))
    assert len(found) == len(whole) and set(found) == set(whole)
    assert all(part == [c for c in whole if c in part] for part in parts), "one order"


def test_every_family_is_loaded() -> None:
    found = all_patterns()
    for name in ("Gelu", "LayerNormalization", "FusedMatMul", "SkipLayerNormalization"):
        assert name in found, name
    assert list(all_patterns()) == list(found), "a fixed order"


#: imports families in another order, and registers one before the others, then prints the order
_SHUFFLED = """
import pkgutil, random, sys
from importlib import import_module
import xoptim.{0}
seed = int(sys.argv[1])
names = [
    i.name
    for p in ("xoptim.patterns", "xoptim.patterns_ort", "xoptim.patterns_ml", "xoptim.patterns_cuda")
    for i in pkgutil.walk_packages(import_module(p).__path__, f"{{p}}.")
]
random.Random(seed).shuffle(names)
from xoptim import PatternOptimization, register_pattern
register_pattern("default", roots=("Add",))(type("MinePattern", (PatternOptimization,), {{}}))
for name in names[: len(names) * seed // 3]:
    import_module(name)
from xoptim.catalogue.registry import all_patterns
print(*all_patterns())
"""


@pytest.mark.parametrize(("seed", "module"), [(1, "toolkit"), (2, "cli.main"), (3, "testing")])
def test_order_does_not_depend_on_imports(seed: int, module: str) -> None:
    """Families are imported in another order, some of them or all of them; a pattern of somebody
    comes after those of the project of its level and phase even if it is registered before."""
    command = [sys.executable, "-c", _SHUFFLED.format(module), str(seed)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [e.rewrite for e in pattern_database() if e.rewrite.__module__.startswith("xoptim.")]
    ordered = [cls.name for cls in rows]
    like_mine = [c.name for c in rows if (c.priority, c.phase) == (1, "specialize")]
    ordered.insert(ordered.index(like_mine[-1]) + 1, "Mine")
    assert found.stdout.split() == ordered and len(rows) > 100


def test_every_pattern_is_well_formed() -> None:
    for name, cls in all_patterns().items():
        assert cls.__name__ == f"{name}Pattern"
        assert cls.precision in PRECISIONS and cls.precision in cls.tags
        assert cls.__doc__ and cls.__doc__.strip(), name
        pattern = cls()
        assert pattern == cls() and hash(pattern) == hash(cls())
        assert pattern.roots and all(isinstance(r, str) for r in pattern.roots)
        assert 0 <= pattern.priority <= 10 and pattern.min_opset >= 1


def test_patterns_are_pickled_by_name() -> None:
    found = get_pattern_list(RewriteDatabaseQuery(None))
    assert pickle.loads(pickle.dumps(found)) == found
    cast = get_pattern("Cast")
    cast.priority = 7
    assert pickle.loads(pickle.dumps(cast)).priority == copy.deepcopy(cast).priority == 7
    options = OptimizationOptions(patterns="default-Cast", verbose=1)
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options


@pytest.mark.usefixtures("empty")
def test_a_pattern_that_is_not_registered_is_not_restored() -> None:
    cls = register_pattern("toy")(make("OnePattern"))
    content = pickle.dumps(cls())
    assert isinstance(pickle.loads(content), cls)
    registry.PATTERNS.remove("One")
    with pytest.raises(OptionError, match="'One' is not registered here, import its module"):
        pickle.loads(content)


def test_rewrites_of_one_model_stand_apart() -> None:
    """They have the tag `model` and a folder, and no other rewrite has."""
    tagged = {cls.name for cls in all_patterns().values() if "model" in cls.tags}
    folder = {c.name for c in all_patterns().values() if ".for_models." in c.__module__}
    assert tagged == folder and len(tagged) > 10
    assert tagged <= {p.name for p in get_pattern_list("default+onnxruntime")}
    assert not tagged & {p.name for p in get_pattern_list("default+onnxruntime-model")}


# -- every name of a rewrite users may write is a pattern, in its set

#: set -> names: what users of such a database know, "none" is what no set has
NAMES = {
    "default": """
        AttentionGQA BatchNormalization BatchNormalizationTraining Cast CastCast
        CastLayerNormalizationCast ClipClip ConcatEmpty ConcatGather ConcatReshape
        ConcatTwiceUnary ConstantToInitializer ConvBiasNull Dropout Expand ExpandBroadcast
        ExpandSwap ExpandUnsqueezeExpand FunctionAttention FunctionAttentionGQA
        FunctionCausalMask FunctionCausalMaskMulAdd FunctionCosSinCache
        FunctionHalfRotaryEmbedding GatherConcat GatherGather GatherShape GathersSplit Gelu
        GemmTranspose Identity LayerNormalization LayerNormalizationScale LeakyRelu MatMulAdd
        MatMulReshape2Of3 MaxRelu MulMulMatMul MulMulMulScalar MulUnsqueezeUnsqueeze NotNot
        NotWhere PadConv RMSNormalization RMSNormalizationMul ReduceArgTopK ReduceReshape
        Reshape Reshape2Of3 ReshapeMatMulReshape ReshapeReshape ReshapeReshapeBinary
        ReshapeSqueeze RotaryConcatPart RotaryEmbedding SameChildren SameChildrenFromInput
        SequenceConstructAt ShapeBasedConcatExpand ShapeBasedEditDistanceReshape
        ShapeBasedExpandBroadcast ShapeBasedExpandBroadcastMatMul ShapeBasedExpandCastWhereSwap
        ShapeBasedExpandSwap ShapeBasedIdentity ShapeBasedMatMulToMul ShapeBasedReshapeIsSqueeze
        ShapeBasedSameChildren ShapeBasedShapeShapeAdd ShapeBasedStaticExpand ShapeTranspose
        ShapedBasedReshape SliceSlice SlicesSplit SoftmaxCrossEntropyLossCast SplitConcat
        SplitToSequenceSequenceAt SqueezeAdd SqueezeBinaryUnsqueeze SqueezeUnsqueeze
        StaticConcatReshape SwapExpandReshape SwapExpandUnsqueeze SwapRangeAddScalar SwapUnary
        SwapUnsqueezeTranspose SwitchOrderBinary SwitchReshapeActivation TransposeEqualReshape
        TransposeGather TransposeMatMul TransposeReshapeMatMul TransposeReshapeTranspose
        TransposeTranspose UnsqueezeEqual UnsqueezeOrSqueezeReshape UnsqueezeReshape
        UnsqueezeShape UnsqueezeUnsqueeze WhereAdd
    """,
    "onnxruntime": """
        Attention3D BiasDropout BiasGelu BiasSoftmax BiasSplitGelu CausalConvWithState ComplexMul
        ComplexMulConj ContribGemmaRotaryEmbedding ContribRotaryEmbedding
        ContribRotaryEmbedding3D DecoderAttention EmbedLayerNormalization FusedConv FusedGemm
        FusedMatMul FusedMatMulDiv FusedMatMulTranspose FusedMatMulx2 GatedRelativePositionBias GeluErf
        GeluOrt GreedySearch GroupQueryAttention3D LinearAttention MissingCosSin MissingRange
        MissingReduceMax MissingTopK MoE MultiHeadAttention3D OrtBatchNormalizationTraining
        QuickGelu RelativePositionBias ReshapeGemm ReshapeGemmReshape
        SimplifiedLayerNormalization SimplifiedLayerNormalizationMul SkipLayerNormalization
        SkipSimplifiedLayerNormalization SkipSimplifiedLayerNormalizationMul
        TransposeFusedMatMulB
    """,
    "approximate": """
        CastCastBinary CastOpCast ComputationCastOpCast FastGelu ReduceSumNormalize Sub1Mul
    """,
    "experimental": """
        AddAddMulMul AddAddMulMulBroadcast AddMul AddMulBroadcast AddMulSharedInput
        AddMulSharedInputBroadcast AddMulTranspose ConstantOfShapeScatterND MaskedShapeScatterND
        MulSigmoid NegXplus1 ReplaceZero SimpleRotary SubMul SubMulBroadcast TransposeCast
        TriMatrix
    """,
    "investigation": """
        BinaryInvestigation FunctionPackedMatMul FunctionPowTanh FunctionSplitRotaryMul
    """,
    "ml": """
        TreeEnsembleRegressorConcat TreeEnsembleRegressorMul
    """,
    "fix": """
        AddReductionScatterND
    """,
    "none": """
        AlmostDoNothing GatherGrad SoftmaxGrad
    """,
}
ROWS = [(tag, name) for tag, names in NAMES.items() for name in names.split()]


@pytest.mark.parametrize(("tag", "name"), ROWS)
def test_name(tag: str, name: str) -> None:
    pattern = get_pattern(name)
    assert name in (pattern.name, *pattern.aliases)
    assert get_pattern(f"{name}Pattern") == pattern
    sets = set(pattern.tags) - {"exact", "rounding", "approximate"}
    assert (tag in pattern.tags) if tag != "none" else not sets


@pytest.mark.parametrize("tag", [tag for tag in NAMES if tag != "none"])
def test_a_set_holds_its_names(tag: str) -> None:
    found = {name for p in get_pattern_list(tag) for name in (p.name, *p.aliases)}
    assert set(NAMES[tag].split()) <= found


def test_names_are_given_once() -> None:
    assert len({name for _, name in ROWS}) == len(ROWS)
