from __future__ import annotations

import pytest

from xbuilder.dims.errors import TooLargeError
from xbuilder.dims.expr import MAX_COEFFICIENT, MAX_DEPTH, MAX_SIZE, Poly, Sum, compute

a, b, c = (Poly.symbol(n) for n in "abc")
one = Poly.integer(1)


def test_terms_are_sorted_and_equality_is_structural():
    form = b.mul(a).add(one).add(a)
    assert form == one.add(a).add(a.mul(b))
    assert hash(form) == hash(one.add(a).add(a.mul(b)))
    assert form.inner == "a*b+a+1"
    assert form != a
    assert form != "a*b+a+1"


def test_parts_of_a_form():
    form = a.scale(2).add(Poly.integer(3)).add(Poly.operation("mod", b, c))
    assert (form.offset, form.constant, form.atom) == (3, None, None)
    assert form.symbols == {"a", "b", "c"}
    assert [atom.key for atom in form.operations] == ["b%c"]
    assert (Poly.integer(4).constant, Poly(()).constant) == (4, 0)
    assert a.atom.key == "a"
    assert a.scale(2).atom is None


def test_exact_div():
    left = a.add(b).mul(a.sub(b).add(one))
    assert left.exact_div(a.add(b)) == a.sub(b).add(one)
    assert left.exact_div(a.sub(b).add(one)) == a.add(b)
    assert left.exact_div(a) is None
    assert left.exact_div(Poly(())) is None
    assert a.scale(3).exact_div(Poly.integer(2)) is None


def test_bounds():
    total = Poly(())
    with pytest.raises(TooLargeError):
        for i in range(1000):
            total = total.add(Poly.symbol(f"x{i}"))
    nested = a
    with pytest.raises(TooLargeError):
        for _ in range(MAX_DEPTH + 1):
            nested = Poly.operation("floordiv", nested, b)
    with pytest.raises(TooLargeError):
        Poly.integer(1).add(a).scale(1 << 200)


def test_a_sum_is_the_one_of_its_parts():
    total, forms = Sum(a), [b, a, Poly.integer(3), a.mul(b), b, a.add(b)]
    expected = a
    for i, form in enumerate(forms):
        total.add((-1) ** i, form)
        expected = expected.combine((-1) ** i, form)
    assert total.form() == expected
    assert not [mono for mono, coef in total.form().terms if not coef]


def test_bounds_of_a_sum():
    """A term that is gone takes no room; a sum is refused as soon as it is too large."""
    total = Sum(Poly(()))
    names = [Poly.symbol(f"x{i}") for i in range(MAX_SIZE // 2 + 1)]
    for name in names:
        total.add(1, name)
        total.add(-1, name)
    for name in names[1:]:
        total.add(1, name)
    assert total.form().size == MAX_SIZE
    with pytest.raises(TooLargeError):
        total.add(1, names[0])
    with pytest.raises(TooLargeError):
        Sum(a).add(MAX_COEFFICIENT, a)


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("floordiv", [-7, 2], -4),
        ("ceildiv", [-7, 2], -3),
        ("ceildiv", [7, 2], 4),
        ("mod", [-7, 2], 1),
        ("mod", [7, -2], -1),
        ("max", [1, 3, 2], 3),
        ("min", [2, 1, 3], 1),
        ("broadcast", [1, 1], 1),
        ("broadcast", [0, 1], 0),
        ("broadcast", [1, 4, 4], 4),
    ],
)
def test_compute(op, values, expected):
    assert compute(op, values) == expected
