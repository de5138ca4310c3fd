"""``ajuste course``: sheets for students, and marks for their teachers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ajuste.cli.command_line import Commands
from ajuste.cli.options import Jobs, Json, Quiet, example
from ajuste.machine.files import require_no_foreign_link, write_text
from ajuste.machine.home import ajuste_version, home
from ajuste.model.error import RequestError
from ajuste.model.wording import count_of, visible_line
from ajuste_course.sheet import MeasureStep, Sheet, SimulateStep, find_sheet, read_sheet, sheet_files
from ajuste_course.translation import chosen_language, copy_translations, languages, say, translated, update_translation
from ajuste_course.workbook import Shelf, Workbook, next_step, read_prediction

if TYPE_CHECKING:
    from ajuste_course.marking import Marked

app = Commands()

SheetName = Annotated[
    str, typer.Argument(metavar="SHEET", help="A sheet (see `ajuste course list`), or the file of one.")
]
Student = Annotated[
    str | None,
    typer.Option(
        "--student", metavar="NUMBER", help="Your student number (default: the one who began the sheet here)."
    ),
]
Language = Annotated[
    str | None,
    typer.Option("--language", metavar="CODE", help="Language of the texts: en, es, ru, … (default: the terminal's)."),
]
Replace = Annotated[bool, typer.Option("--force", help="Replace files that you made before.")]


@app.callback()
@example("ajuste course list", "ajuste course open granularity --student 1234567")
def course() -> None:
    """Exercise sheets: predict, measure your own configuration in a guest, answer, and hand in.

    Each student measures other values. A teacher's machine measures a sample again, and marks.
    """


@app.command("list")
@example("ajuste course list")
def list_(as_json: Json = False) -> None:
    """List the sheets."""
    sheets = [(path, read_sheet(path)) for path in sheet_files().values()]
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {
                        "name": sheet.name,
                        "version": sheet.version,
                        "title": sheet.title,
                        "summary": sheet.summary,
                        "minutes": sheet.minutes,
                        "points": sheet.points,
                        "languages": [sheet.language, *languages(path)],
                    }
                    for path, sheet in sheets
                ],
                indent=2,
            )
        )
        return
    for path, sheet in sheets:
        known = " ".join([sheet.language, *languages(path)])
        typer.echo(f"{sheet.name:<16}  {sheet.minutes:>3} min  {sheet.points:g} points  {known}")
        typer.echo(f"    {sheet.summary}")


@app.command()
@example("ajuste course show granularity --student 1234567", "ajuste course show granularity --language es > sheet.md")
def show(sheet: SheetName, student: Student = None, language: Language = None) -> None:
    """Print a sheet as Markdown, with the values of one student."""
    from ajuste_course.guide import sheet_text
    from ajuste_course.student import check_student, drawn

    texts, code = _texts(sheet, language)
    values = drawn(texts, check_student(texts, student)) if student is not None else {}
    typer.echo(sheet_text(texts, values, code), nl=False)


@app.command("open")
@example(
    "ajuste course open granularity --student 1234567",
    "ajuste course open granularity --student 1234567 --language es",
    "ajuste course open granularity --student 1234567 --notebook granularity.ipynb",
)
def open_(
    sheet: SheetName,
    student: Student = None,
    language: Language = None,
    notebook: Annotated[
        Path | None, typer.Option("--notebook", metavar="FILE", help="Write the sheet as a Jupyter notebook instead.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again: forget predictions and answers.")] = False,
    force: Replace = False,
    jobs: Jobs = None,
) -> None:
    """Work through a sheet: read, predict, measure and answer.

    Leave it with Ctrl-C at any time; the same command goes on. Without a terminal it says what comes next.
    """
    plain = read_sheet(find_sheet(sheet))
    texts, code = _texts(sheet, language)
    shelf = Shelf(home())
    workbook = _workbook_of(shelf, plain, student, code, fresh=fresh)
    if notebook is not None:
        from ajuste_course.notebook import notebook_text

        _write(notebook, notebook_text(sheet, texts, workbook.student, code), force=force)
        typer.echo(f"{notebook}: open it with jupyter lab")
        return
    if not sys.stdin.isatty():
        _show_status(plain, texts, workbook, sheet)
        return
    from ajuste.report.console import Console
    from ajuste_course.guide import Guide

    def measure(step: MeasureStep, current: Workbook) -> Workbook:
        return _measured(plain, step, current, shelf, jobs=jobs, quiet=False, as_json=False)

    def make(step: SimulateStep, current: Workbook) -> str:
        return str(_data_file(plain, step, current, None, force=True))

    guide = Guide(texts, plain, code, shelf, Console(file=sys.stdout), measure, make)
    with _left(code):
        workbook = guide.lead(workbook)
    typer.echo(say(code, "All done. Hand it in: ajuste course hand-in {sheet}", sheet=sheet))


@contextmanager
def _left(code: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, typer.Abort) as stop:
        interrupted = KeyboardInterrupt()
        interrupted.add_note(say(code, "What you did is kept; the same command goes on."))
        raise interrupted from stop


@app.command()
@example("ajuste course status granularity")
def status(sheet: SheetName, student: Student = None, as_json: Json = False) -> None:
    """Say what you have done of a sheet, and what comes next."""
    texts, _ = _texts(sheet, None)
    plain = read_sheet(find_sheet(sheet))
    workbook = Shelf(home()).find(plain, student)
    if as_json:
        from ajuste_course.hand_in import missing

        typer.echo(json.dumps({**workbook.model_dump(mode="json"), "missing": missing(plain, workbook)}, indent=2))
        return
    _show_status(plain, texts, workbook, sheet)


@app.command()
@example('ajuste course predict granularity switches falls 80% --why "each of the two runs longer at a time"')
def predict(
    sheet: SheetName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The prediction.")],
    direction: Annotated[str, typer.Argument(metavar="DIRECTION", help="rises, falls or same.")],
    size: Annotated[str, typer.Argument(metavar="[SIZE]", help="By how much: 30% or 3x.")] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why you think so.")] = "",
    student: Student = None,
) -> None:
    """Make a prediction. It can be changed until its study is measured; then it is sealed."""
    plain = read_sheet(find_sheet(sheet))
    prediction = read_prediction(direction, size, why)
    workbook = Shelf(home()).predict(plain, student, name, prediction)
    typer.echo(f"{name}: {direction}{f' to {prediction.ratio:.3g} times' if direction != 'same' else ''}")
    _next(plain, workbook, sheet)


@app.command()
@example("ajuste course measure granularity levels")
def measure(
    sheet: SheetName,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The step (default: the next one).", show_default=False)
    ] = None,
    student: Student = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Measure a step of a sheet in guests, with your own values."""
    plain = read_sheet(find_sheet(sheet))
    shelf = Shelf(home())
    workbook = shelf.find(plain, student)
    if name is None:
        steps = [step.name for step in plain.kind(MeasureStep)]
        if not steps:
            raise RequestError(f"{plain.name} measures nothing", hint=f"see ajuste course open {plain.name}")
        name = next((step for step in steps if step not in workbook.runs), steps[0])
    step = plain.find_kind(name, MeasureStep)
    workbook = _measured(plain, step, workbook, shelf, jobs=jobs, quiet=quiet, as_json=as_json)
    if not as_json:
        _next(plain, workbook, sheet)
    return 0


@app.command()
@example("ajuste course data statistics peeking -o peeking.csv")
def data(
    sheet: SheetName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The step.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The CSV file.")] = None,
    force: Replace = False,
    student: Student = None,
) -> None:
    """Write the made data of a step, for ajuste analyse."""
    plain = read_sheet(find_sheet(sheet))
    step = plain.find_kind(name, SimulateStep)
    file = _data_file(plain, step, Shelf(home()).find(plain, student), output, force=force)
    typer.echo(f"{file}: ajuste analyse {file} --baseline base --three-sigma")


@app.command()
@example("ajuste course answer granularity mean 17.3")
def answer(
    sheet: SheetName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The question.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The number of a choice, a number, or a text.")],
    student: Student = None,
) -> None:
    """Answer a question of a sheet. An answer can be changed until you hand in."""
    plain = read_sheet(find_sheet(sheet))
    workbook = Shelf(home()).answer(plain, student, name, value)
    typer.echo(f"{name}: {visible_line(str(workbook.answers[name].value))}")
    _next(plain, workbook, sheet)


@app.command("hand-in")
@example("ajuste course hand-in granularity -o 1234567.ajuste")
def hand_in(
    sheet: SheetName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to hand in (default: SHEET-NUMBER.ajuste)."),
    ] = None,
    force: Replace = False,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Hand in although steps are missing.")] = False,
    student: Student = None,
    as_json: Json = False,
) -> None:
    """Put predictions, runs and answers into one file for your teacher.

    The runs have all that the guests printed, and what this machine is.
    """
    from ajuste.store.store import Store
    from ajuste_course.hand_in import SUFFIX, missing, write_hand_in

    plain = read_sheet(find_sheet(sheet))
    workbook = Shelf(home()).find(plain, student)
    lacking = missing(plain, workbook)
    if lacking and not unfinished:
        raise RequestError(
            f"not done yet: {', '.join(lacking)}",
            hint=f"finish it with ajuste course open {sheet}, or add --unfinished",
        )
    file = output or Path(f"{plain.name}-{workbook.student}{SUFFIX}")
    with Store(home().store_url) as store:
        about = write_hand_in(file, workbook, store, ajuste_version(), overwrite=force)
    if as_json:
        document = {"file": str(file), "student": workbook.student, "sheet": plain.name, "digest": about.digest}
        typer.echo(json.dumps({**document, "missing": lacking}, indent=2))
        return
    typer.echo(f"{file}: hand in this file; its digest begins with {about.digest[:12]}")


@app.command()
@example(
    "ajuste course mark granularity hand-ins/*.ajuste -o marks",
    "ajuste course mark granularity hand-ins/*.ajuste -o marks --students class.csv --sample 8",
)
def mark(
    sheet: SheetName,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Hand-ins: FILE.ajuste.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the tables and the page of the class here."),
    ] = None,
    students: Annotated[
        Path | None, typer.Option("--students", metavar="FILE", help="A CSV file with the numbers of the class.")
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option("--points", metavar="FILE", help="The points that you gave to texts: to-mark.csv, filled in."),
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", min=0, max=1000, metavar="N", help="Trials of each run to measure again.")
    ] = 4,
    force: Replace = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Mark hand-ins: measure a sample again, check that figures are each student's own, and give points.

    Writes marks.csv, moodle.csv, to-mark.csv, class.html and feedback for each student to DIR. Exit code 3 if a
    hand-in is not accepted.
    """
    from ajuste.catalogue.loader import catalogue
    from ajuste.run.testbed import RunOptions
    from ajuste_course.gradebook import marks_csv, moodle_csv, to_mark_csv
    from ajuste_course.marking import Marking, mark_all, read_class, read_points
    from ajuste_course.progress import MarkingDisplay

    plain = read_sheet(find_sheet(sheet))
    if not plain.has_key:
        raise RequestError(f"{sheet} is a copy for students, without the key", hint="use the sheet that has one")
    if output is not None:
        _check_output(output, force=force)
    marking = Marking(
        sample=sample,
        students=read_class(students) if students else frozenset(),
        points=read_points(points) if points else {},
    )
    with MarkingDisplay(len(files), quiet=quiet or as_json) as display:
        options = RunOptions(home(), jobs=jobs, say=display.say)
        marked = mark_all(plain, files, marking, catalogue(), options, display, display.marked)
    if output is not None:
        from ajuste.report.html import write_report
        from ajuste_course.class_report import class_report

        _write(output / "marks.csv", marks_csv(plain, marked), force=True)
        _write(output / "moodle.csv", moodle_csv(plain, marked), force=True)
        _write(output / "to-mark.csv", to_mark_csv(marked), force=True)
        write_report(class_report(plain, marked), output / "class.html")
        _write_feedback(find_sheet(sheet), marked, output)
    refused = [each for each in marked if each.decision == "not accepted"]
    if as_json:
        from ajuste_course.gradebook import marks_document

        typer.echo(json.dumps(marks_document(plain, marked), indent=2))
    else:
        _show_marks(plain, marked, output)
    return 3 if refused else 0


@app.command("check")
@example("ajuste course check granularity", "ajuste course check my-sheet.toml --student 1234567")
def check_sheet(
    sheet: SheetName,
    student: Annotated[
        str, typer.Option("--student", metavar="NUMBER", help="Check with this student's values.")
    ] = "1",
    as_json: Json = False,
) -> None:
    """Check a sheet that you wrote: studies, figures and verdicts exist, whatever is drawn."""
    from ajuste.catalogue.loader import catalogue
    from ajuste.run.testbed import RunOptions
    from ajuste_course.check import checked_studies
    from ajuste_course.student import drawn, ways

    plain = read_sheet(find_sheet(sheet))
    studies = checked_studies(plain, student, catalogue(), RunOptions(home()))
    values = {name: list(drawn_values) for name, drawn_values in drawn(plain, student).items()}
    if as_json:
        document = {"sheet": plain.name, "digest": plain.digest, "ways": ways(plain), "points": plain.points}
        typer.echo(json.dumps({**document, "drawn": values, "studies": studies, "key": plain.has_key}, indent=2))
        return
    typer.echo(
        f"{plain.name}, version {plain.version}: {count_of(len(plain.steps), 'step')}, {plain.points:g} points, "
        f"{count_of(ways(plain), 'different set')} of values"
    )
    for name, configurations in studies.items():
        typer.echo(visible_line(f"  {name}: {'; '.join(configurations)}"))
    if not plain.has_key:
        typer.echo("  A question has neither figure, answer nor rubric: hand-ins cannot be marked with it.")


@app.command()
@example("ajuste course students my-sheet.toml -o for-students.toml")
def students(
    sheet: SheetName,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file for students.")],
    force: Replace = False,
) -> None:
    """Write a copy of a sheet for students: without answers, rubrics and explanations.

    A hand-in of the copy is marked with the sheet itself.
    """
    import tomlkit

    from ajuste_course.sheet import student_document

    plain = read_sheet(find_sheet(sheet))
    _write(output, tomlkit.dumps(student_document(plain)), force=force)
    files = [output, *copy_translations(find_sheet(sheet), output)]
    typer.echo(f"{' '.join(map(str, files))}: give this to the students; mark with {sheet}")


@app.command()
@example("ajuste course translate my-sheet.toml es")
def translate(
    sheet: Annotated[Path, typer.Argument(metavar="FILE", help="The file of a sheet.")],
    language: Annotated[str, typer.Argument(metavar="CODE", help="The language: es, ru, …")],
) -> None:
    """Write or update the translation of a sheet: a gettext file beside it, for any editor of such files."""
    if not (language.isalpha() and language.islower() and 2 <= len(language) <= 3):
        raise RequestError(f"CODE {visible_line(language)}: expected two or three small letters, such as es")
    file, open_texts = update_translation(sheet, language)
    typer.echo(f"{file}: {count_of(open_texts, 'text')} to translate")


def _texts(sheet: str, language: str | None) -> tuple[Sheet, str]:
    path = find_sheet(sheet)
    code = chosen_language(language, path, read_sheet(path))
    return translated(path, code), code


def _workbook_of(shelf: Shelf, sheet: Sheet, student: str | None, code: str, *, fresh: bool) -> Workbook:
    from ajuste_course.student import check_student

    if student is None:
        student = shelf.find(sheet, None).student
    return shelf.begin(sheet, check_student(sheet, student), code, fresh=fresh)


def _measured(
    sheet: Sheet, step: MeasureStep, workbook: Workbook, shelf: Shelf, *, jobs: int | None, quiet: bool, as_json: bool
) -> Workbook:
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.measuring import measure as measure_study
    from ajuste.cli.showing import Showing
    from ajuste.run.testbed import RunOptions
    from ajuste.store.store import Store
    from ajuste_course.study import student_study

    workbook.require_predictions(sheet, step.name)
    seed = workbook.seed(sheet, step.name)
    study = student_study(sheet, step, workbook.student, seed, catalogue())
    named = f"ajuste course measure {sheet.name} {step.name}"
    measure_study(
        study,
        catalogue(),
        Showing(quiet=quiet, as_json=as_json),
        named=named,
        run_options=RunOptions(home(), jobs=jobs),
        anew=lambda *_: False,
    )
    with Store(home().store_url) as store:
        run = store.find_run(study.name)
    return shelf.update(sheet, workbook.student, lambda now: now.with_measured(sheet, step.name, run.id, seed))


def _data_file(sheet: Sheet, step: SimulateStep, workbook: Workbook, output: Path | None, *, force: bool) -> Path:
    from ajuste_course.simulation import made_data

    workbook.require_predictions(sheet, step.name)
    file = output or Path(f"{sheet.name}-{step.name}.csv")
    made = made_data(sheet, step, workbook.student, workbook.seed(sheet, step.name))
    _write(file, made.text(), force=force)
    return file


def _write(file: Path, text: str, *, force: bool) -> None:
    if file.exists() and not force:
        raise RequestError(f"{file} exists; expected a new file", hint="choose another name, or add --force")
    try:
        require_no_foreign_link(file.absolute().parent)
        write_text(file, text)
    except OSError as failure:
        raise RequestError(f"{file}: {failure.strerror or failure}", hint="choose a FILE that you can write") from None


def _check_output(output: Path, *, force: bool) -> None:
    # Before the work: marking takes minutes.
    names = ("marks.csv", "moodle.csv", "to-mark.csv", "class.html", "feedback")
    if not force and (there := next((output / name for name in names if (output / name).exists()), None)):
        raise RequestError(f"{there} exists; expected a new file", hint="choose another name, or add --force")
    try:
        (output / "feedback").mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise RequestError(f"{output}: {failure.strerror or failure}", hint="choose a DIR that you can write") from None
    require_no_foreign_link(output)


def _write_feedback(sheet_file: Path, marked: list[Marked], output: Path) -> None:
    from ajuste_course.feedback import feedback_text

    known = (read_sheet(sheet_file).language, *languages(sheet_file))
    texts = {code: translated(sheet_file, code) for code in known}
    for each in marked:
        if each.counts and each.is_accepted:
            code = each.language if each.language in texts else known[0]
            name = re.sub(r"[^A-Za-z0-9._-]", lambda match: f"%{ord(match[0]):x}", each.student)
            text = feedback_text(texts[known[0]], texts[code], each, code)
            _write(output / "feedback" / f"student-{name}.md", text, force=True)


def _next(sheet: Sheet, workbook: Workbook, named: str) -> None:
    typer.echo(visible_line(_next_command(sheet, workbook, named)))


def _next_command(sheet: Sheet, workbook: Workbook, named: str) -> str:
    index = next_step(sheet, workbook)
    if index == len(sheet.steps):
        return f"All done. Hand it in: ajuste course hand-in {named}"
    step: Any = sheet.steps[index]
    arguments = {
        "predict": f"{named} {step.name} rises|falls|same SIZE --why TEXT",
        "measure": f"{named} {step.name}",
        "ask": f"{named} {step.name} ANSWER",
    }
    command = {"predict": "predict", "measure": "measure", "ask": "answer"}[step.kind]
    return f"Next: ajuste course {command} {arguments[step.kind]}"


def _show_status(sheet: Sheet, texts: Sheet, workbook: Workbook, named: str) -> None:
    typer.echo(visible_line(f"{texts.title} ({sheet.name}, version {sheet.version}), student {workbook.student}"))
    for step in sheet.steps:
        name: str = getattr(step, "name", "")
        kinds: dict[str, Collection[str]] = {
            "predict": workbook.predictions,
            "measure": workbook.runs,
            "ask": workbook.answers,
        }
        done = kinds.get(step.kind)
        if done is not None:
            typer.echo(f"  {'done' if name in done else 'open':<5} {step.kind:<8} {name}")
    _next(sheet, workbook, named)


def _show_marks(sheet: Sheet, marked: list[Marked], output: Path | None) -> None:
    refused = sum(each.decision == "not accepted" for each in marked)
    look = sum(each.decision == "look" for each in marked)
    files = sum(bool(each.file) for each in marked)
    again = sum(each.measured_again for each in marked)
    typer.echo(
        f"{count_of(files, 'hand-in')} of {sheet.name}: {refused} not accepted, {look} to look at; "
        f"{count_of(again, 'trial')} measured again."
    )
    for each in marked:
        name = each.student or each.file
        to_mark = f" and {each.open_points:g} to mark" if each.open_points else ""
        points = "" if each.problem or not each.file else f"{each.points:g} of {sheet.points:g} points{to_mark}"
        typer.echo(visible_line(f"  {name:<16} {each.decision:<18} {points}"))
        for text in (each.problem, *(finding.text for finding in each.findings)):
            if text:
                typer.echo(visible_line(f"      {text}"))
    if output is not None:
        typer.echo(visible_line(f"Tables and page: {output}"))
