"""Whatever an input holds, each reader takes it or refuses it in one message, within bounds of time and memory; and
whatever it brought into a report is text there.

``AJUSTE_FUZZ`` sets how many inputs each reader gets; `make fuzz` asks for 100,000. The formats of ``analyse`` have
their own test, tests/outputs/test_hostile.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.stream import read_boot, read_trial
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.plan import Command, Plan
from ajuste.model.wording import shortened
from ajuste.outputs.format import ResultSource
from ajuste.outputs.programs import parsers
from ajuste.report.console import Console
from ajuste.report.html import render_html
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.run.testbed import UnpackedPackage
from ajuste.study.builtin import builtin_studies
from ajuste.study.read import read_study
from ajuste_analyse.files import read_source
from ajuste_analyse.verdicts import TableQuestion, analyse_table
from ajuste_guest.kernel.config import parse_config
from ajuste_kernels.building.configuration import read_config_file
from ajuste_kernels.building.patch import read_patches
from ajuste_profiles.source import Sources, read_profile
from ajuste_profiles.tuned import Folders, MachineFacts, read_text
from mutation import LARGE, bounded, mutated
from shell import SMALL

EXAMPLES = int(os.environ.get("AJUSTE_FUZZ", "150"))
STUDIES = sorted(study.path for study in builtin_studies())
CONTRACT = Path(__file__).parents[1] / "contract"
PLAN = Plan(id="t1", workload=Command(argv=("/bin/true",)))
TUNED = """[main]
summary=A profile
[variables]
a=1,2-4
b=${f:cpulist2hex:${a}}
[cpu]
governor=performance|powersave
[sysctl]
vm.swappiness=${f:regex_search_ternary:${a}:1.*:10:60}
net.ipv4.tcp_rmem=4096 87380 16777216
[disk]
readahead=>4096
"""
SYSCTL = "# a comment\nvm.swappiness = 10\n-net.ipv4.conf.*.rp_filter=2\nnet/ipv4/conf/eth0.1/rp_filter = 1\n"
CONFIG = """#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.0 Kernel Configuration
#
CONFIG_CC_VERSION_TEXT="gcc 12"
#
# General setup
#
CONFIG_HZ=250
# CONFIG_NUMA is not set
CONFIG_BASE=0x100000
# end of General setup
"""
PATCH = """From: a
diff --git a/kernel/sched/fair.c b/kernel/sched/fair.c
index 1..2 100644
--- a/kernel/sched/fair.c
+++ b/kernel/sched/fair.c
@@ -1,2 +1,2 @@ int x
 same
-old
+new
"""


def no_tuned(suite: str) -> UnpackedPackage:
    raise RequestError(f"nothing is fetched here: {suite}")


def as_profile(path: Path) -> None:
    sources = Sources(no_tuned, ("vm.swappiness", "net.ipv4.conf.all.rp_filter"), installed=Folders([]))
    read_profile(str(path), sources, MachineFacts((0, 1, 2, 3), cpuinfo="model name : x"))


def as_events(path: Path) -> None:
    content = path.read_bytes()
    read_boot(content)
    read_trial(content, PLAN)


def as_output(path: Path) -> None:
    for parse in parsers().values():
        with contextlib.suppress(AjusteError):
            parse(path.read_text())


OUTPUTS = Path(__file__).with_name("outputs") / "outputs"
READERS: dict[str, tuple[str, Callable[[Path], object], Sequence[str]]] = {
    "study": ("study.toml", read_study, [SMALL, *(path.read_text() for path in STUDIES)]),
    "tuned": ("tuned.conf", as_profile, [TUNED]),
    "sysctl.d": ("it.conf", as_profile, [SYSCTL]),
    "kernel configuration": ("config", lambda path: parse_config(path.read_text(), "config"), [CONFIG]),
    "patch": ("it.patch", lambda path: read_patches([path]), [PATCH]),
    "events": ("events", as_events, [(CONTRACT / "events/trial.jsonl").read_text()]),
    "output of workloads": ("out", as_output, [path.read_text() for path in sorted(OUTPUTS.iterdir())]),
}


def judge(read: Callable[[Path], object], path: Path, text: str) -> None:
    """Read it within the bounds, or see it refused in words that can be shown."""
    path.write_text(text, errors="surrogatepass", newline="")
    refused = None
    try:
        with bounded():
            read(path)
    except AjusteError as error:
        refused = error
    except Exception as error:
        error.add_note(f"input of {len(text)} characters: {text[:3000]!r}")
        raise
    if refused is not None:
        assert refused.message
        assert all(len(shortened(line)) <= 2001 for line in str(refused).split("\n"))


@pytest.mark.timeout(30_000)
@pytest.mark.parametrize("kind", READERS)
def test_no_content_breaks_a_reader(kind: str, tmp_path: Path) -> None:
    name, read, seeds = READERS[kind]
    source = random.Random(kind)
    for _ in range(EXAMPLES):
        judge(read, tmp_path / name, mutated(source.choice(seeds), source))


LONG = {
    "one character": lambda piece: piece * (LARGE // len(piece)),
    "a line for each": lambda piece: f"{piece}\n" * (LARGE // (len(piece) + 1)),
    "an end apart": lambda piece: piece * (LARGE // len(piece)) + "!",
}


@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("kind", READERS)
def test_100_kb_of_anything_are_judged_soon(kind: str, shape: str, tmp_path: Path) -> None:
    """Judge what a pattern that backtracks, or a search for what was meant, would take minutes for."""
    name, read, seeds = READERS[kind]
    for piece in (
        *'"[{(,. \t9aA#-=/\\$:',
        "a.",
        "[a]",
        "a=1",
        "${a",
        "${f:",
        "CONFIG_A=y",
        "--- a/b",
        "[[factor]]",
        "1,",
    ):
        judge(read, tmp_path / name, LONG[shape](piece))
        judge(read, tmp_path / name, seeds[0] + LONG[shape](piece))


HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@cache
def allowed_tags() -> frozenset[str]:
    """Return those of a report in which nothing is hostile."""
    return frozenset(tags(report("a", "b", "m")[0])) | {"<wbr"}  # where a long word may be broken


def tags(html: str) -> list[str]:
    return re.findall(r"<[a-z][a-z0-9-]*(?: on\w+)?", html)


def report(a: str, b: str, metric: str) -> tuple[str, str, str]:
    """Return the report as HTML, on a terminal, and as Markdown."""
    rows = "".join(f"{json_field(name)},{value}\n" for name in (a, b) for value in (1, 2, 3))
    table = read_source(ResultSource(f"configuration,{json_field(metric)}\n{rows}", a, Path("f.csv")), "csv")
    results = analyse_table(table, TableQuestion(), files=(a,))
    file = io.StringIO()
    report = results_report(results)
    print_report(report, Console(file=file, width=200), path=Path(b.replace("\0", "")))
    return render_html(report), file.getvalue(), markdown(report)


def json_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.timeout(30_000)
def test_stored_text_is_text_wherever_it_is_shown() -> None:
    source = random.Random("text")
    seeds = (
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[red]a[/red]",
        "\x1b[2Ja",
        "`a` | b",
        "{{ 1 }}",
    )
    for _ in range(max(20, EXAMPLES // 50)):
        a, b, metric = (mutated(source.choice(seeds), source)[:150] for _ in range(3))
        try:
            html, terminal, text = report(a, f"{b}2", metric)
        except RequestError:
            continue
        assert set(tags(html)) <= allowed_tags(), (a, b, metric)
        for output in (terminal, text):
            left = {c for c in output if c not in "\n\t\u200c\u200d" and unicodedata.category(c) in HIDDEN}
            assert not left, (a, b, metric, left)


def test_values_of_json_may_be_as_deep_as_they_like(tmp_path: Path) -> None:
    for depth in (500, 990, 5000, LARGE // 2):
        text = "[" * depth + "]" * depth
        for name in ("events", "output of workloads"):
            file, read, _ = READERS[name]
            judge(read, tmp_path / file, json.dumps({"event": 1})[:-1] + f', "a": {text}}}\n')


NAMED: dict[str, Callable[[Path], object]] = {
    "study": read_study,
    "machine": lambda path: catalogue().find_machine(path.name, path.parent),
    "patch": lambda path: read_patches([path]),
    "config": lambda path: read_config_file(path, Home(path.parent, path.parent / "cache", path.parent)),
    "profile": lambda path: read_text(path),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", NAMED)
def test_a_reader_of_a_named_file_never_waits_for_a_writer(name: str, tmp_path: Path) -> None:
    """A stranger's directory may have a FIFO where a study names a file."""
    fifo = tmp_path / "named.toml"
    os.mkfifo(fifo)
    with pytest.raises(RequestError):
        NAMED[name](fifo)
