"""Dataclasses of the user among the arguments and the results."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from ut_torch_interpreter.export_checks import run_ort

from torch_interpreter import to_onnx
from torch_interpreter.inputs.dataclasses import flattened_dataclasses
from xbuilder.errors import OptionError

X = torch.randn(3, 4)


@dataclasses.dataclass
class Boxes:
    corners: torch.Tensor
    scores: torch.Tensor | None = None


@dataclasses.dataclass
class Found:
    boxes: list[Boxes]
    count: int = 1


@dataclasses.dataclass
class Computed:
    x: torch.Tensor
    y: int = dataclasses.field(init=False)


class Detector(torch.nn.Module):
    def forward(self, boxes, scale=2.0):
        return Found([Boxes(boxes.corners * scale, boxes.scores), Boxes(boxes.corners + 1)])


def is_known(kind: type) -> bool:
    return kind in torch.utils._pytree.SUPPORTED_NODES


def test_arguments_and_results():
    args = (Boxes(X, torch.ones(3)),)
    shapes = ({"corners": {0: "n"}, "scores": {0: "n"}},)
    for _ in range(2):
        onx = to_onnx(Detector(), args, dynamic_shapes=shapes)
        assert [i.name for i in onx.graph.input] == ["boxes_corners", "boxes_scores"]
        names = [o.name for o in onx.graph.output]
        assert names == ["boxes_0_corners", "boxes_0_scores", "boxes_1_corners", "count"]
        got = run_ort(onx, (X, torch.ones(3)))
        assert (got[0] == (X * 2).numpy()).all() and (got[2] == (X + 1).numpy()).all()
        assert not any(map(is_known, (Boxes, Found)))


def test_arguments_in_strict_mode():
    class Area(torch.nn.Module):
        def forward(self, boxes):
            return boxes.corners.prod(dim=1)

    onx = to_onnx(Area(), (Boxes(X),), export_options="strict")
    assert (run_ort(onx, (X,))[0] == X.prod(dim=1).numpy()).all()


def test_what_the_user_registered_stays():
    torch.export.register_dataclass(Boxes, serialized_type_name="Boxes")
    try:
        to_onnx(Detector(), (Boxes(X),))
        assert is_known(Boxes) and not is_known(Found)
    finally:
        torch.utils._pytree._deregister_pytree_node(Boxes)


@pytest.mark.parametrize(
    "shapes",
    [
        {"corners": {0: "n"}, "scores": None},
        {"scores": None, "corners": {0: "n"}},
        {"corners": {0: "n"}},
        Boxes({0: "n"}, None),
        Boxes({0: "n"}),
    ],
)
def test_a_field_that_is_none_is_described_by_none(shapes):
    onx = to_onnx(Detector(), (Boxes(X),), dynamic_shapes=(shapes,))
    (corners,) = onx.graph.input
    assert corners.type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_field_that_is_none_has_no_dynamic_dimension():
    for shapes in ({"corners": None, "scores": {0: "n"}}, {"corners": {0: "n"}, "other": None}):
        with pytest.raises(OptionError, match=r"describes \['(scores|other)'\], the argument has"):
            to_onnx(Detector(), (Boxes(X),), dynamic_shapes=(shapes,))


def test_they_are_forgotten_after_an_error():
    model = Detector()
    with pytest.raises(ValueError, match="stop"), flattened_dataclasses(model, [Boxes(X)]):
        model(Boxes(X))
        assert is_known(Boxes) and is_known(Found)
        raise ValueError("stop")
    assert not is_known(Boxes) and not is_known(Found) and not model._forward_hooks


def test_what_cannot_be_made_again():
    with flattened_dataclasses(Detector(), Computed(X)):
        assert not is_known(Computed)
