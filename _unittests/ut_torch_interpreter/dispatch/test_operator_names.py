"""The names users give to operators."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter.dispatch.dispatcher import candidate_names
from torch_interpreter.dispatch.operator_names import checked_operators
from xbuilder.errors import OptionError

OPERATORS = (
    torch.ops.aten.add.Tensor,
    torch.ops.aten.relu.default,
    torch.ops.quantized.add.default,
    torch.ops.higher_order.cond,
    torch.ops.higher_order.scan,
    torch.sym_max,
)


@pytest.fixture
def library():
    found = torch.library.Library("ut_names", "DEF")
    found.define("add(Tensor x) -> Tensor")
    yield torch.ops.ut_names.add.default
    found._destroy()


def test_every_name_of_a_converter(library):
    """Those a dispatcher accepts, but ``add`` alone for an operator of torch."""
    for operator in (*OPERATORS, library):
        names = {n for n in candidate_names(operator) if n is not None}
        if operator is torch.ops.quantized.add.default:
            names = {n for n in names if not isinstance(n, str) or n.startswith("quantized")}
        if operator is torch.sym_max:
            names = {"torch.sym_max"}
        assert checked_operators(names, (), "names") == names


@pytest.mark.parametrize("name", ["torch.cond", torch.cond])
def test_cond(name):
    assert checked_operators([name], (), "names") == {"higher_order.cond"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch.add", "torch has no operator 'torch.add'. Did you mean aten.add?"),
        (torch.add, "torch has no operator 'torch.add'. Did you mean aten.add?"),
        ("add", "torch has no operator 'add'. Did you mean aten.add?"),
        ("aten.scaled_dot_product_atention", "Did you mean aten.scaled_dot_product_attention"),
        ("convert_element_type", "Did you mean prims.convert_element_type?"),
        ("nothing.like.this.anywhere", "A name is aten.add.Tensor."),
        ("higher_order_cond", "no operator 'higher_order_cond'"),
    ],
)
def test_unknown(name, message):
    with pytest.raises(OptionError, match=f"names: .*{message}"):
        checked_operators({name}, (), "names")


def test_other_names():
    assert checked_operators({"aten.setitem"}, ("aten.setitem",), "names") == {"aten.setitem"}
