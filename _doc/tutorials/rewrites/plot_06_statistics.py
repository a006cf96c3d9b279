"""
Read the statistics
===================

The engine writes one row for each search and each application. ``done.statistics`` is a DataFrame.
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
# What each pattern did:

applied = rows[rows["pattern"].str.startswith("apply_")]
print(applied.groupby("pattern")[["added", "removed"]].sum())

# %%
# Where the time went:

print(rows.groupby("pattern")["time_in"].sum().sort_values(ascending=False).head(5))

# %%
# ``profile=True``, ``--profile`` in the command, gives the same by graph, pass and phase: see
# :doc:`/profiles`.
