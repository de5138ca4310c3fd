"""Writes the gallery: ``python -m benchmarks.gallery [PAGE …]`` carries out the studies of all pages, or of those that
are named, and puts what came out into them. ``--stale`` only lists the pages whose inputs have changed, and why.

A study that was carried out already with this build is not measured again.
"""

from __future__ import annotations

import json
import sys

from rich.console import Console

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.study.builtin import find_study
from ajuste.study.read import read_study
from benchmarks.gallery.build import record, records
from benchmarks.gallery.inputs import agent, inputs
from benchmarks.gallery.marks import put
from benchmarks.gallery.pages import IMAGES, INDEX, MeasuredCommand, Page, pages
from benchmarks.gallery.shown import ajuste, of_run


def main(names: list[str]) -> int:
    every = pages()
    if names == ["--stale"]:
        print(stale(every))
        return 0
    unknown = set(names) - {page.file for page in every}
    if unknown:
        print(f"there is no page {', '.join(sorted(unknown))}; there are {', '.join(p.file for p in every)}")
        return 2
    console = Console(stderr=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for page in every:
        if not names or page.file in names:
            console.print(f"{page.file}: {', '.join(page.marks)}", highlight=False)
            write(page)
            record(page, inputs(page, home()), agent())
    INDEX.write_text(put(INDEX.read_text(encoding="utf-8"), "pages", index(every)), encoding="utf-8")
    return 0


def stale(every: tuple[Page, ...]) -> str:
    """List the pages of ``every`` whose inputs are not those of now, with the reasons, and how to make them anew."""
    stored = records()
    reasons = {page.file: stored[page.file].changes(inputs(page, home())) for page in every}
    changed = [page for page, why in reasons.items() if why]
    lines = [f"{page}\n" + "".join(f"  {reason}\n" for reason in reasons[page]) for page in changed]
    lines.append(f"{len(changed)} of {len(every)} pages are stale.")
    if changed:
        lines.append(f"To measure them again: python -m benchmarks.gallery {' '.join(changed)}")
    others = sum(stored[page.file].agent != agent() for page in every)
    if others:
        lines.append(
            f"Another agent, or one that is not recorded, measured {others} pages: figures may differ slightly."
        )
    return "\n".join(lines)


def write(page: Page) -> None:
    """Carry out what a page shows, and put it there."""
    for words in page.before:
        ajuste(*words)
    text = page.path.read_text(encoding="utf-8")
    for number, measurement in enumerate(page.run, start=1):
        text = put(text, measurement.mark, measured(measurement, f"{page.file}-{number}"))
        page.path.write_text(text, encoding="utf-8")
    for command in page.show:
        text = put(text, command.mark, f"```text\n$ ajuste {command.mark}\n{ajuste(*command.command).rstrip()}\n```")
        page.path.write_text(text, encoding="utf-8")


def measured(measurement: MeasuredCommand, name: str) -> str:
    """Measure a command; return the result as Markdown, below its pictures, whose files begin with ``name``."""
    run = json.loads(ajuste(*_quietly(measurement.command)))["run"]
    return of_run(run, f"```console\n$ ajuste {measurement.mark}\n```", name, measurement.metrics, measurement.pictures)


def index(every: tuple[Page, ...]) -> str:
    """A table of all pages: experiment, page, studies with their questions, the digest of their inputs."""
    rows = ["| | Page | Study | Question | Inputs |", "|---|---|---|---|---|"]
    stored = records()
    for page in sorted(every, key=lambda page: page.experiment):
        title = page.path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        link = f"[{title}]({page.file}.md)"
        studies = dict.fromkeys(measurement.study for measurement in page.run if measurement.study is not None)
        digest = f"`{stored[page.file].digest}`"
        rows += [f"| {page.experiment} | {link} | `{study}` | {question(study)} | {digest} |" for study in studies]
        if not studies:
            rows.append(f"| {page.experiment} | {link} | `ajuste {page.marks[0].split()[0]}` | | {digest} |")
    return "\n".join(rows)


def question(study: str) -> str:
    return read_study(find_study(study), catalogue(), parse_kernel=parse_spec).question


def _quietly(command: tuple[str, ...]) -> tuple[str, ...]:
    """Add the options that have the results printed as a document, before the command that is measured."""
    place = command.index("--") if "--" in command else len(command)
    return (*command[:place], "--quiet", "--json", *command[place:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
