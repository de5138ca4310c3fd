"""Runs in a store that no machine measured, by the name of their command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.kernel import KernelVersion
from ajuste.model.trial import Slot, Trial
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.target import TargetTable
from shell import SMALL


def start_run(named: str, tmp_path: Path, store: Store, target: TargetTable | None = None) -> Run:
    (path := tmp_path / "small.toml").write_text(SMALL)
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    study = resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")
    if target:
        study = study.model_copy(update={"study": study.study.model_copy(update={"target": target})})
    return store.new_run(
        study="small",
        fingerprint="f",
        seed=1,
        ajuste="0",
        named=named,
        resolved=study.model_dump_json(),
        environment={},
    )


def undecided(named: str, tmp_path: Path, store: Store, *, stopped: str = "budget", blocks: int = 3) -> Run:
    """A run whose blocks took a minute each and contradict each other."""
    run = start_run(named, tmp_path, store)
    names = ResolvedStudy.model_validate_json(run.resolved).names
    began = datetime(2026, 1, 1, tzinfo=UTC)
    trials = [
        Trial(
            slot=Slot(block=block, position=place, configuration=name, seed=1),
            status="ok",
            metrics={"involuntary-switches": 100.0 + (place if block % 2 else -place) * 30, "elapsed": 1.0},
            started=(began + timedelta(seconds=60 * block + 30 * place)).isoformat(),
            host_seconds=30.0,
        )
        for block in range(blocks)
        for place, name in enumerate(names)
    ]
    store.add_trials(run, trials)
    if stopped:
        store.stop_run(run, stopped, "the budget is spent")
    return store.find_run(run.id)
