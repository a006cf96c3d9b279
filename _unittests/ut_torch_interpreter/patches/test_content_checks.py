"""Functions that check the content of their tensors."""

from __future__ import annotations

import contextlib
import sys

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.common.errors import ExportError
from torch_interpreter.patches import content_checks
from torch_interpreter.patches.content_checks import passing_outcome, skip_content_checks

torch.manual_seed(0)
X = torch.randn(3, 6)
# the name is read during the export, when it has another function
FREQUENCIES, WEIGHTS = torch.tensor([1, 2, 1, 3, 1, 1]), torch.rand(6)
STATISTICS = {
    "cov": lambda x: torch.cov(x),
    "method": lambda x: x.cov(),
    "correction": lambda x: torch.cov(x, correction=0),
    "no degree": lambda x: torch.cov(x, correction=20),
    "frequencies": lambda x: torch.cov(x, fweights=FREQUENCIES),
    "weights": lambda x: torch.cov(x, aweights=WEIGHTS),
    "both": lambda x: torch.cov(x, correction=2, fweights=FREQUENCIES, aweights=WEIGHTS),
    "vector": lambda x: torch.cov(x[0]),
    "integers": lambda x: torch.cov((x * 10).to(torch.int64)),
    "corrcoef": lambda x: torch.corrcoef(x),
    "corrcoef of a vector": lambda x: torch.corrcoef(x[0]),
    "method of correlations": lambda x: x.corrcoef(),
}


@pytest.mark.filterwarnings("ignore:cov():UserWarning")
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    check_export(STATISTICS[name], (X,), None)


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_dynamic_sizes(name):
    dims = ({0: "variables", 1: "observations"},)
    check_export(STATISTICS[name], (X,), dims, [(torch.randn(4, 9),), (torch.randn(2, 2),)])


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(3, 6), (3, 1), (3,)])
def test_gaussian_nll_loss(full, reduction, shape):
    def model(x, y, v):
        return F.gaussian_nll_loss(x, y, v, full=full, reduction=reduction)

    variances = torch.rand(shape)
    variances[0] = 0
    check_export(model, (X, torch.randn(3, 6), variances), None, atol=1e-4)


def test_module_of_the_loss():
    dims = {0: "n"}
    args = X, torch.randn(3, 6), torch.rand(3, 6) + 0.1
    others = [tuple(torch.rand(5, 6) + 0.1 for _ in args)]
    check_export(torch.nn.GaussianNLLLoss(), args, (dims, dims, dims), others, atol=1e-4)


def test_torch_is_as_before():
    before = torch.cov, torch.Tensor.cov, F.gaussian_nll_loss
    check_export(STATISTICS["cov"], (X,), None)
    assert before == (torch.cov, torch.Tensor.cov, F.gaussian_nll_loss)


RESIZES = {
    "nearest": {"mode": "nearest"},
    "linear": {"mode": "bilinear", "align_corners": False},
    "antialias": {"mode": "bilinear", "antialias": True, "align_corners": False},
    "cubic": {"mode": "bicubic", "antialias": True, "align_corners": False},
}


@pytest.mark.parametrize("name", RESIZES)
def test_sizes_read_from_a_tensor(name):
    def resize(x, sizes):
        return F.interpolate(x, size=tuple(sizes.tolist()), **RESIZES[name])

    x = torch.randn(1, 2, 6, 6)
    others = [(x, torch.tensor(sizes)) for sizes in ([9, 3], [1, 12])]
    check_export(resize, (x, torch.tensor([4, 5])), None, others)


def test_a_view_of_sizes_read_from_a_tensor():
    """VideoLLaMA 3 reduces pictures whose sizes are data."""

    def merged(x, sizes):
        h, w = sizes.tolist()
        x = x.view(h, w, 2).permute(2, 0, 1)[None]
        x = F.interpolate(x, size=(h // 2, w // 2), mode="bilinear")
        rows = x.permute(0, 2, 3, 1).view(-1, 2)
        rows.mul_(2)  # a view: x changes too
        return rows, x

    others = [(torch.randn(h * w, 2), torch.tensor([h, w])) for h, w in ((6, 4), (2, 2), (2, 8))]
    shapes = ({0: torch.export.Dim.DYNAMIC}, None)
    check_export(merged, (torch.randn(24, 2), torch.tensor([4, 6])), shapes, others)


def test_corners_that_are_aligned_need_to_know_if_a_size_is_one():
    def resize(x, sizes):
        return F.interpolate(x, size=tuple(sizes.tolist()), mode="bilinear", align_corners=True)

    with pytest.raises(ExportError, match="data-dependent"):
        check_export(resize, (torch.randn(1, 2, 6, 6), torch.tensor([4, 5])), None)


#: compiled apart: pytest rewrites the assertions of a test
ASSERTIONS = """if True:
    def asserted(x):
        assert (x > -100).all(), f"too small: {x.min()}"
        assert not torch.isnan(x).any()
        assert x.min() > -100 and x.max().item() < 100
        assert torch.allclose(x, x + 1e-9) and not x.allclose(x + 1, rtol=0, atol=0.5)
        return x * 2

    def one(c, n):
        assert c, n
"""
exec(ASSERTIONS, globals())


def raised(x):
    if torch.isnan(x).any() or (x > 100).any():
        print("not a number", x.sum())
        raise ValueError(f"too small: {x.min()}")
    if x.numel() > 0 and x.amax() >= 100:
        raise IndexError
    for row in x.unbind(1):
        if not row.min().item() > -100:
            raise ValueError
    return x * 2


class Range(torch.nn.Module):
    """A module that a function calls."""

    def forward(self, x):
        with torch.no_grad():
            if x.max() > self.largest():
                raise ValueError("too large")
        return x + 1

    def largest(self):
        return 100.0


@pytest.mark.parametrize("function", ["asserted", "raised", "Range"])
def test_a_check_of_the_model_passes(function):
    known = globals()[function]
    check_export(known() if function == "Range" else known, (X,), ({0: "a"},), [(X[:2],)])


def test_private_functions_of_torch_may_be_missing(monkeypatch):
    """Another version of torch may name them otherwise: a check of the model still passes."""
    others = [(owner, name + "_2", change) for owner, name, change in content_checks._PRIVATE]
    monkeypatch.setattr(content_checks, "_PRIVATE", others)
    with skip_content_checks():
        assert not any(hasattr(owner, name) for owner, name, _ in others)
    check_export(raised, (X,), ({0: "a"},), [(X[:2],)])
    assert not any(hasattr(owner, name) for owner, name, _ in others)


def test_whether_tensors_are_close_is_an_output():
    others = [(X, X + 1e-9), (X, X * 0)]
    check_export(lambda x, y: x * torch.allclose(x, y), (X, X + 1), None, others)


def caught(x):
    try:
        assert (x > 0).all()
    except AssertionError:
        return -x
    return x


def outer(x):
    try:
        return raised(x) * 3
    except (AssertionError, ValueError):
        return -x


def decided(x):
    if (x > 0).all():
        return -x
    return x


def chosen(x):
    if (x > 0).all():
        raise ValueError
    elif (x < -100).any():
        x = x + 1
    return x


def suppressed(x):
    y = -x
    with contextlib.suppress(ValueError):
        try:
            if x.sum() > 0:
                raise ValueError
        finally:
            x = x + 1
        y = x
    return y


def second(x):
    y = -x
    with torch.no_grad(), contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError
        y = x
    return y


def raised_inside(x):
    if x.sum() > 0:
        with contextlib.suppress(ValueError):
            raise ValueError
        return -x
    return x


class Rows:
    """As many rows as a tensor says."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        if i >= self.x.sum():
            raise IndexError
        return self.x[0]


def iterated(x):
    return sum(Rows(x), x)


def near(x):
    return -x if torch.allclose(x, x + 1) else x


@pytest.mark.parametrize(
    "function",
    [caught, outer, decided, chosen, suppressed, second, raised_inside, iterated, near],
)
def test_a_decision_is_no_check(function):
    with pytest.raises(ExportError, match="A python decision depends on the content"):
        check_export(function, (X,), None)


class Asked:
    """The truth value of a condition, read from the instructions of the function that asks."""

    def __bool__(self):
        self.found = passing_outcome(sys._getframe(1))
        return bool(self.found)


def two(c, n):
    if n and c:
        raise ValueError(n if isinstance(n, str) else str(n))


def three(c, n):
    while not c:
        return n


def four(c, n):
    if c or n == 2:
        raise ValueError(n)
    raise TypeError(n)


def five(c, n):
    if not c:
        raise ValueError(n)


@pytest.mark.parametrize(
    "function, expected",
    [("one", True), ("two", None), ("three", None), ("four", False), ("five", True)],
)
def test_the_outcome_that_does_not_raise(function, expected):
    asked = Asked()
    with contextlib.suppress(TypeError, ValueError):
        globals()[function](asked, 3)
    assert asked.found is expected
