"""Files of every format, cut and mangled in any way: each is read, or refused with its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste.model.measurements import Values
from ajuste.outputs.format import ResultSource
from ajuste.outputs.programs import parsers
from ajuste_analyse.files import NAMES, read_files, read_source
from mutation import PIECES, bounded

EXAMPLES = int(os.environ.get("AJUSTE_FUZZ", "60"))
OUTPUTS = Path(__file__).parents[3] / "tests" / "outputs" / "outputs"
FORMATS: Final = {
    "asv": ("asv.json",),
    "criterion": ("criterion-messages.jsonl", "criterion-sample.json"),
    "go": ("go-bench.txt",),
    "h2load": ("h2load.txt", "h2load-timed.txt"),
    "jmh": ("jmh.json",),
    "lkp": ("lkp-compare.txt", "lkp-matrix.json"),
    "mmtests": ("mmtests-compare.txt", "mmtests-extract.txt", "mmtests-extract.json"),
    "pgbench": ("pgbench.txt", "pgbench-r.txt", "pgbench-rate.txt", "pgbench-scripts.txt", "pgbench.log"),
    "phoronix": ("phoronix.xml",),
    "pytest-benchmark": ("pytest-benchmark.json",),
    "schbench": ("schbench.txt", "schbench.json"),
    "sysbench": ("sysbench-cpu.txt", "sysbench-memory.txt", "sysbench-fileio.txt", "sysbench-threads.txt"),
    "wrk": ("wrk.txt", "wrk-errors.txt"),
}
COMPLETE: Final = ("wrk.txt", "h2load.txt", "sysbench-cpu.txt", "schbench.txt", "phoronix.xml", "jmh.json", "asv.json")
FILES: Final = [(name, file) for name, files in FORMATS.items() for file in files]


def judge(text: str, chosen: str | None) -> None:
    """Read it, in the format that it seems to have or in the ``chosen`` one, or see it refused with its place."""
    refused = table = None
    with bounded():
        try:
            table = read_source(ResultSource(text, "it", Path("file"), 3), chosen)
        except RequestError as error:
            refused = error
    if table is None:
        assert refused is not None
        assert refused.place is not None
    else:
        assert table.samples
        assert table.main <= {metric.name for metric in table.metrics}


cuts = st.tuples(st.integers(0, 10_000), st.integers(0, 200), st.sampled_from(PIECES) | st.text(max_size=5))


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("name", "file"), FILES, ids=lambda parameter: parameter)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(changes=st.lists(cuts, min_size=1, max_size=4))
def test_a_mangled_file_is_read_or_refused(name: str, file: str, changes: list[tuple[int, int, str]]) -> None:
    text = (OUTPUTS / file).read_text()
    for where, length, piece in changes:
        start = where % (len(text) + 1)
        text = text[:start] + piece + text[start + length :]
    judge(text, None)
    judge(text, name)


@pytest.mark.parametrize("file", COMPLETE)
def test_a_file_that_is_cut_off_is_never_read_as_less(file: str) -> None:
    """The last line has what each run must have, so without it the run is refused."""
    text = (OUTPUTS / file).read_text().rstrip()
    whole = read_source(ResultSource(text, "it", Path("file")))
    for end in range(0, len(text) - 1, max(1, len(text) // 150)):
        try:
            table = read_source(ResultSource(text[:end], "it", Path("file")))
        except RequestError:
            continue
        assert {metric.name for metric in table.metrics} == {metric.name for metric in whole.metrics}


@pytest.mark.parametrize("file", [file for _, file in FILES])
def test_each_file_is_known_by_what_is_in_it(file: str, tmp_path: Path) -> None:
    text = (OUTPUTS / file).read_text()
    (name,) = (name for name, files in FORMATS.items() if file in files)
    source = ResultSource(text, "it", Path(file), 3)
    assert read_source(source) == read_source(source, name)
    for other in set(FORMATS) - {name}:
        with pytest.raises(RequestError):
            read_source(source, other)
    path = tmp_path / file
    path.write_bytes(text.encode() + b"\xe9\n")
    with pytest.raises(RequestError, match="is not UTF-8"):
        read_files([path])


def test_files_of_a_group_are_units_that_nothing_pairs(tmp_path: Path) -> None:
    for group in ("before", "after"):
        (tmp_path / group).mkdir()
        for number in range(3):
            (tmp_path / group / f"{number}.txt").write_text((OUTPUTS / "wrk.txt").read_text())
    table = read_files([tmp_path / "before", tmp_path / "after"])
    assert table.configurations == ("before", "after")
    assert table.samples["after", "latency"] == Values((99.71 * 1e-6,) * 3, units=("1", "2", "3"), level="file")


def test_every_reader_is_named_by_format() -> None:
    assert set(FORMATS) <= set(NAMES)
    assert {"pgbench", "sysbench", "wrk", "h2load", "schbench", "fio"} <= set(parsers())


def test_a_large_file_is_judged_soon() -> None:
    line = "Benchmark" + "x" * 100_000 + "-2 10 5 ns/op\n"
    for text in (line * 20, "transaction type: " + "\n tps" * 200_000, "<PhoronixTestSuite>" + "<a>" * 100_000):
        judge(text, None)
    judge((OUTPUTS / "wrk.txt").read_text() + "  50%  " + "9" * 1_000_000, None)
