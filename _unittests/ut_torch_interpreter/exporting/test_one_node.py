"""An operator is decomposed where it is, the rest of the program is not run again."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter.exporting import decompositions
from torch_interpreter.exporting.one_node import NotDecomposed, decompose_nodes

nn = torch.nn
X, OTHER = torch.randn(3, 4), torch.randn(5, 4)
SOUND = torch.randn(2, 100)
DYNAMIC = ({0: "n"},)
MODELS = {
    "lstm_cell": (nn.LSTMCell(4, 5), X, OTHER),
    "gru_cell": (nn.GRUCell(4, 5), X, OTHER),
    "rnn_cell": (nn.RNNCell(4, 5), X, OTHER),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), X, OTHER),
    "diff": (lambda x: x.diff(dim=0), X, OTHER),
    "stft": (
        lambda x: torch.stft(x, 16, window=torch.hann_window(16), return_complex=True).abs(),
        SOUND,
        SOUND[:1],
    ),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_equal_to_eager_without_another_run(name, monkeypatch):
    def refused(program, table):
        raise AssertionError(f"torch runs the program again for {table}")

    monkeypatch.setattr(decompositions, "_decomposed", refused)
    model, x, other = MODELS[name]
    check_export(model, (x,), DYNAMIC, [(other,)])


def test_flex_attention():
    causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, device="cpu")
    slopes = torch.rand(4)

    def masked(q):
        options = {"score_mod": lambda s, b, h, i, j: s * slopes[h], "enable_gqa": True}
        return flex_attention(q, q[:, :2], q[:, 2:], block_mask=causal, **options)

    def shifted(q):
        return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1)

    q, other = torch.randn(2, 4, 8, 16), torch.randn(3, 4, 8, 16)
    for model in (masked, shifted):
        check_export(model, (q,), DYNAMIC, [(other,)])


def test_flex_attention_of_a_copied_program():
    """The graphs it calls have no code in the copy: torch traces it with them all the same."""

    class Model(nn.Module):
        def forward(self, q):
            return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + h)

    program = torch.export.export(Model(), (torch.randn(2, 4, 8, 16),))
    module = decompositions._copied(program).graph_module
    before = {str(n.target) for n in module.graph.nodes}
    decompose_nodes(module, dict(decompositions._higher_order([program.graph])))
    after = {str(n.target) for n in module.graph.nodes}
    assert "flex_attention" in before and "flex_attention" not in after


def _module(model):
    class Model(nn.Module):
        def forward(self, x):
            return model(x)

    return torch.export.export(Model(), (X,)).graph_module


def test_results_and_their_metadata():
    module = _module(lambda x: x.diff(dim=0))
    (output,) = next(n for n in module.graph.nodes if n.op == "output").args[0]
    diff = torch.ops.aten.diff.default
    renamed = decompose_nodes(module, {diff: diff.decompose})
    nodes = [n for n in module.graph.nodes if n.op == "call_function"]
    assert [str(n.target) for n in nodes][-1] == "aten.sub.Tensor"
    assert renamed == {output.name: nodes[-1].name}
    assert all(n.meta["stack_trace"] == output.meta["stack_trace"] for n in nodes)
    assert nodes[-1].meta["val"].shape == (2, 4)


def test_refusals():
    neg = torch.ops.aten.neg.default
    constant = torch.ones(4)
    for decomposition, message in (
        (lambda x: x + constant, "reads _tensor_constant0"),
        (lambda x: x.undefined(), "AttributeError"),
        (lambda x: None, "the result of neg is None"),
    ):
        with pytest.raises(NotDecomposed, match=message):
            decompose_nodes(_module(torch.neg), {neg: decomposition})
    module = torch.fx.symbolic_trace(torch.nn.ReLU())
    module.graph.call_function(neg, (next(iter(module.graph.nodes)),))
    with pytest.raises(NotDecomposed, match="no fake tensor"):
        decompose_nodes(module, {neg: torch.neg})
