"""
Time against the number of nodes
================================

The time of an optimization should be proportional to the number of nodes. This script checks it on long chains of
nodes.
"""

import time

import matplotlib.pyplot as plt
import onnx

import xoptim


def chain(blocks):
    """Two transpositions, a product by one and an activation, again and again."""
    body = []
    for i in range(0, 4 * blocks, 4):
        body.append(f"x{i + 1} = Transpose <perm = [1, 0]> (x{i})")
        body.append(f"x{i + 2} = Transpose <perm = [1, 0]> (x{i + 1})")
        body.append(f"x{i + 3} = Mul (x{i + 2}, one)")
        body.append(f"x{i + 4} = Sigmoid (x{i + 3})")
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        f"agraph (float[a, b] x0) => (float[a, b] x{4 * blocks}) <float one = {{1}}> "
        "{" + "\n".join(body) + "}"
    )


xoptim.optimize(chain(1))  # imports what is needed
sizes, seconds = [], []
for blocks in (50, 100, 200, 400, 800):
    model = chain(blocks)
    begin = time.process_time()
    xoptim.optimize(model)
    seconds.append(time.process_time() - begin)
    sizes.append(4 * blocks)
    print(sizes[-1], "nodes", round(seconds[-1], 3), "s")

# %%

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(sizes, seconds, marker="o", label="xoptim, set default")
ax.plot(sizes, [seconds[0] * n / sizes[0] for n in sizes], linestyle="--", label="linear")
ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
fig.tight_layout()
