"""Calls on the workers of a dask cluster, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import onnx
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim.catalogue import registry
from xoptim.tasks.many.cluster import run_on_cluster
from xoptim.tasks.many.processes import LostProcess

distributed = pytest.importorskip("distributed")
MODEL = """<ir_version: 8, opset_import: ["" : 20]>
g (float[n, 4] x) => (float[n, 4] y) {{ t = Identity(x) y = {}(t) }}"""
#: a pattern that kills the first worker that meets it, in the middle of a model
PATTERNS = '''
import os, signal
from pathlib import Path
from xoptim import rewrite

@rewrite(root="Abs")
def kill_once(g, node):
    """Kills the process, once."""
    mark = Path({!r})
    if not mark.exists():
        mark.write_text("killed")
        os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Patterns read from files are forgotten after each test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())


@pytest.fixture(scope="module")
def client():
    """Two workers that are replaced when they die."""
    env = {"PYTHONPATH": str(Path(xoptim.__file__).parents[1])}
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, env=env
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_results_and_errors(client):
    def half(n):
        if n % 2:
            raise ValueError(n)
        return n // 2

    found = dict(run_on_cluster(half, [0, 1, 2], client))
    assert (found[0], found[2]) == (0, 1) and isinstance(found[1], ValueError)
    by_address = dict(run_on_cluster(half, [4], client.scheduler.address))
    assert by_address == {0: 2}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_call_that_kills_every_worker(client):
    def die(n):
        os.kill(os.getpid(), signal.SIGKILL)

    ((_, error),) = run_on_cluster(die, [0], client)
    assert isinstance(error, LostProcess) and "it killed" in str(error)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_worker_is_killed_on_the_way(client, tmp_path):
    """Nothing is lost: its models go to the other one. Nothing is done twice in the output."""
    models, out, mark = tmp_path / "models", tmp_path / "out", tmp_path / "mark"
    models.mkdir()
    for i, op_type in enumerate(["Neg", "Abs", "Exp", "Cos"] * 3):
        path = models / f"{i:02d}.onnx"
        path.write_bytes(onnx.parser.parse_model(MODEL.format(op_type)).SerializeToString())
    patterns = tmp_path / "patterns.py"
    patterns.write_text(PATTERNS.format(str(mark)), encoding="utf-8")
    client.wait_for_workers(2)
    seen = []
    options = {"patterns": "default+KillOnce", "load": [patterns], "dask": client}
    done = xoptim.batch(models, out, on_done=lambda row, n, total: seen.append(row), **options)
    assert mark.exists(), "a worker died"
    names = sorted(path.name for path in models.iterdir())
    assert [row["name"] for row in done.rows] == names and done.ok
    assert sorted(row["name"] for row in seen) == names, "each one once"
    assert sorted(path.name for path in out.glob("*")) == [".xoptim", *names]
    assert all(len(onnx.load(out / name).graph.node) == 1 for name in names)
    before = {name: (out / name).stat().st_mtime_ns for name in names}
    time.sleep(0.01)
    again = xoptim.batch(models, out, **options)
    assert {row["state"] for row in again.rows} == {"up to date"}
    assert {name: (out / name).stat().st_mtime_ns for name in names} == before


def test_nobody_answers():
    with pytest.raises(OptionError, match="no dask scheduler answers at 'somewhere'"):
        list(run_on_cluster(len, ["a"], "somewhere"))
    with pytest.raises(OptionError, match="no dask scheduler answers"):
        list(run_on_cluster(len, ["a"], "tcp://127.0.0.1:1"))


def test_without_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(OptionError, match=r"pip install 'xoptim\[cluster\]'"):
        list(run_on_cluster(len, ["a"], "tcp://127.0.0.1:1"))
