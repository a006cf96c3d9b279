"""Numbers that Python computes from sizes stay symbolic."""

from __future__ import annotations

import builtins
import math
import warnings
from math import sqrt

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, assert_same, check_export, run_ort
from ut_torch_interpreter.size_arithmetic import NUMBERS as NUMBERS_OF_SIZES
from ut_torch_interpreter.size_arithmetic import RESULTS

from torch_interpreter import ExportError, to_onnx
from xbuilder.errors import XoptimError

X = torch.randn(3, 8)
DYNAMIC = ({0: "a", 1: "n"},)
OTHERS = [(torch.randn(2, 5),), (torch.randn(5, 16),), (torch.randn(2, 9),)]
NUMBERS = {
    "int of a product": lambda x: int(x.shape[1] * 0.3),
    "int of a ratio": lambda x: int(x.shape[1] / 2),
    "int of a root": lambda x: int(x.shape[1] ** 0.5),
    "int of a size": lambda x: int(x.shape[1]),
    "int of a floor": lambda x: int(math.floor(x.shape[1] * 0.4)),  # noqa: RUF046
    "int of a condition": lambda x: int(x.shape[1] > 8),
    "float": lambda x: float(x.shape[1]) / x.shape[0],
    "float of a ratio": lambda x: float(x.shape[1] / 3),
    "length": lambda x: len(x),
    "square root": lambda x: math.sqrt(x.shape[1]),
    "imported square root": lambda x: sqrt(x.shape[1]),
    "logarithm": lambda x: math.log(x.shape[1]),
    "logarithm in base 3": lambda x: math.log(x.shape[1], 3),
    "logarithm in base 2": lambda x: math.ceil(math.log2(x.shape[1])),
    "exponential": lambda x: math.exp(-x.shape[1]),
    "cosine": lambda x: math.cos(x.shape[1]),
    "arctangent": lambda x: math.atan(x.shape[1]),
    "integer root": lambda x: math.isqrt(x.shape[1]),
    "absolute value": lambda x: math.fabs(x.shape[0] - x.shape[1]),
    "smallest ratio": lambda x: min(6 / x.shape[0], 20 / x.shape[1]),
    "largest of three": lambda x: max(x.shape[0] * 2, x.shape[1], 7),
    "largest of a list": lambda x: max([x.shape[0] / 2, x.shape[1] / 3, 2.5]),
    "exclusive or": lambda x: x.shape[1] ^ 5,
    "complement": lambda x: ~x.shape[1],
    "multiple of 4": lambda x: x.shape[1] & ~3,
    "quotient and remainder": lambda x: sum(divmod(x.shape[1], 3)),
    "only one of two": lambda x: int((x.shape[1] > 5) ^ (x.shape[1] > 9)),
    "not a condition": lambda x: 2 + int(True ^ (x.shape[1] > 9)),
    "number of bits": lambda x: x.shape[1].bit_length(),
    "root of numpy": lambda x: np.sqrt(x.shape[1]),
    "root of numpy of a ratio": lambda x: int(np.ceil(np.sqrt(x.shape[1] / 3))),
    "logarithm of numpy": lambda x: int(np.floor(np.log2(x.shape[1]))),
    "exponential of numpy": lambda x: np.exp(-x.shape[1] / 8),
    "arctangent of numpy": lambda x: np.arctan(x.shape[1]),
    "nearest of numpy": lambda x: int(np.rint(x.shape[1] * 0.7)),
    "nearest of numpy of a size": lambda x: np.rint(x.shape[1]),
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_number(name):
    number = NUMBERS[name]
    check_export(lambda x: x * number(x), (X,), DYNAMIC, OTHERS)


def test_the_next_power_of_two():
    def padded(x):
        size = 2 ** math.ceil(math.log2(x.shape[1]))
        return torch.nn.functional.pad(x, (0, size - x.shape[1]))

    check_export(padded, (X,), DYNAMIC, OTHERS)


def test_a_class_without_module():
    """A class that is written by exec seems to belong to the functions of Python."""
    names = {"torch": torch}
    exec("class Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2", names)
    assert names["Model"].__module__ == "builtins"
    check_export(names["Model"](), (X,), DYNAMIC, OTHERS)


def test_int_and_float_are_still_types():
    class Typed(torch.nn.Module):
        def forward(self, x):
            known, three = (isinstance(3, int), isinstance(3.0, float), int("7")), len("abc")
            assert known == (True, True, 7)
            assert issubclass(bool, int) and float.fromhex("0x1p0") == 1.0
            assert {int: 1}[type(three)] == 1
            return x[:, : int(x.shape[1] * 0.5)] * float("2")

    check_export(Typed(), (X,), DYNAMIC, OTHERS)
    assert "int" not in globals() and "float" not in globals()
    assert builtins.int is type(len("abc")) and math.sqrt(4) == 2 and globals()["sqrt"] is math.sqrt


def test_an_integer_read_from_a_tensor():
    def rows(x, n):
        count = int(n.max()) + 1
        torch._check(count > 0)
        return x.new_zeros(count, x.shape[1]).index_add_(0, n, x)

    x, n = torch.randn(4, 3), torch.tensor([0, 1, 1, 2])
    check_export(rows, (x, n), ({}, {}), [(x, torch.tensor([5, 0, 0, 1]))])


def test_what_has_to_be_an_integer_is_refused():
    class Unrolled(torch.nn.Module):
        def forward(self, x):
            return sum(x[:, i] for i in range(int(x.shape[1])))

    with pytest.raises(Exception, match="static shape of 8"):
        to_onnx(Unrolled(), (X,), dynamic_shapes=DYNAMIC)
    assert "int" not in globals()


SIZES = [(3, 8), (2, 5), (5, 9), (4, 16), (2, 12), (3, 11), (7, 6)]
VARIANTS = {
    **{name: (lambda x, f=f: x * f(x.shape[1])) for name, f in NUMBERS_OF_SIZES.items()},
    **{f"result: {name}": function for name, function in RESULTS.items()},
}


def outcome(function) -> str:
    """Whether a model is right at every size, told to be wrong, refused, or wrong in silence."""
    model = Fct1(function)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            onx = to_onnx(model, (X,), dynamic_shapes=({0: "b", 1: "n"},))
        except Exception as e:
            assert isinstance(e, XoptimError)
            return "refused"
    told = any(t in str(w.message) for w in seen for t in ("is right for", "makes a text"))
    try:
        for size in SIZES:
            x = torch.randn(*size)
            try:
                expected = model(x)
            except Exception:  # torch refuses this size
                continue
            got = run_ort(onx, [x] if onx.graph.input else [])
            leaves = torch.utils._pytree.tree_leaves(expected)
            assert_same([torch.as_tensor(v) for v in leaves], got, 1e-4)
    except Exception:
        return "told" if told else "silent"
    return "right"


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_no_number_is_frozen_in_silence(name):
    assert outcome(VARIANTS[name]) != "silent"


EXACT = ["isinstance", "n is", "round digits", "ceil log3"]


@pytest.mark.parametrize("name", EXACT)
def test_a_number_that_is_exact(name):
    number = NUMBERS_OF_SIZES[name]
    check_export(lambda x: x * number(x.shape[1]), (X,), DYNAMIC, OTHERS)


def test_decimals():
    check_export(lambda x: x * round(x.shape[1], -1), (X,), DYNAMIC, [*OTHERS, (X[:, :1],)])
    check_export(lambda x: x * round(x.shape[1], 2), (X,), DYNAMIC, OTHERS)


#: 104 columns: the name of the symbol has as many characters
@pytest.mark.parametrize("columns", [8, 104])
@pytest.mark.parametrize("text", [str, repr, "{}".format])
def test_a_result_of_a_text_is_refused(text, columns):
    model = Fct1(lambda x: x * len(text(x.shape[1])))
    with pytest.raises(ExportError, match=r"(?s)depend on a text: .*test_python_numbers.py:\d+"):
        to_onnx(model, (torch.randn(2, columns),), dynamic_shapes=({0: "b", 1: "n"},))


def test_a_text_of_a_shape_is_refused():
    assert outcome(lambda x: x * len(f"{x.shape}")) == "refused"


def test_a_text_that_decides_nothing():
    def printed(x):
        assert f"{x.shape} {x.shape[1]}", "a message"
        return x * 2

    def doubled(x):
        return printed(x) if x.shape[1] > 6 else x

    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*makes a text")
        check_export(printed, (X,), DYNAMIC, OTHERS)
    with pytest.warns(UserWarning, match="The model is right for 7 <= n"):
        to_onnx(Fct1(doubled), (X,), dynamic_shapes=({0: "b", 1: "n"},))


def test_the_text_of_a_model_with_a_state():
    """Its results differ at each call, whatever the text."""

    calls = []

    def counted(x):
        assert f"{x.shape[1]}", "a message"
        calls.append(x)
        return x * len(calls)

    with pytest.warns(UserWarning, match="does not give the results of the model"):
        to_onnx(Fct1(counted), (X,), dynamic_shapes=({0: "b", 1: "n"},))


def test_both_sides_agree_where_the_decision_changes():
    assert outcome(lambda x: x * min(x.shape[1], 6, x.shape[1] // 2)) == "right"
    assert (
        outcome(lambda x: x * (1 if int(x.shape[1] ** 0.5) ** 2 == x.shape[1] else 2)) == "refused"
    )


def chunks(x):
    """All the columns at once, as when no length of a chunk is given."""
    n = x.shape[1]
    return torch.cat([x[:, i : i + n] * 2 for i in range(0, n, n)], 1)


def multiples(x):
    n = x.shape[1]
    return torch.cat([x[:, i - n :] * i for i in range(n, 3 * n, n)], 1)


def none_at_all(x):
    return x + sum(range(x.shape[1], 0)) + isinstance(range(2), range)


@pytest.mark.parametrize("function", [chunks, multiples, none_at_all])
def test_a_loop_whose_rounds_are_known(function):
    check_export(function, (torch.randn(2, 8),), ({0: "a", 1: "n"},), [(torch.randn(3, 5),)])


def test_a_loop_on_chunks():
    """The model is right as long as there are as many chunks."""

    def summed(x):
        return torch.cat([x[:, i : i + 16].sum(1) for i in range(0, x.shape[1], 16)])

    with pytest.warns(UserWarning, match=r"== 1 \(not n=17\)|n <= 16"):
        check_export(summed, (torch.randn(2, 8),), ({0: "a", 1: "n"},), [(torch.randn(3, 15),)])


def test_a_loop_on_a_size():
    model = Fct1(lambda x: sum(x[:, i] for i in range(x.shape[1])))
    with pytest.raises(XoptimError, match=r"Dimension 'n' .*became 8 at .*range\(x.shape\[1\]\)"):
        to_onnx(model, (torch.randn(2, 8),), dynamic_shapes=({0: "a", 1: "n"},))


def test_the_integer_of_a_tensor_that_holds_a_size():
    def half(x):
        return x[:, : int(torch.div(x.shape[1], 2, rounding_mode="floor"))]

    onx = check_export(half, (torch.randn(2, 8),), ({1: "n"},), [(torch.randn(2, 5),)])
    assert onx.graph.output[0].type.tensor_type.shape.dim[1].dim_param == "n//2"


def pooled(x):
    """The positions of a sequence, then of every second word after a first one."""
    positions = list(range(x.shape[1]))
    before = [-1]
    rest = before + positions[1:-1][::2]
    first = torch.arange(rest[0] + 3 * len(rest), rest[-1] - positions[-1], -1)
    return x.sum() + first.sum() + torch.tensor(rest).sum() * len(positions)


def _written(x):
    """The even rows are 1."""
    x[list(range(0, x.shape[0], 2))] = 1
    return x


LISTS = {
    "a list": lambda x: x + torch.tensor(list(range(x.shape[1]))),
    "in reverse": lambda x: x[:, 2:] + torch.tensor(list(range(x.shape[1] - 2))[::-1]),
    "from the last": lambda x: x + torch.tensor(list(range(x.shape[1] - 1, -1, -1))),
    "some from the last": lambda x: x.sum() + torch.tensor(list(range(x.shape[1], -2, -3))),
    "positions": lambda x: x[torch.tensor(list(range(0, x.shape[0], 2)))],
    "a list as an index": lambda x: x[list(range(0, x.shape[0], 2))],
    "a list among indices": lambda x: x[1:, list(range(1, x.shape[1], 2))],
    "a list in reverse": lambda x: x + torch.tensor(list(reversed(range(x.shape[1])))),
    "a list that is written": lambda x: _written(x.clone()),
    "positions in reverse": lambda x: x[:, torch.tensor(list(range(x.shape[1] - 1, -1, -1)))],
    "a range": lambda x: x + torch.as_tensor(range(1, 2 * x.shape[1] + 1, 2), dtype=torch.float32),
    "parts": pooled,
    "its class": lambda x: (
        x * (2 if type(list(range(len(x)))) is list and type(len(x)) is int else 3)
    ),
}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_of_any_length(name):
    check_export(LISTS[name], (X,), DYNAMIC, OTHERS)


def test_a_list_that_changes():
    def longer(x):
        numbers = list(range(x.shape[1]))
        numbers.append(3)
        return x + sum(numbers)

    with pytest.raises(XoptimError, match=r"Dimension 'n' .*became 8 at .*in longer: numbers.app"):
        to_onnx(Fct1(longer), (X,), dynamic_shapes=DYNAMIC)


ELEMENTS = {
    "of a tensor": lambda x: x.reshape(-1)[: x.shape.numel() - 1],
    "of some dimensions": lambda x: (
        x * x.size()[:-1].numel() + (x.size()[1:] + x.size()[:1]).numel()
    ),
    "and a dimension": lambda x: x.view(x.shape[:1].numel(), x.size(-1)) + x.new_zeros(x.size()),
    "of a part": lambda x: x + x[0].shape.numel(),
}


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_the_number_of_elements_of_a_shape(name):
    before = torch.Tensor.shape, torch.Tensor.size
    check_export(ELEMENTS[name], (X,), DYNAMIC, OTHERS)
    assert (torch.Tensor.shape, torch.Tensor.size) == before
