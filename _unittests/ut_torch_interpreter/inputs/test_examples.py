"""Examples of the arguments in which no dynamic dimension is 0 or 1."""

from __future__ import annotations

import torch

from torch_interpreter.inputs.examples import larger_examples, resized

Dim = torch.export.Dim
ONE, FIVE = torch.ones(1, 4), torch.ones(1, 5)


def shapes(specs, *leaves):
    """The shapes of the leaves of every example."""
    return [
        [tuple(v.shape) if isinstance(v, torch.Tensor) else v for v in example.leaves]
        for example in larger_examples(specs, leaves)
    ]


def test_the_content_is_repeated():
    x = torch.tensor([[1, 2]], dtype=torch.int16)
    assert resized(x, 0, 3).tolist() == [[1, 2]] * 3 and resized(x, 0, 3).dtype == x.dtype
    assert resized(x, 1, 2) is x
    assert resized(x[:0], 0, 2).tolist() == [[0, 0]] * 2


def test_nothing_is_small():
    assert shapes([{0: "b"}, None], torch.ones(2, 1), torch.ones(1)) == []
    assert shapes([{0: Dim.STATIC}, {0: 1}], ONE, ONE) == []


def test_one_name_has_one_size():
    assert shapes([{0: "b"}, {0: "b"}], ONE, FIVE) == [[(3, 4), (3, 5)]]
    assert shapes([{0: Dim.AUTO}, {0: Dim.DYNAMIC}], ONE, FIVE) == [[(3, 4), (3, 5)]]
    assert shapes([{0: "b"}], torch.ones(1, 3)) == [[(5, 3)]]
    assert shapes([{0: "b"}, None, None], torch.ones(0, 4), 1, None) == [[(3, 4), 1, None]]


def test_several_names():
    expected = [[(3, 5)], [(3, 3)], [(3, 1)]]
    assert shapes([{0: "b", 1: "n"}], torch.ones(1, 1)) == expected


def test_computed_dimensions_follow():
    n = Dim("n")
    assert shapes([{0: n}, {0: 2 * n}], torch.ones(1), torch.ones(2)) == [[(3,), (6,)]]
    step = [{1: "n"}, {1: "past"}, {1: "past+n"}, {1: "batch-size"}]
    assert shapes(step, torch.ones(2, 1), torch.ones(2, 6), torch.ones(2, 7), ONE) == [
        [(2, 3), (2, 6), (2, 9), (1, 4)]
    ]
    assert shapes([{0: "batch-size"}], ONE) == [[(3, 4)]]


def test_the_bounds_of_the_user():
    assert shapes([{0: Dim("b", max=1)}], ONE) == []
    assert shapes([{0: Dim("b", max=2)}], ONE) == [[(2, 4)]]
    assert shapes([{0: Dim.DYNAMIC(min=1, max=2)}], ONE) == [[(2, 4)]]
