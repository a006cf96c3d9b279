from __future__ import annotations

import pytest

from xbuilder.dims.expr import Poly
from xbuilder.dims.text import quote

a, b = Poly.symbol("a"), Poly.symbol("b")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Poly(()), "0"),
        (b.sub(a), "b-a"),
        (a.scale(-2), "-2*a"),
        (Poly.integer(1).sub(a), "1-a"),
        (Poly.operation("floordiv", a.add(b), a.mul(b)), "(a+b)//(a*b)"),
        (Poly.operation("floordiv", a.mul(b), a), "a*b//a"),
        (Poly.operation("floordiv", Poly(()), a), "0//a"),
        (Poly.operation("mod", a.scale(-1), Poly.integer(-2)), "(-a)%(-2)"),
        (Poly.operation("mod", a, b).scale(-1), "-(a%b)"),
        (Poly.operation("mod", a, b).mul(a), "a*(a%b)"),
        (Poly.operation("max", a, b.add(a)).mul(b), "b*max(a,a+b)"),
        (Poly.operation("floordiv", a, Poly.operation("max", a, b)), "a//max(a,b)"),
        (Poly.symbol("x y").add(a), "a+`x y`"),
    ],
)
def test_inner_text(form, expected):
    assert form.inner == expected


def test_quote():
    assert quote("seq_1") == "seq_1"
    assert quote("a b") == "`a b`"
    assert quote("a`b") == "`a``b`"
