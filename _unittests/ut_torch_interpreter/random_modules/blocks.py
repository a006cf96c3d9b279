"""Random modules of torch: a few blocks one after the other, with sums of earlier results.

A block keeps the shape of what it receives, so that any block may follow any other one of its table:
images `(batch, 8, height, width)`, and sequences `(batch, length, 16)`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: channels of an image, features of a step of a sequence, heads of an attention
CHANNELS, FEATURES, HEADS = 8, 16, 4
Block = Callable[[], nn.Module]

ACTIVATIONS: tuple[Block, ...] = (
    *(
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.PReLU,
        nn.ELU,
        nn.CELU,
        nn.SELU,
        nn.GELU,
        nn.SiLU,
        nn.Mish,
    ),
    *(nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Softplus, nn.Softsign, nn.Tanh, nn.LogSigmoid),
    lambda: nn.GELU("tanh"),
)


class Function(nn.Module):
    """Calls a function on the input and on other modules.

    :param function: the function
    :param modules: what it receives after the input
    """

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module):
        super().__init__()
        self.function = function
        self.others = nn.ModuleList(modules)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.others)


class Weighted(nn.Module):
    """Calls a function on the input and on weights.

    :param function: the function
    :param shapes: shapes of the weights
    """

    def __init__(self, function: Callable[..., Tensor], *shapes: tuple[int, ...]):
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(s) * 0.5) for s in shapes])

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.weights)


def conv(
    inputs: int = CHANNELS, outputs: int = CHANNELS, size: int = 3, **options: Any
) -> nn.Conv2d:
    """A convolution that keeps the height and the width."""
    return nn.Conv2d(inputs, outputs, size, **{"padding": size // 2, **options})


def linear(inputs: int = FEATURES, outputs: int = FEATURES, bias: bool = True) -> nn.Linear:
    """A product with the features."""
    return nn.Linear(inputs, outputs, bias=bias)


def calling(operation: Callable[..., Tensor], *modules: Callable[[], nn.Module]) -> Block:
    """A block that calls a function."""
    return lambda: Function(operation, *(make() for make in modules))


def excited(x: Tensor, squeeze: nn.Module, excite: nn.Module) -> Tensor:
    return x * torch.sigmoid(excite(F.relu(squeeze(x.mean((2, 3), keepdim=True)))))


def channels_last(x: Tensor, module: nn.Module) -> Tensor:
    return module(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def as_tokens(x: Tensor, norm: nn.Module, product: nn.Module) -> Tensor:
    return product(norm(x.flatten(2).transpose(1, 2))).transpose(1, 2).reshape(x.shape)


def shuffled(x: Tensor) -> Tensor:
    batch, channels, *sides = x.shape
    return x.view(batch, 2, channels // 2, *sides).transpose(1, 2).reshape(x.shape)


def standardized(x: Tensor) -> Tensor:
    mean, var = x.mean((1, 2, 3), keepdim=True), x.var((1, 2, 3), keepdim=True, unbiased=False)
    return (x - mean) / (var + 1e-5).sqrt()


def gated(x: Tensor, both: nn.Module) -> Tensor:
    a, b = both(x).chunk(2, 1)
    return a * b.sigmoid()


def attention(
    x: Tensor, *products: nn.Module, causal: bool = False, written: bool = False
) -> Tensor:
    """Attention of several heads, by the operator of torch or written with products."""
    query, key, value, last = products
    q, k, v = (
        p(x).view(*x.shape[:2], HEADS, FEATURES // HEADS).transpose(1, 2)
        for p in (query, key, value)
    )
    if written:
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            length = x.shape[1]
            hidden = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
            scores = scores.masked_fill(hidden, float("-inf"))
        mixed = scores.softmax(-1) @ v
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return last(mixed.transpose(1, 2).reshape(x.shape))


def packed_attention(x: Tensor, packed: nn.Module, last: nn.Module) -> Tensor:
    q, k, v = (
        packed(x).view(*x.shape[:2], 3, HEADS, FEATURES // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
    )
    return last(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def rotated(x: Tensor) -> Tensor:
    steps = torch.arange(x.shape[1], dtype=torch.float32)
    angles = steps[:, None] / 100 ** (torch.arange(FEATURES // 2) / (FEATURES // 2))[None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def experts(x: Tensor, router: nn.Module, *modules: nn.Module) -> Tensor:
    weights = router(x).softmax(-1).unbind(-1)
    return sum(w[..., None] * m(x) for w, m in zip(weights, modules, strict=True))


def largest_doubled(x: Tensor) -> Tensor:
    values, places = x.topk(3, -1)
    return x.scatter(-1, places, values * 2)


def mean_square(x: Tensor) -> Tensor:
    return x.pow(2).mean(-1, keepdim=True) + 1e-6


POINTWISE = (lambda: conv(size=1), lambda: conv(CHANNELS, 2, 1), lambda: conv(2, CHANNELS, 1))
MLP = lambda: nn.Sequential(linear(FEATURES, 32), nn.GELU(), linear(32, FEATURES))  # noqa: E731
FOUR = (linear,) * 4

IMAGES: dict[str, Block] = {
    "conv": conv,
    "pointwise": POINTWISE[0],
    "depthwise": lambda: conv(groups=CHANNELS),
    "groups": lambda: conv(groups=2, bias=False),
    "dilated": lambda: conv(dilation=2, padding=2),
    "reflected": lambda: conv(padding_mode="reflect"),
    "replicated": lambda: conv(padding_mode="replicate"),
    "circular": lambda: conv(padding_mode="circular"),
    "padded before": calling(lambda x, c: c(F.pad(x, (1, 1, 1, 1))), lambda: conv(padding=0)),
    "transposed conv": calling(
        lambda x, c: c(x)[:, :, : x.shape[2], : x.shape[3]],
        lambda: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3),
    ),
    "conv, normalized": lambda: nn.Sequential(
        conv(bias=False), nn.BatchNorm2d(CHANNELS), nn.ReLU()
    ),
    "BatchNorm": lambda: nn.BatchNorm2d(CHANNELS),
    "GroupNorm": lambda: nn.GroupNorm(2, CHANNELS),
    "InstanceNorm": lambda: nn.InstanceNorm2d(CHANNELS, affine=True),
    "standardized": calling(standardized),
    "residual": calling(lambda x, c: x + c(x), conv),
    "gate": calling(lambda x, a, b: a(x) * b(x).sigmoid(), conv, POINTWISE[0]),
    "gate of halves": calling(gated, lambda: conv(CHANNELS, 2 * CHANNELS)),
    "squeeze and excite": calling(excited, *POINTWISE[1:]),
    "channels last": calling(
        channels_last, lambda: nn.Sequential(nn.LayerNorm(CHANNELS), linear(CHANNELS, CHANNELS))
    ),
    "tokens": calling(
        as_tokens, lambda: nn.LayerNorm(CHANNELS), lambda: linear(CHANNELS, CHANNELS)
    ),
    "nearest": calling(
        lambda x, c: F.interpolate(F.avg_pool2d(c(x), 2), scale_factor=2, mode="nearest"), conv
    ),
    "bilinear": calling(
        lambda x, c: F.interpolate(c(F.max_pool2d(x, 2)), size=x.shape[-2:], mode="bilinear"), conv
    ),
    "pixel_shuffle": calling(
        lambda x, a, b: b(F.pixel_shuffle(a(x), 2)),
        lambda: conv(CHANNELS, 4 * CHANNELS, 1),
        lambda: nn.Conv2d(CHANNELS, CHANNELS, 2, stride=2),
    ),
    "joined": calling(
        lambda x, a, b: b(torch.cat([x, a(x)], 1)), conv, lambda: conv(2 * CHANNELS, CHANNELS, 1)
    ),
    "halves": calling(lambda x, c: torch.cat([x[:, ::2], c(x)[:, 1::2]], 1), conv),
    "mixed channels": calling(shuffled),
    "rolled": calling(lambda x: torch.roll(x, (1, 2), (2, 3))),
    "flipped": calling(lambda x: x.flip(3)),
    "cut and padded": calling(lambda x: F.pad(x[:, :, 1:, :-1], (1, 0, 0, 1))),
    "minus the largest": calling(lambda x: x - x.amax((2, 3), keepdim=True)),
    "normalized channels": calling(lambda x: F.normalize(x, dim=1)),
    "clamped": calling(lambda x: x.clamp(-2, 3) * 1.5 + 0.25),
    "scaled": lambda: Weighted(lambda x, a, b: x * a + b, (1, CHANNELS, 1, 1), (CHANNELS, 1, 1)),
    "softmax": calling(lambda x: F.softmax(x.flatten(2), -1).view_as(x) * x.shape[-1]),
    "pooled": calling(lambda x: F.adaptive_avg_pool2d(x, 1) + x),
    "average": calling(lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)),
    "largest": calling(lambda x: F.max_pool2d(x, 3, 1, 1)),
    "cumsum": calling(lambda x: x.cumsum(2) / 10),
}

SEQUENCES: dict[str, Block] = {
    "linear": linear,
    "LayerNorm": lambda: nn.LayerNorm(FEATURES),
    "RMSNorm": lambda: nn.RMSNorm(FEATURES),
    "RMSNorm, written": lambda: Weighted(
        lambda x, w: x * torch.rsqrt(mean_square(x)) * (1 + w), (FEATURES,)
    ),
    "MLP": MLP,
    "residual MLP": calling(lambda x, n, m: x + m(n(x)), lambda: nn.LayerNorm(FEATURES), MLP),
    "SwiGLU": calling(
        lambda x, a, b, c: c(F.silu(a(x)) * b(x)),
        *(lambda: linear(FEATURES, 32, False),) * 2,
        lambda: linear(32, FEATURES, False),
    ),
    "GLU": calling(lambda x, a: F.glu(a(x)), lambda: linear(FEATURES, 2 * FEATURES)),
    "attention": calling(attention, *FOUR),
    "causal attention": calling(lambda x, *m: attention(x, *m, causal=True), *FOUR),
    "written attention": calling(lambda x, *m: attention(x, *m, written=True), *FOUR),
    "written causal attention": calling(
        lambda x, *m: attention(x, *m, causal=True, written=True), *FOUR
    ),
    "packed attention": calling(packed_attention, lambda: linear(FEATURES, 3 * FEATURES), linear),
    "MultiheadAttention": calling(
        lambda x, m: m(x, x, x, need_weights=False)[0],
        lambda: nn.MultiheadAttention(FEATURES, HEADS, batch_first=True),
    ),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(
        FEATURES, HEADS, 32, dropout=0.0, batch_first=True
    ),
    "rotary": lambda: Function(rotated),
    "Conv1d": calling(
        lambda x, c: c(x.transpose(1, 2)).transpose(1, 2),
        lambda: nn.Conv1d(FEATURES, FEATURES, 3, padding=1),
    ),
    "causal Conv1d": calling(
        lambda x, c: F.silu(c(x.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2),
        lambda: nn.Conv1d(FEATURES, FEATURES, 4, padding=3, groups=FEATURES),
    ),
    "LSTM": calling(lambda x, m: m(x)[0], lambda: nn.LSTM(FEATURES, FEATURES, batch_first=True)),
    "GRU": calling(
        lambda x, m: m(x)[0],
        lambda: nn.GRU(FEATURES, FEATURES // 2, batch_first=True, bidirectional=True),
    ),
    "learned positions": lambda: Weighted(lambda x, w: x + w[: x.shape[1]], (64, FEATURES)),
    "embedded positions": calling(
        lambda x, e: x + e(torch.arange(x.shape[1])), lambda: nn.Embedding(64, FEATURES)
    ),
    "product": lambda: Weighted(lambda x, w, b: x @ w + b, (FEATURES, FEATURES), (FEATURES,)),
    "einsum": lambda: Weighted(lambda x, w: torch.einsum("btd,de->bte", x, w), (FEATURES,) * 2),
    "first token": lambda: Weighted(
        lambda x, w: torch.cat([w.expand(x.shape[0], -1, -1), x], 1)[:, 1:], (1, 1, FEATURES)
    ),
    "experts": calling(experts, lambda: linear(FEATURES, 3), linear, linear, linear),
    "flipped": calling(lambda x: x.flip(1)),
    "rolled": calling(lambda x: torch.roll(x, 1, 1)),
    "shifted": calling(lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1]),
    "cumsum": calling(lambda x: x.cumsum(1) * 0.1),
    "chosen": calling(lambda x: torch.where(x.abs() > 1, x, x * x)),
    "masked": calling(lambda x: x.masked_fill(x < -1, 0.0)),
    "softmax": calling(lambda x: x.softmax(-1) * FEATURES),
    "log_softmax": calling(lambda x: x.log_softmax(1) * 0.1),
    "unit length": calling(lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-6)),
    "sorted": calling(lambda x: x.sort(1)[0]),
    "largest doubled": calling(largest_doubled),
    "lower triangle": calling(lambda x: torch.tril(x @ x.transpose(1, 2)) @ x * 0.05),
    "rows": calling(lambda x, m: m(x.reshape(-1, FEATURES)).view(x.shape), linear),
    "swapped halves": calling(lambda x: torch.cat(x.split([4, 12], -1)[::-1], -1)),
    "windows": calling(lambda x: x.unfold(-1, 4, 4).mean(-1).repeat_interleave(4, -1)),
    "doubles": calling(lambda x: x.to(torch.float64).mul(2).float()),
    "every other step": calling(lambda x: x * (torch.arange(x.shape[1]) % 2)[:, None]),
    "restacked": calling(lambda x: torch.stack(x.unbind(-1)[::-1], -1)),
}


class Chain(nn.Module):
    """Blocks, one after the other; the result of some is added to an earlier one.

    :param blocks: the blocks
    :param sums: for each block, the index of the result it is added to, None to add nothing
    """

    def __init__(self, blocks: list[nn.Module], sums: list[int | None]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.sums = sums

    def forward(self, x: Tensor) -> Tensor:
        results = [x]
        for block, index in zip(self.blocks, self.sums, strict=True):
            x = block(x)
            results.append(x if index is None else x + results[index])
            x = results[-1]
        return x


class RandomModule(NamedTuple):
    """A module, the names of its blocks, and whether it receives images."""

    module: nn.Module
    names: list[str]
    of_images: bool

    def example(self, batch: int, length: int) -> Tensor:
        """Values for the input: the height of an image is *length*, its width four more."""
        generator = torch.Generator().manual_seed(100 * batch + length)
        sides = (CHANNELS, length, length + 4) if self.of_images else (length, FEATURES)
        return torch.randn(batch, *sides, generator=generator)


def random_module(seed: int) -> RandomModule:
    """A module of three to nine blocks.

    :param seed: the same seed gives the same module
    """
    rng = random.Random(seed)
    torch.manual_seed(seed)
    of_images = rng.random() < 0.5
    table = {**(IMAGES if of_images else SEQUENCES)}
    table |= {f"activation {i}": make for i, make in enumerate(ACTIVATIONS)}
    names = rng.choices(list(table), k=rng.randint(3, 9))
    blocks = [table[name]() for name in names]
    sums = [rng.randint(0, i) if rng.random() < 0.25 else None for i in range(len(names))]
    for norm in (m for block in blocks for m in block.modules()):
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.2)
            norm.running_var.uniform_(0.5, 1.5)
    return RandomModule(Chain(blocks, sums).eval(), names, of_images)
