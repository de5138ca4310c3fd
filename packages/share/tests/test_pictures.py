"""Pictures as files: every plot of the report, readable and harmless."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.surface import SURFACES
from ajuste.report.results import results_report
from ajuste_share.drawing import write_pictures

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> str:
    return " ".join("".join(element.itertext()) for element in ElementTree.parse(path).iter(f"{SVG}text"))


def only(results: Results, *metrics: str) -> Results:
    """Return the results without the plots of metrics that are beside the point."""
    return results.model_copy(
        update={
            "metrics": tuple(metric for metric in results.metrics if metric.name in metrics),
            "surfaces": tuple(surface for surface in SURFACES.of(results) if surface.metric in metrics),
            "correlations": (),
        }
    )


def test_a_map_as_svg(grid: Results, tmp_path: Path) -> None:
    pytest.importorskip("ajuste_search")
    written = write_pictures(results_report(only(grid, "hackbench.time")), tmp_path / "new" / "figures", "svg")
    assert sorted((tmp_path / "new" / "figures").iterdir()) == sorted(written)
    labels = texts(written[0])
    assert "Hackbench time over both" in labels
    assert "best: 16 ms, 8 ms" in labels
    assert "sched_wakeup_granularity_ns" in labels


def test_the_same_results_give_the_same_files(undecided: Results, tmp_path: Path) -> None:
    first, second = (
        write_pictures(results_report(only(undecided, "elapsed")), tmp_path / name, "svg") for name in ("one", "two")
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_timelines_as_png(timed: Results, tmp_path: Path) -> None:
    written = write_pictures(results_report(only(timed, "involuntary-switches")), tmp_path, "png")
    picture = next(path for path in written if path.name.startswith("timelines"))
    signature, width, height = struct.unpack(">8s8xII", picture.read_bytes()[:24])
    assert signature == b"\x89PNG\r\n\x1a\n"
    assert width > 1500
    assert height > 800


def test_hostile_names_stay_text(hostile: Results, tmp_path: Path) -> None:
    written = write_pictures(results_report(only(hostile, "elapsed")), tmp_path, "svg")
    for path in written:
        assert path.parent == tmp_path
        assert "<script" not in path.read_text(encoding="utf-8")
        assert not list(ElementTree.parse(path).iter(f"{SVG}script"))
    assert any("</script><script>al" in texts(path) for path in written)


def test_a_file_in_the_way_is_said(grid: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="file"):
        write_pictures(results_report(grid), tmp_path / "file", "svg")
