"""
What a fixed size removes
=========================

A model computes shapes to work for any size. When you fix a size, the optimization turns these nodes into constants.
"""

import matplotlib.pyplot as plt
import torch

import xoptim
from torch_interpreter import to_onnx
from xoptim.surgery.signature import SignatureChanges


class Resized(torch.nn.Module):
    def forward(self, x):
        batch, _, height, width = x.shape
        y = torch.nn.functional.interpolate(x, size=(height * 2, width // 2))
        return y.reshape(batch, -1, (width // 2) * 2).roll(1, 1)


onx = to_onnx(
    Resized(),
    (torch.randn(2, 3, 8, 8),),
    dynamic_shapes=({0: "batch", 2: "height", 3: "width"},),
    optimize=False,
)
sizes = {
    "any size": {},
    "batch": {"batch": 1},
    "batch, height": {"batch": 1, "height": 32},
    "batch, height, width": {"batch": 1, "height": 32, "width": 32},
}
counts = {}
for name, fixed in sizes.items():
    changes = SignatureChanges(sizes=fixed) if fixed else None
    done = xoptim.optimize(onx, **({"signature": changes} if changes else {}))
    counts[name] = done.to_dict()["nodes_after"]
print(counts)

# %%

fig, ax = plt.subplots(figsize=(6, 3))
ax.barh(list(counts), list(counts.values()))
ax.invert_yaxis()
ax.set(xlabel="nodes after the optimization", title="sizes that are fixed")
fig.tight_layout()
