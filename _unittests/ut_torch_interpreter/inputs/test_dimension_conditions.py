"""The assumptions of torch on dimensions are reported."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F

from torch_interpreter import to_onnx
from torch_interpreter.common.errors import ConversionError
from xbuilder.dims import prove_ge

Dim = torch.export.Dim
X = torch.randn(2, 8)


class Least(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] > 4 else x * 3


class Most(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] <= 16 else x * 3


class Blocks(torch.nn.Module):
    def forward(self, x):
        missing = -x.shape[1] % 4
        x = F.pad(x, (0, missing)) if x.shape[1] % 4 else 2 * x
        return x.reshape(x.shape[0], -1, 4).sum(2)


def warned(model: torch.nn.Module, spec: object) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        to_onnx(model, (X,), dynamic_shapes=(spec,))
    texts = [str(w.message) for w in seen]
    return [t for t in texts if t.startswith("The model is right for")]


@pytest.mark.parametrize("dim", ["seq", Dim.DYNAMIC])
@pytest.mark.parametrize(
    ("model", "condition"),
    [(Least(), "5 <= {}"), (Most(), "{} <= 16"), (Blocks(), "{} % 4 == 0")],
    ids=["least", "most", "blocks"],
)
def test_a_branch(model, condition, dim):
    (text,) = warned(model, {0: "batch", 1: dim})
    expected = condition.format("seq" if dim == "seq" else "channel")
    assert text.startswith(f"The model is right for {expected}: a decision")


def test_what_the_user_asked_for():
    assert warned(Least(), {1: Dim("seq", min=5)}) == []
    assert warned(Most(), {1: Dim("seq", max=16)}) == []


def test_nothing_assumed():
    assert warned(torch.nn.Linear(8, 3), {0: "batch"}) == []
    assert warned(Least(), {0: "batch"}) == []


def test_torch_compile_looks_at_the_sizes_itself():
    graphs = []

    def backend(module, args):
        graphs.append(to_onnx(module, tuple(args)))
        return module

    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The model is right for")
        compiled = torch.compile(Least(), backend=backend, dynamic=True)
        compiled(X)
        compiled(torch.randn(2, 3))
    assert len(graphs) == 2


class Pairs(torch.nn.Module):
    """An odd number of columns has a last one, which is 0; an even number is doubled."""

    def forward(self, x):
        y = F.avg_pool1d(x[:, None, :], 2)[:, 0]
        y = y.repeat_interleave(2, dim=1)
        missing = x.shape[1] - y.shape[1]
        return F.pad(y, (0, missing)) if missing > 0 else 2 * y


def test_a_condition_that_is_no_remainder():
    """torch 2.13 also has the bound `4 <= seq`, but the model is right for the even size below."""
    (text,) = warned(Pairs(), {0: "batch", 1: "seq"})
    assert text.startswith("The model is right for seq <= 2*(seq // 2) (not seq=9): a decision")


class Chunks(torch.nn.Module):
    """Three sums, or two for 4 columns, which torch cuts in two."""

    def forward(self, x):
        return torch.cat([c.sum(1, keepdim=True) for c in x.chunk(3, 1)], 1)


def test_a_number_of_chunks():
    (text,) = warned(Chunks(), {0: "batch", 1: "seq"})
    assert "== 3 (not seq=4): a decision" in text


FLOATS = {
    "3.7 < 0.5*float(seq) (not seq=7)": lambda n: n * 0.5 > 3.7,
    "math.trunc(seq / 3) == 2 (not seq=9)": lambda n: int(n / 3) == 2,
    "2.5 < float(seq) ** 0.5 (not seq=6)": lambda n: n**0.5 > 2.5,
    "float(math.floor(seq / 2)) == (seq / 2) (not seq=9)": lambda n: (n / 2).is_integer(),
}


class Branch(torch.nn.Module):
    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def forward(self, x):
        return x * 2 if self.condition(x.shape[1]) else x * 3


@pytest.mark.parametrize("condition", sorted(FLOATS))
def test_a_branch_on_a_float_computed_from_a_size(condition):
    model = Branch(FLOATS[condition])
    with pytest.raises(ConversionError) as refused:
        to_onnx(model, (X,), dynamic_shapes=({0: "batch", 1: "seq"},))
    text = str(refused.value)
    assert text.startswith(f"The model would only be right for {condition}: a decision")
    assert "test_dimension_conditions.py" in text
    (text,) = warned(model, {0: "batch", 1: Dim.AUTO})
    expected = condition.replace("seq", "channel")
    assert text.startswith(f"The model is right for {expected}: a decision")


class Windows(torch.nn.Module):
    """Two buffers of tokens, which close their windows together."""

    def forward(self, a, b):
        found = [x[:, : x.shape[1] // 4 * 4] for x in (a, b)]
        found = [x.sum(1, keepdim=True) if x.shape[1] > 0 else x for x in found]
        if found[0].shape[1] != found[1].shape[1]:
            raise ValueError("one window is closed, the other one is not")
        return torch.cat(found, 2)


def test_sizes_that_the_model_refuses_one_by_one():
    args = (torch.randn(2, 3, 5), torch.randn(2, 3, 5))
    with pytest.warns(UserWarning, match=r"The model is right for .* \(not channel=4\)"):
        to_onnx(Windows(), args, dynamic_shapes=({1: Dim.DYNAMIC}, {1: Dim.DYNAMIC}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        bounded = Dim("few", max=3)
        to_onnx(Windows(), args, dynamic_shapes=({1: bounded}, {1: bounded}))


def test_a_branch_on_a_float_within_the_bounds_of_the_user():
    model = Branch(lambda n: n * 0.5 > 3.7)
    assert warned(model, {0: "batch", 1: Dim("seq", min=8)}) == []


def test_a_branch_on_bits_of_a_size():
    (text,) = warned(Branch(lambda n: not n & 1), {0: "batch", 1: "seq"})
    assert text.startswith("The model is right for (seq & 1) == 0 (not seq=9): a decision")


class Halves(torch.nn.Module):
    """Two decisions, as an associative scan takes one at each level."""

    def forward(self, x):
        n = x.shape[1]
        x = x + 1 if (n // 2) % 2 == 0 else x - 1
        return x * 2 if (n // 4) % 2 == 0 else x * 3


def test_all_the_decisions_are_told():
    (text,) = warned(Halves(), {0: "batch", 1: "seq"})
    assert "(seq // 2)" in text and "(seq // 4)" in text and text.count("(not seq=") == 2


def test_a_condition_every_size_of_the_user_follows():
    assert warned(Pairs(), {0: "batch"}) == []
    assert warned(torch.nn.AvgPool1d(2), {1: "seq"}) == []


@pytest.mark.parametrize("exported", [False, True])
@pytest.mark.parametrize(
    ("dim", "least"),
    [
        (Dim("batch"), 0),
        (Dim.DYNAMIC, 0),
        (Dim("batch", min=1), 1),
        (Dim("batch", min=2), 2),
        (Dim("batch", min=5), 5),
    ],
    ids=["no minimum", "hint", "1", "2", "5"],
)
def test_a_least_size_is_known(dim, least, exported):
    """torch gives 2 to a hint: its programs accept 0 and 1, so do ours."""
    x, model, kwargs = torch.randn(6, 8), torch.nn.ReLU(), {"dynamic_shapes": ({0: dim},)}
    if exported:
        model = torch.export.export(model, (x,), **kwargs)
        kwargs = {"dynamic_shapes": None}
        least = 0 if least == 2 else least  # the program does not tell the user's 2 from torch's
    _, builder = to_onnx(model, (x,), return_builder=True, optimize=False, **kwargs)
    known = builder.facts.constraints
    name = builder.get_shape(builder.input_names[0])[0]
    assert prove_ge(name, 1, known) is (True if least else None)
    assert prove_ge(name, least, known) is True and prove_ge(name, least + 1, known) is None


class Heads(torch.nn.Module):
    """Views of (batch, seq, 32): torch cannot tell what -1 is if another size is 0."""

    def __init__(self, *sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, x):
        named = {"b": x.shape[0], "s": x.shape[1], "p": x.shape[0] * x.shape[1]}
        return x.reshape([named.get(size, size) for size in self.sizes]) + 1


@pytest.mark.parametrize(
    ("sizes", "known"),
    [
        (("b", "s", -1, 8), "bs"),
        (("b", -1, 8), "b"),
        (("p", -1), "bs"),
        (("b", "s", 4, 8), ""),
        ((-1, 8), ""),
    ],
)
def test_sizes_beside_a_hole_are_not_null(sizes, known):
    model, x = Heads(*sizes), torch.randn(2, 3, 32)
    dims = ({0: "b", 1: "s"},)
    _, builder = to_onnx(model, (x,), dynamic_shapes=dims, return_builder=True, optimize=False)
    for axis, name in enumerate("bs"):
        assert prove_ge(name, 1, builder.facts.constraints) is (True if name in known else None)
        empty = torch.zeros([0 if i == axis else n for i, n in enumerate(x.shape)])
        if name in known:
            with pytest.raises(RuntimeError, match="ambiguous"):
                model(empty)
        else:
            assert model(empty).numel() == 0


def test_a_branch_may_not_run():
    class Branches(torch.nn.Module):
        def forward(self, x, flag):
            return torch.cond(
                flag.sum() > 0,
                lambda x: x.reshape(x.shape[0], -1) * 2,
                lambda x: x.flatten(1) + 1,
                (x,),
            )

    inputs = torch.randn(2, 3, 4), torch.ones(3)
    dims = {0: "b"}, None
    _, builder = to_onnx(
        Branches(), inputs, dynamic_shapes=dims, return_builder=True, optimize=False
    )
    assert prove_ge("b", 1, builder.facts.constraints) is None
