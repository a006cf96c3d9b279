"""One allocator of names."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder.support.names import NameAllocator, result_prefix


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["", "a", "a1", "a2", "b", "a11"]))))
def test_names_are_never_given_twice(actions):
    names = NameAllocator(["a"])
    taken = {"a"}
    for reserve, name in actions:
        if reserve:
            names.reserve(name)
            taken.add(name)
        else:
            made = names.unique(name)
            assert made and made not in taken
            assert made.startswith(name)
            taken.add(made)
        assert all(n in names for n in taken)


def test_names_are_short_and_stable():
    names = NameAllocator()
    assert [names.unique("x") for _ in range(3)] == ["x", "x1", "x2"]
    assert names.unique("") == "_r1"


def test_give_back() -> None:
    names = NameAllocator(["a"])
    assert names.unique("a") == "a1"
    names.give_back("a")
    names.give_back("unknown")
    assert "a" not in names
    assert names.unique("a") == "a"
    assert names.unique("a") == "a2"


def test_names_derived_from_one_another_do_not_grow():
    names = NameAllocator(["x1"])
    source, lengths = "x1", []
    for _ in range(1000):
        source = names.unique(result_prefix("Exp", [source]))
        lengths.append(len(source))
    assert max(lengths) < 300
    assert lengths[:3] == [11, 20, 29], "the first ones say where they come from"


def test_long_names_of_the_user_are_kept():
    name = "layer." * 100
    assert result_prefix("Exp", [name]) == f"_onx_exp_{name}"
    assert result_prefix("Exp", []) == "_onx_exp_"
