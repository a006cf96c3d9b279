"""
The kernels of onnxruntime as data
==================================

The package ships the kernels of one version of onnxruntime, so that a rewrite never writes a node
that the target cannot run. This script writes the table of the CPU from the onnxruntime that is
installed:

::

    python _doc/examples/tools/write_kernel_table.py

The table of CUDA is shorter, and comes from the list of kernels that onnxruntime publishes
(``docs/OperatorKernels.md``): it holds what rewrites write.
"""

import json

from xbuilder.runtimes.installed import read_installed
from xbuilder.runtimes.kernel_table import DATA

table = read_installed("CPU")
if table is None:
    raise SystemExit("this build of onnxruntime does not tell its kernels")
data = table.data
rows = ",\n".join(f"{json.dumps(op)}: {json.dumps(row)}" for op, row in data["kernels"].items())
parameters = ",\n".join(
    f"{json.dumps(op)}: {json.dumps(r)}" for op, r in data["parameters"].items()
)
head = json.dumps({k: data[k] for k in ("runtime", "provider", "opsets")})[1:-1]
text = f'{{{head},\n"kernels": {{\n{rows}\n}},\n"parameters": {{\n{parameters}\n}}}}\n'
path = DATA / "cpu.json"
path.write_text(text, encoding="utf-8")
print(f"{table.runtime}: {len(data['kernels'])} operators, {len(text)} bytes in {path}")
