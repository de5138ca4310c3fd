"""Schedulers of the kernel tree that the kernel ejects, for real: a failed dispatch, and a task that never runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.planted import schedulers
from benchmarks.planted.schedulers import NAME, REGRESSIONS, SOURCE, Repository

from ajuste.kernel.spec import PackagedKernel, parse_source
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste_kernels.building.schedulers import require_llvm
from ajuste_kernels.building.sources import cached_source
from shell import Shell

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    wanted = parse_source(SOURCE)
    assert isinstance(wanted, PackagedKernel)
    source = cached_source(wanted, home())
    if source is None:
        pytest.skip("no source of a kernel is in the cache")
    try:
        require_llvm()
    except RequestError:
        pytest.skip("no clang with libbpf 1.2 or later")
    repository = Repository(tmp_path_factory.mktemp("planted") / "linux")
    repository.begin(source.tree)
    return repository


@pytest.mark.parametrize(
    ("name", "reason"),
    [("ejection", "ejected the scheduler"), ("stall", "runnable task stall")],
)
def test_an_ejected_scheduler_is_what_is_sought(
    repository: Repository, tmp_path: Path, ajuste_home: Path, name: str, reason: str
) -> None:
    regression = REGRESSIONS[name]
    repository.git("checkout", "--quiet", "-B", name, "base")
    planted = repository.commit(regression.subject, regression.edits)
    good, bad = (f"git:{repository.directory}@{revision}" for revision in ("base", name))
    study = str(Path(schedulers.__file__).parent / regression.study)
    bisection = Shell(tmp_path, ajuste_home).json(
        *("kernel", "bisect", "--scheduler", NAME, "--good", good, "--bad", bad, "--study", study, "--quiet")
    )
    assert (bisection["metric"], [text.split()[0] for text in bisection["culprits"]]) == ("stalls", [planted[:12]])
    assert reason in bisection["steps"][0]["note"]
