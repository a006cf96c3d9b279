"""Blocks of an image and channels, exchanged by Reshape, Transpose, Reshape."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests


def _moved(
    before: str, after: str, first: str, perm: str, last: str, extra: str = "", kind: str = "float"
) -> str:
    """Reshape, Transpose, Reshape of images."""
    return f"""g ({kind}[{before}] x) => ({kind}[{after}] y{extra}) <int64[6] s = {{{first}}},
        int64[4] t = {{{last}}}> {{
        u = Reshape(x, s) v = Transpose<perm = [{perm}]>(u) y = Reshape(v, t)
    }}"""


CRD = ("a, 12, 4, 5", "a, 3, 8, 10", "0, 3, 2, 2, 4, 5", "0, 1, 4, 2, 5, 3", "0, 3, 8, 10")
DCR = ("a, 12, 4, 5", "a, 3, 8, 10", "0, 2, 2, 3, 4, 5", "0, 3, 4, 1, 5, 2", "0, 3, 8, 10")
DOWN = ("a, 3, 4, 6", "a, 12, 2, 3", "0, 3, 2, 2, 3, 2", "0, 3, 5, 1, 2, 4", "0, 12, 2, 3")


def _other(row: tuple[str, ...], **changes: str) -> str:
    """A model where some of the texts are others: before, after, first, perm, last."""
    names = ("before", "after", "first", "perm", "last")
    return _moved(**{**dict(zip(names, row, strict=True)), **changes})


def _written(row: tuple[str, ...], node: str, constants: str = "") -> str:
    return f"g (float[{row[0]}] x) => (float[{row[1]}] y) {constants} {{ {node} }}"


TO_DEPTH = 'd = DepthToSpace<blocksize = 2, mode = "DCR">(x)'
_IMAGE = "SpaceToDepth<blocksize = 2>(x)"
MODELS = {
    "ReshapeDepthToSpace": {
        "channels first": (
            _moved(*CRD),
            _written(CRD, 'y = DepthToSpace<blocksize = 2, mode = "CRD">(x)'),
        ),
        "blocks first": (
            _moved(*DCR),
            _written(DCR, 'y = DepthToSpace<blocksize = 2, mode = "DCR">(x)'),
        ),
        "channels last after": (
            _other(DCR, after="a, 8, 10, 3", perm="0, 4, 1, 5, 2, 3", last="0, 8, 10, 3"),
            _written((DCR[0], "a, 8, 10, 3"), f"{TO_DEPTH} y = Transpose<perm = [0, 2, 3, 1]>(d)"),
        ),
        "channels first before, last after": (
            _other(CRD, after="a, 8, 10, 3", perm="0, 4, 2, 5, 3, 1", last="0, 8, 10, 3"),
            _written(
                (CRD[0], "a, 8, 10, 3"),
                f"{TO_DEPTH.replace('DCR', 'CRD')} y = Transpose<perm = [0, 2, 3, 1]>(d)",
            ),
        ),
        "any number of rows": (
            _other(
                CRD,
                before="a, 12, h, 5",
                after="a, 3, k, 10",
                first="0, 3, 2, 2, -1, 5",
                last="0, 3, -1, 10",
            ),
            _written(
                ("a, 12, h, 5", "a, 3, k, 10"), 'y = DepthToSpace<blocksize = 2, mode = "CRD">(x)'
            ),
        ),
    },
    "ReshapeSpaceToDepth": {
        "blocks first": (_moved(*DOWN), _written(DOWN, f"y = {_IMAGE}")),
        "channels first": (
            _other(DOWN, perm="0, 1, 3, 5, 2, 4"),
            _written(
                DOWN,
                f"d = {_IMAGE} y = Gather<axis = 1>(d, i)",
                "<int64[12] i = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}>",
            ),
        ),
        "down, then right": (
            _other(DOWN, perm="0, 5, 3, 1, 2, 4"),
            _written(
                DOWN,
                f"d = {_IMAGE} y = Gather<axis = 1>(d, i)",
                "<int64[12] i = {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}>",
            ),
        ),
        "any number of channels": (
            _other(
                DOWN,
                before="1, c, 4, 6",
                after="1, d, 2, 3",
                first="1, -1, 2, 2, 3, 2",
                last="1, -1, 2, 3",
            ),
            _written(("1, c, 4, 6", "1, d, 2, 3"), f"y = {_IMAGE}"),
        ),
    },
}

_COMMON = {
    "no Transpose": (
        "g (float[2, 6] x, int64[2] s) => (float[b, c] y) { y = Reshape(x, s) }",
        "no Transpose before",
    ),
    "no Reshape": (
        "g (float[1, 2, 2, 3, 2, 5] x) => (float[1, 12, 10, 1] y) <int64[4] t = {1, 12, 10, 1}>"
        "{ v = Transpose<perm = [0, 3, 4, 1, 5, 2]>(x) y = Reshape(v, t) }",
        "no Reshape before",
    ),
    "three dimensions": (
        "g (float[2, 6] x) => (float[6, 2] y) <int64[3] s = {2, 3, 2}, int64[2] t = {6, 2}>"
        "{ u = Reshape(x, s) v = Transpose<perm = [1, 0, 2]>(u) y = Reshape(v, t) }",
        "the blocks are not moved by the operator",
    ),
}
REFUSED = {
    "ReshapeDepthToSpace": {
        **_COMMON,
        "another order": (
            _other(CRD, perm="0, 1, 4, 3, 5, 2"),
            "the blocks are not moved by the operator",
        ),
        "blocks that are no squares": (
            _other(CRD, first="0, 2, 2, 3, 4, 5", after="a, 2, 8, 15", last="0, 2, 8, 15"),
            "the blocks are not known to be squares",
        ),
        "other blocks, channels last": (
            _other(
                DCR,
                first="0, 2, 3, 2, 4, 5",
                after="a, 8, 15, 2",
                perm="0, 4, 1, 5, 2, 3",
                last="0, 8, 15, 2",
            ),
            "the blocks are not known to be squares",
        ),
        "channels inside, last": (
            _other(DCR, after="a, 8, 3, 10", perm="0, 4, 1, 5, 2, 3", last="0, 8, 3, 10"),
            "the dimensions are not those of blocks",
        ),
        "blocks of one element": (
            _other(CRD, first="0, 12, 1, 1, 4, 5", after="a, 12, 4, 5", last="0, 12, 4, 5"),
            "the blocks are not known to be squares",
        ),
        "rows are cut": (
            _other(CRD, first="0, 3, 2, 2, 5, 4"),
            "the dimensions are not those of blocks",
        ),
        "columns are joined": (
            _other(CRD, last="0, 3, 10, 8", after="a, 3, 10, 8"),
            "the dimensions are not those of blocks",
        ),
        "an unknown shape": (
            _moved(*CRD)
            .replace("4, 5] x", "4, 5] x, int64[4] t")
            .replace(",\n        int64[4] t = {0, 3, 8, 10}", "")
            .replace("3, 8, 10", "b, c, d"),
            "the dimensions are not those of blocks|a shape is not known",
        ),
        "integers": (_moved(*CRD, kind="int64"), "the operator has no kernel for this type"),
        "used elsewhere": (
            _moved(*CRD, extra=", float[a, 3, 4, 2, 5, 2] v"),
            "an inner result is used elsewhere",
        ),
    },
    "ReshapeSpaceToDepth": {
        **_COMMON,
        "another order": (
            _other(DOWN, perm="0, 3, 5, 1, 4, 2", last="0, 12, 3, 2", after="a, 12, 3, 2"),
            "the blocks are not moved by the operator",
        ),
        "blocks that are no squares": (
            _other(DOWN, first="0, 3, 2, 2, 2, 3", last="0, 18, 2, 2", after="a, 18, 2, 2"),
            "the blocks are not known to be squares",
        ),
        "rows are cut": (
            _other(DOWN, before="a, 3, 6, 4"),
            "the dimensions are not those of blocks",
        ),
        "the images are joined": (
            _other(
                DOWN,
                before="1, 3, 4, 6",
                after="2, 6, 2, 3",
                first="1, 3, 2, 2, 3, 2",
                last="2, 6, 2, 3",
            ),
            "the dimensions are not those of blocks",
        ),
        "an unknown number of channels": (
            _other(
                DOWN,
                before="1, c, 4, 6",
                after="1, d, 2, 3",
                first="1, -1, 2, 2, 3, 2",
                last="1, -1, 2, 3",
                perm="0, 1, 3, 5, 2, 4",
            ),
            "the number of channels is not known",
        ),
        "integers": (_moved(*DOWN, kind="int64"), "the operator has no kernel for this type"),
        "used elsewhere": (
            _moved(*DOWN, extra=", float[a, 2, 2, 3, 2, 3] v"),
            "an inner result is used elsewhere",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
