"""The process that workers of this machine are forked from: what they all need is loaded there, once."""

from __future__ import annotations

from typing import Final

from ajuste.target.cluster import preload

FORKED: Final = {"distributed.worker.multiprocessing-method": "forkserver"}
"""Dask's configuration for workers that come from here."""

_LOADED: Final = ("distributed", "ajuste.cli.main", "ajuste.target.cluster.workplace", preload.__name__)


def begin_nursery() -> None:
    """Start it, if that is not done yet, and do not wait: it loads while other things are made ready."""
    from multiprocessing import forkserver, set_forkserver_preload  # Takes long to load, and few come here.

    set_forkserver_preload(list(_LOADED))
    forkserver.ensure_running()


def keep_to_ours() -> None:
    """Have Dask leave that process as it is. It would load all optional packages here first, only to name them."""
    import distributed.utils

    # Where Dask does not look there any more, it merely takes longer.
    setattr(distributed.utils, "_forkserver_preload_set", True)  # noqa: B010 - not a name of its interface
