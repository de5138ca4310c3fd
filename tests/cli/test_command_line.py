"""The command by which a run is known says all that was measured, and not how it was shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import pytest
import typer

from ajuste.cli.main import whole_application
from ajuste.cli.showing import OF_OUTPUT, command_line
from ajuste.model.continuation import CONTINUATION, REPRODUCE
from ajuste.run.outcome import results_of
from ajuste.store.store import Store
from ajuste.study.command_line.option import options_of, words_of
from ajuste.study.command_line.request import Request
from looped import each
from unfinished import undecided

MEASURED_AGAIN: Final = ("run", "compare", "ablate", "tune", "suite", "live", "gate", "history", "kernel bisect")
GOES_ON: Final = ("run", "compare", "ablate")
COMMAND: Final = ["--", "sh", "-c", "a 'b'", "--json", "--", "job", "--fresh"]
EXACTER: Final = frozenset({"kernel", "seed", "fresh"})
"""Options that a line gives more exactly than the person did."""
BUDGET: Final = frozenset({"blocks", "max_time"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


@cache
def whole() -> Any:
    return typer.main.get_command(whole_application())


def parsed(words: Sequence[str]) -> Any:
    """Return the context of a command line; nothing of it is carried out."""
    command, rest = whole(), list(words)
    context = typer.Context(command, info_name="ajuste")
    while rest and rest[0] in getattr(command, "commands", {}):
        name = rest.pop(0)
        command = command.commands[name]
        if not rest or rest[0] not in getattr(command, "commands", {}):
            return command.make_context(name, rest, parent=context)
        context = typer.Context(command, info_name=name, parent=context)
    raise AssertionError(words)


def parameters_of(name: str) -> list[Any]:
    command = whole()
    for word in name.split():
        command = command.commands[word]
    return list(command.params)


def words_for(parameter: Any) -> list[str]:
    """Return words that give ``parameter`` a value other than its default."""
    if parameter.param_type_name == "argument":
        return [] if parameter.name == "words" else ["a study.toml"]
    if parameter.is_flag:
        return [parameter.secondary_opts[0] if parameter.default is True else parameter.opts[0]]
    annotation = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        value = next(value for value in get_args(annotation) if value != parameter.default)
    else:
        value = "7" if annotation in (int, float) else "-20,0 'x'=\"y\""
    return [parameter.opts[0], value] * (2 if parameter.multiple else 1)


def line_of(name: str, chosen: Sequence[Any]) -> list[str]:
    """Return a command line of ``name`` with the ``chosen`` options and all that it requires, in its way of writing."""
    every = parameters_of(name)
    required = [p for p in every if p not in chosen and (p.required or p.name == "study")]
    options = [word for p in (*required, *chosen) for word in words_for(p)]
    return ["ajuste", *name.split(), *options, *(COMMAND if any(p.name == "words" for p in every) else [])]


def wanted(line: str, *, but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return what a command line asks to measure."""
    context = parsed(shlex.split(line)[1:])
    of_output = {p.name for p in context.command.params if set(p.opts) & OF_OUTPUT}
    return {name: value for name, value in context.params.items() if name not in of_output | but}


@each(MEASURED_AGAIN)
def test_a_command_line_keeps_every_option_that_changes_what_is_measured(name: str) -> None:
    for parameter in parameters_of(name):
        typed = shlex.join(line_of(name, [parameter]))
        line = command_line(parsed(shlex.split(typed)[1:]))
        assert wanted(line) == wanted(typed), parameter.opts
        assert not set(shlex.split(line.partition(" -- ")[0])) & OF_OUTPUT
    typed = shlex.join(line_of(name, parameters_of(name)))
    assert wanted(command_line(parsed(shlex.split(typed)[1:]))) == wanted(typed)


@each(MEASURED_AGAIN)
def test_every_line_of_a_report_asks_for_what_was_asked(name: str, tmp_path: Path, store: Store) -> None:
    typed = shlex.join(line_of(name, parameters_of(name)))
    run = undecided(command_line(parsed(shlex.split(typed)[1:])), tmp_path, store)
    results = results_of(run, store)
    (again,) = REPRODUCE.of(results)
    assert wanted(again, but=EXACTER) == wanted(typed, but=EXACTER)
    continuation = CONTINUATION.of(results)
    assert (continuation is not None) == (name in GOES_ON)
    if continuation is not None:
        assert wanted(continuation.command, but=BUDGET) == wanted(typed, but=BUDGET)


def test_the_words_of_a_request_parse_to_that_request() -> None:
    hints = get_type_hints(Request)
    values: dict[Any, Any] = {
        tuple[str, ...]: ("-20 'x'", "b"),
        tuple[Path, ...]: (Path("a b"),),
        bool: True,
        int | None: 7,
    }
    request = Request(**{name: values.get(hints[name], "-5 'x'") for name in options_of(Request)})
    context = parsed(["compare", *words_of(request)])
    for name in options_of(Request):
        value = context.params[name]
        assert (tuple(value) if isinstance(value, list) else value) == getattr(request, name)


def test_words_about_the_showing_are_left_out() -> None:
    typed = "compare --set a=1,2 --quiet --wait 10m --open --wait=1h --save x.toml --force --json -- job --json 'a b'"
    assert command_line(parsed(shlex.split(typed))) == "ajuste compare --set a=1,2 -- job --json 'a b'"


def test_a_word_with_a_space_stays_one() -> None:
    assert command_line(parsed(["analyse", "two words.csv", "--json"])) == "ajuste analyse 'two words.csv'"


def test_options_stay_in_the_order_in_which_they_were_given() -> None:
    typed = "ajuste compare --seed 3 --nice 0,5 --blocks 3 --set a=1,2 --as-root -- job"
    assert command_line(parsed(shlex.split(typed)[1:])) == typed
