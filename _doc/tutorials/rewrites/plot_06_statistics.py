"""
Read the statistics
===================

The statistics tell what each pattern did, and how long it took. The engine writes one row for each search and each
application, and ``done.statistics`` returns them as a DataFrame.
"""

import onnx

import xoptim

text = ["<ir_version: 8, opset_import: ['' : 18]>".replace("'", '"')]
text.append("agraph (float[a, b] x0) => (float[a, b] x40) <float one = {1}> {")
for i in range(0, 40, 4):
    text.append(f"x{i + 1} = Transpose <perm = [1, 0]> (x{i})")
    text.append(f"x{i + 2} = Transpose <perm = [1, 0]> (x{i + 1})")
    text.append(f"x{i + 3} = Mul (x{i + 2}, one)")
    text.append(f"x{i + 4} = Sigmoid (x{i + 3})")
done = xoptim.optimize(onnx.parser.parse_model("\n".join([*text, "}"])))
rows = done.statistics
print(rows.columns.tolist())

# %%
# These are the nodes that each pattern added and removed:

applied = rows[rows["pattern"].str.startswith("apply_")]
print(applied.groupby("pattern")[["added", "removed"]].sum())

# %%
# These are the five steps that took the most time:

print(rows.groupby("pattern")["time_in"].sum().sort_values(ascending=False).head(5))

# %%
# ``profile=True``, or ``--profile`` in the command, measures the time by graph, pass and phase, see :doc:`/rewrites/profiles`.
