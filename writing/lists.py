"""Pages of the reference that list what plug-ins, the catalogue and tables of files say of themselves."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import ajuste
import ajuste_live.sources
from ajuste.catalogue.loader import catalogue
from ajuste.model.capability import ASKERS, KINDS, Asker, Kind, Rule, rule
from ajuste.model.metric import Metric
from ajuste.model.plugins import modules
from ajuste.outputs.format import DocumentFormat, TextFormat
from ajuste.outputs.programs import document_formats, text_formats
from ajuste.outputs.services import service_metrics
from ajuste.report.markdown import markdown
from ajuste.study.metrics import MODELLED, PARTS_OF_INSTRUCTIONS
from ajuste_ci.project import BenchmarkTable, ReproducerTable
from ajuste_ci.suite.file import GuestTable, MemberTable, SuiteTable
from ajuste_course.sheet import (
    AskStep,
    Draw,
    ExpectedVerdict,
    Figure,
    MeasureStep,
    PredictStep,
    Sheet,
    SimulateStep,
    TextStep,
)
from ajuste_guest.commands.transfer import atlas_report
from ajuste_guest.transfer.answers import shipped_atlas

ROOT: Final = Path(__file__).resolve().parent.parent
_SOURCE: Final = re.compile(r"(?:^|\s)Sources?: .*", re.DOTALL)
"""Sources of a module's knowledge: for those who read its code."""


def metrics_page(note: str) -> str:
    """Return the page of what a trial can yield, whatever it runs."""
    return "\n".join(
        [
            "# Metrics\n\nThis page lists the metrics that trials have besides those of their "
            "[workload](workloads.md). `elapsed@p95` is a [quantile](../explanation/statistics.md#quantiles) of one.\n",
            note,
            "## Of every trial\n\nThe last ones need a CPU that counts them, or a guest with the virtual clock.\n",
            _metric_rows(catalogue().metrics.values()),
            "`cpu-share` and, for each background load, `cpu-share.background-1` … are the share of one CPU in per "
            "cent.\n",
            "## Of services\n\nWith several services each has its own too: `service-cpu.redis-server`. CPU time of "
            "processes that ended earlier is in steps of 10 ms; memory and switches are of those that live at the "
            "end.\n",
            _metric_rows(service_metrics(("NAME",))),
            "## Of the virtual clock\n\nCounted by [the lens](../explanation/lens.md), as are `instructions` and "
            "`branches` there.\n",
            _metric_rows(PARTS_OF_INSTRUCTIONS),
            "## Of a modelled machine\n\nComputed by [its model](../explanation/modelled-machine.md), for the "
            "workload's tasks in user space and in the kernel. An access of memory that crosses two lines is one.\n",
            _metric_rows(MODELLED),
            "| Machine | What |",
            "|---|---|",
            *(f"| `{name}` | {machine.title} |" for name, machine in catalogue().machines.items()),
            "",
        ]
    )


def formats_page(note: str) -> str:
    """Return the page of what `ajuste analyse` and `ajuste live` read."""
    reads: dict[str, str] = {}
    formats: list[TextFormat | DocumentFormat] = [*text_formats(), *document_formats()]
    for name, text in sorted((kind.name, kind.reads) for kind in formats):
        reads[name] = text or reads.get(name, "")
    sources = modules(sys.modules[ajuste_live.sources.__name__], "sources").values()
    return "\n".join(
        [
            "# Formats\n\nThis page lists the files that [`ajuste analyse`](../how-to/analyse.md) reads, and the "
            "sources of [`ajuste live`](../how-to/live.md).\n",
            note,
            "## Files\n\nA file is one configuration, unless it says otherwise.\n",
            "| `--format` | What is read |",
            "|---|---|",
            *(f"| `{name}` | {text} |" for name, text in sorted(reads.items())),
            "\n## Live sources\n",
            "\n".join(f"- {_description(module, whole=True)}" for module in sources) + "\n",
        ]
    )


def packages_page(note: str) -> str:
    """Return the page of what each package of Python and of Rust owns, as it says itself."""
    python = sorted(Path(ajuste.__path__[0]).glob("*/__init__.py"))
    rust = sorted((ROOT / "native").glob("*/Cargo.toml"))
    rows = [
        (f"src/ajuste/{module_file.parent.name}/", ast.get_docstring(ast.parse(module_file.read_text())))
        for module_file in python
    ]
    rows += [
        (f"packages/{manifest.parent.name}/", tomllib.loads(manifest.read_text())["project"]["description"])
        for manifest in sorted((ROOT / "packages").glob("*/pyproject.toml"))
    ]
    rows += [
        (f"native/{manifest.parent.name}/", tomllib.loads(manifest.read_text())["package"].get("description"))
        for manifest in rust
    ]
    return "\n".join(
        [
            "# Packages\n\nThis page lists what each package owns. [The architecture](../explanation/architecture.md) "
            "says how they work together.\n",
            note,
            "| Package | Owns |",
            "|---|---|",
            *(f"| `{name}` | {_paragraph(str(description)).removesuffix('.')} |" for name, description in rows),
            "",
        ]
    )


def atlas_page(note: str) -> str:
    """Return the page of how guests and hosts agreed, kind by kind and question by question."""
    report = atlas_report(shipped_atlas())
    machines = sorted({f"{question.machine}, Linux {question.host_kernel}" for question in shipped_atlas().questions})
    return "\n".join(
        [
            "# Atlas\n\nThis page shows where a guest under the virtual clock answers as its host does "
            "([From guest to host](../explanation/transfer.md)).\n",
            note,
            f"Machines: {'; '.join(machines)}.\n",
            "*Rank correlation* is Spearman's, over the effects that both know; *size off by* is the typical factor "
            "between the two effects. `python -m benchmarks atlas` asks all questions.\n",
            markdown(replace(report, sections=tuple(replace(section, depth="answer") for section in report.sections))),
        ]
    )


def capabilities_page(note: str) -> str:
    """The table of who may ask for what, as the program decides by it."""
    askers, kinds = get_args(Asker), get_args(Kind)
    owners = [
        f"`{kind.name}`: {', '.join(f'`{name}`' for name in names)}"
        for kind in catalogue().workloads.values()
        if (names := [name for name, parameter in kind.parameters.items() if parameter.chosen_by == "owner"])
    ]
    return "\n".join(
        [
            "# Capabilities\n\nThis page says who may ask Ajuste for what. Every entrance uses this one table "
            "(`src/ajuste/model/capability.py`), before anything is done.\n",
            note,
            "| Asker | Is |",
            "|---|---|",
            *(f"| {name} | {ASKERS[name]} |" for name in askers),
            "",
            "*named*: only what the owner named with `--allow-host NAME,…`. An option: only with it. –: refused.\n",
            f"| What | {' | '.join(askers)} |",
            f"|---|{'---|' * len(askers)}",
            *(f"| {KINDS[kind]} | {' | '.join(_rule(rule(name, kind)) for name in askers)} |" for kind in kinds),
            "",
            "Commands on this machine run as you, under `sudo` too. Those of agents run as the user `nobody`, in an "
            "empty directory.\n",
            "## Parameters that only the owner chooses\n",
            "Each parameter of a workload says in the catalogue who may choose it on this machine. What does not say "
            '`chosen_by = "anyone"` is the owner\'s. In a guest, all may be chosen.\n',
            *(f"- {line}" for line in owners),
            "",
        ]
    )


def _rule(decision: Rule) -> str:
    return {"no": "–", "named": "*named*"}.get(decision, f"`{decision}`" if decision.startswith("--") else decision)


def file_tables() -> dict[str, dict[str, Any]]:
    """The tables of files other than studies, by the title of their section."""
    return {
        "Suite files": SuiteTable.model_json_schema(),
        "`[[member]]` of a suite": MemberTable.model_json_schema(),
        "`guest` of a suite or member": GuestTable.model_json_schema(),
        "ajuste.toml": BenchmarkTable.model_json_schema(),
        "`[[reproducer]]` of ajuste.toml": ReproducerTable.model_json_schema(),
        "Sheets": Sheet.model_json_schema(),
        "`[draw.NAME]` of a sheet": Draw.model_json_schema(),
        '`kind = "text"`, a `[[step]]` of a sheet': TextStep.model_json_schema(),
        '`kind = "predict"`': PredictStep.model_json_schema(),
        '`kind = "measure"`': MeasureStep.model_json_schema(),
        "`[[step.expect]]` of a measure": ExpectedVerdict.model_json_schema(),
        '`kind = "simulate"`': SimulateStep.model_json_schema(),
        '`kind = "ask"`': AskStep.model_json_schema(),
        "`figure` and `per` of a question": Figure.model_json_schema(),
    }


def _metric_rows(metrics: Iterable[Metric]) -> str:
    rows = [f"| `{metric.name}` | {metric.unit} | {metric.what} |" for metric in metrics]
    return "\n".join(["| Metric | Unit | Meaning |", "|---|---|---|", *rows]) + "\n"


def _description(module: ModuleType, whole: bool = False) -> str:
    """Return what a module says of itself: its first paragraph, or all."""
    return _paragraph(_SOURCE.sub("", str(module.__doc__) if whole else str(module.__doc__).partition("\n\n")[0]))


def _paragraph(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")
