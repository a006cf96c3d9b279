"""
What an optimization costs
==========================

This page shows how the time of an optimization grows with the number of nodes, and which steps take the most time.
``python _doc/benchmarks/collect.py CORPUS`` measures it again.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas

DATA = Path("data")
print(pandas.read_csv(DATA / "about.csv").set_index("table")[["date", "machine"]].to_string())

# %%
# Chains of nodes
# +++++++++++++++

table = pandas.read_csv(DATA / "scaling.csv")
slope = np.polyfit(np.log(table["nodes"]), np.log(table["seconds"]), 1)[0]
print(f"time grows as N^{slope:.2f}")
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(table["nodes"], table["seconds"], marker="o", label="xoptim")
first = table.iloc[0]
ax.plot(table["nodes"], table["nodes"] * first["seconds"] / first["nodes"], "--", label="linear")
ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds of CPU")
ax.legend()
fig.tight_layout()

# %%
# Memory
# ++++++
#
# The peak is that of the process, with Python, the packages and the model itself.

print(table[["nodes", "peak_mb"]].to_string(index=False))

# %%
# Steps
# +++++
#
# An optimization loads the file, imports the graph, infers the types and shapes, runs passes and patterns, and exports
# the graph. ``match`` is the search of the patterns that apply to the model, ``match in vain`` that of the others, and
# ``apply`` the rewrites themselves. The unit is the millisecond of CPU, all the models together.

steps = pandas.read_csv(DATA / "steps.csv", keep_default_na=False)
stages = steps.groupby("stage")["ms"].sum().sort_values()
print(pandas.DataFrame({"ms": stages.round(), "share": (stages / stages.sum()).round(3)})[::-1])
ax = stages.plot.barh(figsize=(7, 3.5))
ax.set(xlabel="milliseconds, all the models", ylabel="")
plt.tight_layout()

# %%
# These passes and patterns take the most time.

ax = (
    steps[steps["step"] != ""]
    .groupby("step")["ms"]
    .sum()
    .sort_values()
    .tail(20)
    .plot.barh(figsize=(7, 5))
)
ax.set(xlabel="milliseconds, all the models", ylabel="")
plt.tight_layout()

# %%
# A pattern starts from some operators. This table gives the time of the patterns by these operators.

roots = steps[steps["root"] != ""].pivot_table(
    index="root", columns="stage", values="ms", aggfunc="sum", fill_value=0
)
print(roots.loc[roots.sum(axis=1).sort_values().tail(15).index[::-1]].round().to_string())

# %%
# The command
# +++++++++++
#
# This table has the seconds of CPU of each subcommand on a model of four nodes, those of ``import onnx``, and the
# difference. The third row is what the libraries of the command take, with the first schema that onnx gives.
# ``bisect``, ``measure`` and ``verify`` run the model with onnxruntime in other processes, each of which imports it,
# ``compare`` in its own, and ``batch`` optimizes the model in another process. ``optimize`` and ``explain`` only import
# the patterns whose operators are in the model. The time of ``reduce`` and ``tune`` is that of their help.

startup = pandas.read_csv(DATA / "startup.csv").sort_values("above")
print(startup.to_string(index=False))

# %%
# Beside other tools
# ++++++++++++++++++
#
# These are geometric means of the time each tool takes, over the models that every tool optimizes.

peers = pandas.read_csv(DATA / "peers.csv").pivot(index="model", columns="tool", values="seconds")
peers = peers.drop(columns="the model itself").dropna()
means = (np.exp(np.log(peers).mean()) * 1000).sort_values()
print(f"{len(peers)} models")
print(means.round().to_string())
ax = means[::-1].plot.barh(figsize=(7, 3))
ax.set(xlabel="milliseconds", ylabel="")
plt.tight_layout()

# %%
# Compiled code and free threads
# ++++++++++++++++++++++++++++++
#
# mypyc 2.4.1 compiled 86 modules, 16,920 lines, which store nodes and facts, infer shapes, match and apply. The patterns
# stayed interpreted. The graphs are the same, byte for byte. Both builds optimized twelve models in turns, and the
# smallest CPU time of each counts. The table has the geometric means of the speed. We would keep a compiled build if it
# were 1.5 times as fast, and it is not.
#
# The interpreter and its calls take a third of the time. The rest is memory, dictionaries, protobuf, numpy and the kernel,
# where a compiled module does the same work, and it looks up its global names in a dictionary. The table has the shares of
# one model, and the speed if the compiled code and the interpreter took no time at all. An optimization twice as
# fast needs fewer objects, and numbers in place of names.
#
# mypyc does not accept the sources as they are:
#
# * With ``follow_imports = skip`` for torch, transformers, diffusers and numpy, it takes 14 seconds of CPU. Otherwise it
#   reads thousands of their modules, and did not end in two minutes of CPU.
# * A class that has a cached property, reads its own ``__dict__`` or inherits from ``list`` needs
#   ``mypyc_attr(native_class=False)`` or another way to do the same. mypyc then refuses its subclasses in interpreted
#   modules, and 14 checks were corrected in the C code.
# * A class that interpreted modules extend needs ``mypyc_attr(allow_interpreted_subclasses=True)``.
# * ``slots=True`` of data classes, the change of class of ``NodeRecord`` and a second base class were removed.
# * Arguments are checked at run time: a list is refused where a tuple is declared, and some messages of errors change.
#
# ``mypyc.build.mypycify(modules, multi_file=True)`` makes the C code. ``python _doc/examples/bench_corpus.py --against BUILD
# --groups wheels --models FOLDERS`` compares a folder that holds the libraries beside the modules.
#
# Cython compiles modules as they are. With the most used ones compiled (the store, facts, records, matching, inference),
# an optimization takes more time than in Python 3.11, which specializes its own code.
#
# Two threads compute the blocks of a large weight. The files are the same with one thread and with four.
# Nothing else runs in parallel: bodies, functions and the folds of constants run one after the other, because they share
# the names and the constants of the model.
#
# On a free-threaded Python, optimizations in several threads give the same graphs. protobuf has no compiled wheel for
# 3.13t, and its version in pure Python takes more time.

tried = pandas.read_csv(DATA / "tried.csv").set_index("what")
print(tried.to_string())
