"""
Modules as people write them
============================

Forty small modules, each with arguments of two sizes and its dynamic dimensions: losses, masks,
windows, recurrences written as loops, states, indices. ``bench_written.py`` exports them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SEQ = {0: "batch"}, {0: "batch", 1: "seq"}
IMAGE = {0: "batch", 2: "height", 3: "width"}


@dataclass(frozen=True)
class Written:
    """A module and two calls.

    :param make: makes the module
    :param calls: arguments at the sizes of the export, then at others
    :param dims: dynamic dimensions of each argument
    """

    make: Callable[[], nn.Module]
    calls: tuple[tuple[Any, ...], tuple[Any, ...]]
    dims: tuple[Any, ...]


MODULES: dict[str, Written] = {}


def example(shapes: Any, others: Any, *dims: Any) -> Callable[[type], type]:
    """Registers a class, whose arguments are random tensors of some shapes or given values."""

    def register(cls: type) -> type:
        generator = torch.Generator().manual_seed(0)

        def made(value: Any) -> Any:
            is_shape = isinstance(value, tuple)
            return torch.randn(value, generator=generator) if is_shape else value

        calls = tuple(tuple(map(made, values)) for values in (shapes, others))
        MODULES[cls.__name__] = Written(cls, calls, dims)  # type: ignore[arg-type]
        return cls

    return register


def words(batch: int, length: int) -> torch.Tensor:
    """Words, the last ones are padding."""
    found = torch.arange(batch * length).reshape(batch, length) % 17 + 1
    found[0, length - 2 :] = 0
    return found


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class SinusoidalPositions(nn.Module):
    def forward(self, x):
        _, length, width = x.shape
        position = torch.arange(length, device=x.device).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        return x + table


@example([words(2, 5)], [words(3, 7)], SEQ)
class MeanOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(18, 8, padding_idx=0)

    def forward(self, ids):
        mask = (ids != 0).float().unsqueeze(-1)
        return (self.table(ids) * mask).sum(1) / mask.sum(1).clamp(min=1e-6)


@example([(2, 5, 8), torch.tensor([5, 3])], [(3, 7, 8), torch.tensor([7, 2, 4])], SEQ, BATCH)
class LastState(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 6, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        states, _ = self.rnn(x)
        index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, states.size(2))
        return states.gather(1, index).squeeze(1)


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class BandMask(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        rows, columns = torch.arange(n)[:, None], torch.arange(n)[None, :]
        scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
        scores = scores.masked_fill((columns > rows) | (rows - columns >= 3), float("-inf"))
        return scores.softmax(-1) @ x


@example([(2, 4, 5, 8)], [(3, 4, 7, 8)], {0: "batch", 2: "seq"})
class LinearBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, 5).float())

    def forward(self, q):
        n = q.size(2)
        distance = torch.arange(n).view(1, n) - torch.arange(n).view(n, 1)
        bias = self.slopes.view(1, 4, 1, 1) * -distance.abs()
        return F.scaled_dot_product_attention(q, q, q, attn_mask=bias)


@example([(2, 6, 8)], [(3, 10, 8)], {0: "batch", 1: torch.export.Dim("pairs", min=2)})
class MergedPairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, x):
        batch, length, width = x.shape
        if length % 2:
            x = torch.cat([x, x[:, -1:]], dim=1)
        return self.linear(x.reshape(batch, -1, 2 * width))


@example([(2, 16)], [(3, 16)], BATCH)
class SpectralNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.spectral_norm(nn.Linear(16, 5))

    def forward(self, x):
        return self.layer(x)


@example([(2, 3, 8, 8)], [(3, 3, 12, 10)], IMAGE)
class BlurPool(nn.Module):
    def __init__(self):
        super().__init__()
        row = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("kernel", (row[:, None] * row / 16)[None, None])

    def forward(self, x):
        channels = x.shape[1]
        x = F.pad(x, (1, 1, 1, 1), mode="reflect")
        return F.conv2d(x, self.kernel.expand(channels, 1, 3, 3), stride=2, groups=channels)


@example([(2, 4, 8, 8)], [(3, 4, 12, 10)], IMAGE)
class Coordinates(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x):
        batch, _, height, width = x.shape
        ys = torch.linspace(-1, 1, height).view(1, 1, height, 1).expand(batch, 1, height, width)
        xs = torch.linspace(-1, 1, width).view(1, 1, 1, width).expand(batch, 1, height, width)
        return self.conv(torch.cat([x, ys, xs], 1))


@example([(2, 4, 8, 8)], [(3, 4, 12, 10)], IMAGE)
class SpatialSoftArgmax(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        p = x.flatten(2).softmax(-1).view(b, c, h, w)
        ys, xs = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
        return torch.stack([(p * ys).sum((2, 3)), (p * xs).sum((2, 3))], -1)


@example([(2, 4, 8, 8)], [(3, 4, 12, 12)], IMAGE)
class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


@example([(2, 4, 8, 8)], [(3, 4, 12, 16)], IMAGE)
class ChannelShuffle(nn.Module):
    def forward(self, x):
        b, c, h, w = x.size()
        x = x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, c, h, w)
        return torch.cat(x.chunk(2, dim=1)[::-1], 1)


@example([(2, 4, 9, 9)], [(3, 4, 14, 11)], IMAGE)
class PyramidOfMeans(nn.Module):
    def forward(self, x):
        parts = [F.adaptive_avg_pool2d(x, n).flatten(1) for n in (1, 2, 4)]
        return torch.cat(parts, 1)


@example([(2, 3, 8, 8)], [(3, 3, 12, 16)], IMAGE)
class SkipConnections(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.out = nn.Conv2d(9, 2, 1)

    def forward(self, x):
        low = F.relu(self.down(x))
        high = F.interpolate(low, size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, high], 1))


@example([(2, 2, 8, 8), (2, 2, 8, 8)], [(3, 2, 12, 10), (3, 2, 12, 10)], IMAGE, IMAGE)
class Warp(nn.Module):
    def forward(self, image, flow):
        _, _, h, w = image.shape
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack([xs, ys]).float()[None] + flow
        size = torch.tensor([w - 1, h - 1], dtype=torch.float32).view(1, 2, 1, 1)
        grid = (2 * grid / size - 1).permute(0, 2, 3, 1)
        return F.grid_sample(image, grid, align_corners=True, padding_mode="border")


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class LoopOfGates(nn.Module):
    """A recurrence over a fixed number of steps, whose state is a list."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        states = []
        for cell in self.cells:
            x = x + torch.tanh(cell(x)) * torch.sigmoid(x)
            states.append(x.mean(1))
        return torch.stack(states, 1), {"last": x}


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class VectorQuantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(10, 8))

    def forward(self, x):
        flat = x.reshape(-1, 8)
        distance = (flat**2).sum(1, keepdim=True) - 2 * flat @ self.codes.T + (self.codes**2).sum(1)
        index = distance.argmin(1)
        counts = torch.bincount(index, minlength=10).float()
        entropy = -(counts / counts.sum() * (counts / counts.sum() + 1e-10).log()).sum()
        return F.embedding(index, self.codes).view_as(x), index.view(x.shape[:-1]), entropy


@example([(2, 5, 6), words(2, 5) % 6], [(3, 7, 6), words(3, 7) % 6], SEQ, SEQ)
class FocalLoss(nn.Module):
    def forward(self, logits, target):
        logp = F.log_softmax(logits, -1).gather(-1, target[..., None])[..., 0]
        loss = -((1 - logp.exp()) ** 2) * logp
        return loss[target != 0].mean()


@example([(4, 8), (4, 8)], [(6, 8), (6, 8)], BATCH, BATCH)
class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = self.scale.exp() * a @ b.t()
        labels = torch.arange(len(a))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


@example([(2, 9)], [(3, 12)], SEQ)
class TopShare(nn.Module):
    """The most probable values whose probabilities sum to a share."""

    def forward(self, logits):
        ordered, index = logits.sort(dim=-1, descending=True)
        total = ordered.softmax(-1).cumsum(-1)
        removed = total > 0.8
        removed[..., 1:] = removed[..., :-1].clone()
        removed[..., 0] = False
        mask = torch.zeros_like(removed).scatter(1, index, removed)
        return logits.masked_fill(mask, -1e4).softmax(-1)


@example([(2, 6, 8)], [(3, 9, 8)], SEQ)
class TwoExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = (weights * (chosen == i)).sum(-1, keepdim=True)
            result += share * expert(x)
        return result


@example([(2, 7, 8)], [(3, 11, 8)], SEQ)
class Chunks(nn.Module):
    """Attention in windows of four, the sequence is padded."""

    def forward(self, x):
        b, n, d = x.shape
        missing = (4 - n % 4) % 4
        padded = F.pad(x, (0, 0, 0, missing))
        windows = padded.view(b, (n + missing) // 4, 4, d)
        scores = torch.einsum("bwid,bwjd->bwij", windows, windows).softmax(-1)
        return torch.einsum("bwij,bwjd->bwid", scores, windows).reshape(b, -1, d)[:, :n]


@example([(2, 6, 8)], [(3, 9, 8)], SEQ)
class RelativeShift(nn.Module):
    """Scores of relative positions, shifted by a view."""

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        b, n, m = scores.shape
        padded = F.pad(scores, (1, 0)).view(b, m + 1, n)
        return padded[:, 1:].view_as(scores).tril()


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", 1.0 / 100 ** (torch.arange(0, 8, 2) / 8))

    def forward(self, x):
        angle = torch.outer(torch.arange(x.shape[1], dtype=self.rates.dtype), self.rates)
        turn = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(-2)


@example([(2, 1, 400)], [(3, 1, 520)], {0: "batch", 2: "samples"})
class Spectrum(nn.Module):
    def forward(self, x):
        window = torch.hann_window(64)
        found = torch.stft(x.squeeze(1), 64, 16, window=window, return_complex=True, center=True)
        return torch.log(found.abs().pow(2) + 1e-6)


@example([(2, 3, 20)], [(3, 3, 31)], {0: "batch", 2: "time"})
class CausalConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(3, 6, 3, dilation=2**i) for i in range(3))
        self.back = nn.ModuleList(nn.Conv1d(3, 3, 1) for _ in range(3))

    def forward(self, x):
        skips = 0
        for i, (layer, back) in enumerate(zip(self.layers, self.back, strict=True)):
            a, b = layer(F.pad(x, (2 * 2**i, 0))).chunk(2, dim=1)
            gated = torch.tanh(a) * torch.sigmoid(b)
            skips = skips + gated
            x = x + back(gated)
        return F.relu(skips)


@example([(2, 6, 4)], [(3, 9, 4)], SEQ)
class PairwiseDistances(nn.Module):
    def forward(self, x):
        distance = torch.cdist(x, x)
        n = distance.shape[-1]
        distance = distance + torch.eye(n) * 1e6
        near, index = distance.topk(3, dim=-1, largest=False)
        neighbours = x[torch.arange(len(x))[:, None, None], index]
        return neighbours.mean(2), near


@example(
    [(5, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])],
    [(7, 4), torch.tensor([[0, 6, 2, 3, 5], [1, 2, 6, 4, 0]])],
    {0: "nodes"},
    {1: "edges"},
)
class MessagePassing(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(8, 6), nn.Linear(10, 4)

    def forward(self, x, edges):
        source, target = edges
        messages = F.relu(self.message(torch.cat([x[source], x[target]], -1)))
        total = torch.zeros(x.size(0), 6).index_add(0, target, messages)
        degree = torch.zeros(x.size(0)).scatter_add(0, target, torch.ones(target.numel()))
        return self.update(torch.cat([x, total / degree.clamp(min=1)[:, None]], -1))


@example([(2, 5, 8)], [(3, 7, 8)], SEQ)
class StateSpace(nn.Module):
    """A diagonal recurrence as a convolution of the whole sequence."""

    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.rand(8) * 0.5 + 0.4)

    def forward(self, x):
        n = x.shape[1]
        powers = self.decay[:, None] ** torch.arange(n)
        size = 2 * n
        product = torch.fft.rfft(x.transpose(1, 2), size) * torch.fft.rfft(powers, size)
        return torch.fft.irfft(product, size)[..., :n].transpose(1, 2)


@example([(2, 5)], [(3, 8)], SEQ)
class Spline(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("knots", torch.linspace(-2, 2, 9))
        self.values = nn.Parameter(torch.randn(9))

    def forward(self, x):
        x = x.clamp(-1.99, 1.99)
        right = torch.searchsorted(self.knots, x.contiguous())
        left = right - 1
        share = (x - self.knots[left]) / (self.knots[right] - self.knots[left])
        return torch.lerp(self.values[left], self.values[right], share)


@example([(2, 5, 3, 3)], [(4, 7, 3, 3)], SEQ)
class Rotations(nn.Module):
    """Orthogonal matrices from any ones, and their angle."""

    def forward(self, m):
        first = F.normalize(m[..., 0], dim=-1)
        second = m[..., 1] - (first * m[..., 1]).sum(-1, keepdim=True) * first
        second = F.normalize(second, dim=-1)
        third = torch.linalg.cross(first, second)
        r = torch.stack([first, second, third], -1)
        trace = r.diagonal(dim1=-2, dim2=-1).sum(-1)
        return r, torch.acos(((trace - 1) / 2).clamp(-1, 1))


@example([(2, 6, 8)], [(3, 9, 8)], SEQ)
class Dictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
        self.loss_scale = 0.5

    def forward(self, x):
        found = {name: head(x) for name, head in self.heads.items()}
        found["sum"] = sum(v.sum(-1) for v in found.values()) * self.loss_scale
        return found


@example([(2, 6), (2, 6)], [(3, 9), (3, 9)], SEQ, SEQ)
class Correlation(nn.Module):
    def forward(self, x, y):
        x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
        y = (y - y.mean(-1, keepdim=True)) / (y.std(-1, keepdim=True) + 1e-6)
        return (x * y).sum(-1) / (x.size(-1) - 1), torch.cov(x), torch.quantile(y, 0.3, dim=-1)


@example([(2, 3, 8, 8)], [(3, 3, 8, 8)], BATCH)
class PatchesWithClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.encoder(x)[:, 0]


@example([(2, 6, 8), (2, 4, 8)], [(3, 9, 8), (3, 5, 8)], SEQ, {0: "batch", 1: "past"})
class RingBuffer(nn.Module):
    """Keeps the last steps of a stream."""

    def forward(self, x, past):
        keep = past.shape[1]
        state = torch.cat([past, x], 1)[:, -keep:]
        return state.roll(1, dims=1), state.unfold(1, 2, 1).mean(-1)


@example([(6, 8), torch.tensor([2, 1, 3])], [(9, 8), torch.tensor([4, 2, 1, 2])], {0: "n"}, BATCH)
class Ragged(nn.Module):
    """Means of rows of different lengths."""

    def forward(self, x, lengths):
        groups = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
        ends = lengths.cumsum(0)
        total = torch.cat([x.new_zeros(1, x.size(1)), x.cumsum(0)])
        sums = total[ends] - total[ends - lengths]
        return sums / lengths.unsqueeze(-1), x - (sums / lengths[:, None])[groups]


@example([(2, 5, 4)], [(3, 8, 4)], SEQ)
class ViterbiStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.moves = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        best = torch.logsumexp(x[:, 0, :, None] + self.moves, 1) + x[:, -1]
        score, path = (best[:, :, None] + self.moves).max(1)
        return score, F.one_hot(path, 4).bool().any(1)


@example([(2, 3, 8, 8)], [(4, 3, 12, 10)], IMAGE)
class GhostBatchNorm(nn.Module):
    """Statistics of each image, whitened colours."""

    def forward(self, x):
        mean, variance = torch.var_mean(x, dim=(2, 3), keepdim=True, unbiased=False)
        x = (x - mean) * torch.rsqrt(variance + 1e-5)
        flat = x.flatten(2)
        covariance = flat @ flat.mT / flat.shape[-1] + 1e-3 * torch.eye(3)
        return torch.linalg.solve(covariance, flat).view_as(x)


@example([(2, 5, 8), torch.tensor(3)], [(3, 7, 8), torch.tensor(5)], SEQ, {})
class Timestep(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 16))
        self.register_buffer("alphas", torch.linspace(0.99, 0.5, 10).cumprod(0))

    def forward(self, x, t):
        rate = torch.exp(-math.log(1000) * torch.arange(4) / 4)
        angle = t.float() * rate
        scale, shift = self.mlp(torch.cat([angle.cos(), angle.sin()])).chunk(2)
        alpha = self.alphas[t]
        return alpha.sqrt() * (x * (1 + scale) + shift) + (1 - alpha).sqrt()


@example([words(2, 6)], [words(4, 9)], SEQ)
class HashedPairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(31, 4, mode="mean")

    def forward(self, ids):
        pairs = (ids[:, :-1] * 31 + ids[:, 1:]) % 31
        pairs = torch.where(pairs % 2 == 0, pairs ^ 5, pairs >> 1)
        return self.bag(pairs), torch.unique(pairs).numel() + torch.zeros(1)
