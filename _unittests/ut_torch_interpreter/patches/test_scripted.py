"""Parts of a model that torch.jit.script compiled."""

from __future__ import annotations

import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import to_onnx
from torch_interpreter.patches.scripted import in_python

X, Y = torch.randn(2, 4), torch.randn(5, 4)


class Scaled(torch.nn.Module):
    """Has constants, attributes, a buffer, a list of modules, and an absent bias."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k
        self.sizes = [1, 2]
        self.register_buffer("shift", torch.ones(4))
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4, bias=False) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        rows = x.shape[0] * self.sizes[1]
        return (x * self.k + self.shift).reshape(rows, -1)


@torch.jit.script
def doubled(x):
    return torch.cat([x, x], dim=0).reshape(2 * x.shape[0], -1)


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = torch.jit.script(Scaled(3))
        self.norm = torch.jit.script(torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.GELU()))

    def forward(self, x):
        return self.norm(doubled(self.inside(x)))


def test_the_sizes_are_dynamic_and_the_names_are_kept():
    model = Whole().eval()
    onx = check_export(model, (X,), ({0: "b"},), [(Y,)])
    scripted = torch.jit.RecursiveScriptModule
    assert isinstance(model.inside, scripted) and isinstance(model.norm, scripted)
    names = {i.name for i in to_onnx(model, (X,), optimize=False).graph.initializer}
    assert {"inside.layers.0.weight", "inside.shift", "norm.0.running_mean"} <= names
    assert onx.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "4*b"


def test_the_modules_are_those_of_their_class():
    model = torch.nn.Sequential(torch.jit.script(Scaled(5)).train(), torch.nn.ReLU())
    weight = model[0].layers[0].weight
    with in_python(model):
        found = model[0]
        assert type(found) is Scaled and found.k == 5 and found.sizes == [1, 2] and found.training
        assert type(found.layers[1]) is torch.nn.Linear and found.layers[1].bias is None
        assert found.layers[0].weight.data_ptr() == weight.data_ptr()


def test_what_was_traced_or_loaded_stays(tmp_path):
    torch.jit.save(torch.jit.script(Scaled(5)), str(tmp_path / "m.pt"))
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    model = torch.nn.Sequential(torch.jit.trace(torch.nn.Linear(4, 4), X), loaded)
    before = list(model)
    with in_python(model):
        assert list(model) == before
