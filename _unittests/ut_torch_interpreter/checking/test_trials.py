"""Conditions are tried before they are told."""

from __future__ import annotations

import warnings

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1

from torch_interpreter import to_onnx
from torch_interpreter.common.export_options import ExportOptions
from torch_interpreter.exporting.program import prepare

X = torch.randn(4, 8)


def told(function) -> list[str]:
    """The conditions that to_onnx warns of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = function if isinstance(function, torch.nn.Module) else Fct1(function)
        to_onnx(model, (X,), dynamic_shapes=({0: "b", 1: "n"},))
    return [str(w.message) for w in seen if "is right for" in str(w.message)]


def trial(function):
    specs = ({0: "b", 1: "n"},)
    program = prepare(Fct1(function), (X,), {}, specs, ExportOptions(), None, 0)
    assert program.trial is not None
    [name] = [d.node.expr.name for d in program.inputs[0].fake.shape[1:]]
    return program.trial, name


HARMLESS = {
    "both sides are the same": lambda x: x * 2 if x.shape[1] > 4 else x + x,
    "torch refuses the others": lambda x: x.reshape(x.shape[0], -1, 4).sum(2),
    "a pooling": lambda x: torch.nn.functional.avg_pool1d(x, 4),
    "an error of the model": lambda x: x[:, 6],
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_nothing_to_tell(name):
    assert told(HARMLESS[name]) == []


def test_what_fails_is_told():
    assert len(told(lambda x: x * 2 if x.shape[1] > 4 else x)) == 1


def test_a_graph_at_other_sizes():
    tried, n = trial(lambda x: x * 2 if x.shape[1] > 4 else x)
    assert tried.is_right() and not tried.fails_at({n: 5}) and tried.fails_at({n: 4})
    assert tried.fails_on([X[:, :2]]) and not tried.fails_on([X[:2]])


def test_random_numbers_are_not_compared():
    tried, n = trial(lambda x: x[:, :3] + torch.rand_like(x[:, :3]) if x.shape[1] > 4 else x)
    assert tried.is_right() and not tried.fails_at({n: 6}) and tried.fails_at({n: 4})


def test_attention_and_dropout_draw_nothing_out_of_training():
    attention = torch.nn.functional.scaled_dot_product_attention

    def model(x):
        y = attention(x[None], x[None], x[None])[0]
        y = torch.nn.functional.dropout(y, 0.5, training=False)
        return y * 2 if x.shape[1] > 4 else y

    tried, n = trial(model)
    assert not tried.is_random and tried.is_right()
    assert not tried.fails_at({n: 6}) and tried.fails_at({n: 4})


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_attention_that_drops_weights_is_random(p):
    attention = torch.nn.functional.scaled_dot_product_attention
    tried, _ = trial(lambda x: attention(x[None], x[None], x[None], dropout_p=p))
    assert tried.is_random is (p > 0)


def test_a_model_that_cannot_be_compared():
    class Once(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_exporting():
                raise RuntimeError("not here")
            return x * 2 if x.shape[1] > 4 else x

    assert len(told(Once())) == 1


def test_sizes_that_no_memory_holds():
    """They are told without a trial, or nobody has them."""
    tried, n = trial(lambda x: x * 2 if x.shape[1] > 4 else x)
    assert tried.fails_at({n: 1 << 30}) and not tried.fails_at({n: 1 << 63})
