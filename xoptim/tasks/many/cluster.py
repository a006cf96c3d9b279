"""Calls run by the workers of a dask cluster."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xbuilder.errors import OptionError

from .processes import LostProcess, Outcome


def run_on_cluster(
    function: Callable[[Any], Any], arguments: Sequence[Any], cluster: Any
) -> Iterator[Outcome]:
    """Calls a function on each argument on the workers of a cluster.

    dask gives the calls of a worker that dies to the others. One that kills several of them in a
    row is a failure.

    :param function: it is pickled, and so are its arguments and its results
    :param arguments: one for each call
    :param cluster: address of the scheduler, or a `distributed.Client`
    :return: the place of a call, and its result or its exception, as they end
    :raises OptionError: distributed is not installed, or nothing answers at this address
    """
    try:
        from distributed import KilledWorker, as_completed
    except ImportError as e:
        raise OptionError(
            "dask runs the models on a cluster: pip install 'xoptim[cluster]'."
        ) from e
    with contextlib.ExitStack() as stack:
        client = cluster
        if isinstance(cluster, str):
            client = stack.enter_context(_client_of(cluster))
        futures = client.map(function, arguments, pure=False)
        stack.callback(client.cancel, futures)
        places = {future.key: i for i, future in enumerate(futures)}
        for future in as_completed(futures):
            # a worker that dies loses its results: they are computed again, and waited for here
            try:
                result = future.result()
            except KilledWorker as e:
                result = LostProcess(f"it killed {e.last_worker.address} and others before")
            except Exception as e:
                result = e
            yield places[future.key], result


def _client_of(address: str) -> Any:
    """A client of a scheduler. One that failed is collected at once: dask waits for ever if it is
    collected while another client starts."""
    from distributed import Client

    try:
        return Client(address, timeout=10)
    except (OSError, ValueError) as e:
        reason = str(e)
    gc.collect()
    raise OptionError(f"no dask scheduler answers at {address!r}: {reason}.")
