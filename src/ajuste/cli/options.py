"""Options that several commands share. Every command loads this module: it imports nothing that takes long."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from ajuste.model.error import RequestError
from ajuste.study.command_line.option import (
    MACHINES,
    OUTPUT,
    RARE,
    REBOOTS,
    SETTINGS,
    VERDICT,
    WHERE,
    Option,
    options_of,
)

T = TypeVar("T")

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study (see `ajuste studies`) or a study file.")
]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="Override the study's kernel: debian:6.12, mine:NAME, or build:SOURCE[+NAME=VALUE][+PATCH]… to build one; "
        "separate several with commas.",
        rich_help_panel=WHERE,
    ),
]
Target = Annotated[
    Literal["vm", "host"] | None,
    typer.Option(help="Override the study's target: vm (a guest) or host (this machine).", rich_help_panel=WHERE),
]
Disk = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="With --target host: the disk the study may overwrite (default: a loop device).",
        rich_help_panel=WHERE,
    ),
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=2**63 - 1, help="Override the study's seed.", rich_help_panel=RARE)
]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Override a parameter of the study's workload (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
FactorLevels = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FACTOR=LEVELS",
        help="Override the levels of a factor of the study: nice=0,10; also a range: 1ms..30ms:6:log (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACTOR=LEVEL",
        help="Leave out a level of a factor of the study (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
Report = Annotated[Path | None, typer.Option(help="Write the HTML report to this file.", rich_help_panel=OUTPUT)]
Open = Annotated[bool, typer.Option("--open", help="Open the report in a browser.", rich_help_panel=OUTPUT)]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of guests to run in parallel under the virtual clock (default: number of CPUs).",
        rich_help_panel=RARE,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=OUTPUT)]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print all details of the results.", rich_help_panel=OUTPUT)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=OUTPUT)]
AcceptRisk = Annotated[
    bool,
    typer.Option(
        "--accept-risk",
        help="Allow values that can hang this machine (`ajuste plan` lists them).",
        rich_help_panel=RARE,
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="DURATION",
        help="Wait so long while another experiment uses this machine: 10m (default: end with an error).",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "--jobs",
        min=1,
        metavar="N",
        help="Number of guests to run at once on this machine (default: number of CPUs).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Distribute trials (on hosts, whole blocks) to the workers of a scheduler: tls://HOST:8786.",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
ClusterKeys = Annotated[
    Path | None,
    typer.Option(
        "--cluster-keys",
        metavar="DIRECTORY",
        help="Directory of the key for tls://, made by `ajuste cluster keys` (default: cluster-keys in the data "
        "directory).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Allow tcp://, where anyone can listen and run commands; not as root.",
        rich_help_panel=MACHINES,
    ),
]

Canary = Annotated[
    str | None,
    typer.Option(
        "--canary",
        metavar="STAGES",
        help="Let machines of --cluster begin in stages, such as 1,5,all; stop all of them where harm is proved.",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
MachineEach = Annotated[
    int | None,
    typer.Option(
        "--machine-each",
        min=1,
        metavar="N",
        help="Blocks on each machine of --cluster (default with --canary: as many as its own verdict needs).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option(
        "--guard",
        metavar="GUARD",
        help="Stop all machines of --cluster when a trial breaks this: 'METRIC < LIMIT' or 'METRIC not worse than "
        "SHARE' (repeatable).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]


# Options of the commands that take a command to measure.


def option(help_text: str, metavar: str | None = None, *names: str, panel: str | None = None) -> Any:
    """Return an option whose default is not shown: its help names it."""
    return typer.Option(*names, help=help_text, metavar=metavar, show_default=False, rich_help_panel=panel)


Loader = Annotated[
    str | None,
    option(
        "Boot with grub, systemd-boot or kexec (default: the first that can boot once).",
        "NAME",
        "--loader",
        panel=REBOOTS,
    ),
]
FailOn = Annotated[
    list[str] | None,
    option(
        "Exit with 3 if a configuration is proved to worsen: on any deciding metric or this one, by more than LIMIT "
        "such as 2% (repeatable).",
        "worsens[:METRIC][:LIMIT]",
        "--fail-on",
        panel=VERDICT,
    ),
]
Save = Annotated[Path | None, option("Write an equivalent study file.", "FILE", panel=OUTPUT)]
Force = Annotated[bool, option("Overwrite an existing study file.", None, "--force", panel=OUTPUT)]
DryRun = Annotated[bool, option("Show the plan; change and measure nothing.", None, "--dry-run", panel=OUTPUT)]
SchedulerPrograms = Annotated[
    list[Path] | None,
    option(
        "Use this program of a BPF scheduler, such as build/scx_mine or scx_mine=build/new (repeatable).",
        "[NAME=]FILE",
        panel=RARE,
    ),
]

Fresh = Annotated[bool, option("Start a new run; do not resume an interrupted one.", None, "--fresh", panel=OUTPUT)]


# Options that several commands have together are the fields of one dataclass.


class Only:
    """The options that ``spread`` takes from a dataclass: ``names``, and those with ``other`` words here."""

    def __init__(self, names: str, **other: Option) -> None:
        self.names = (*names.split(), *other)
        self.other = other


def spread(function: Callable[..., T]) -> Callable[..., T]:
    """Give Typer an option for each field of the dataclasses that ``function`` takes."""
    signature = inspect.signature(function, eval_str=True)
    made: list[inspect.Parameter] = []
    bundles: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in signature.parameters.items():
        hint = parameter.annotation
        hint, *notes = get_args(hint) if get_origin(hint) is Annotated else [hint]
        if is_dataclass(hint):
            options = list(_options_of(hint, next((note for note in notes if isinstance(note, Only)), None)))
            bundles[name] = hint, [parameter.name for parameter in options]
            made += options
        else:
            made.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(function)
    def command(**values: Any) -> T:
        for name, (bundle, names) in bundles.items():
            chosen = {field: value for field in names if (value := values.pop(field)) is not None}
            lists = {field: tuple(value) for field, value in chosen.items() if isinstance(value, list)}
            values[name] = bundle(**chosen | lists)
        return function(**values)

    command.__signature__ = signature.replace(parameters=made)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
    return command


def _options_of(bundle: Any, only: Only | None) -> Iterator[inspect.Parameter]:
    hints, options = get_type_hints(bundle, include_extras=True), options_of(bundle)
    for field in fields(bundle):
        hint, default = hints[field.name], field.default
        if (option := options.get(field.name)) is not None:
            displayed = only.other.get(field.name, option) if only else option
            if default == ():
                hint, default = list[get_args(hint)[0]] | None, None  # type: ignore[misc]
            info = typer.Option(
                option.name,
                help=displayed.help,
                metavar=displayed.metavar,
                min=option.least,
                show_default=False,
                rich_help_panel=displayed.panel,
            )
            hint = Annotated[hint, info]
        if get_origin(hint) is Annotated and (only is None or field.name in only.names):
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


# Examples in the help of every command. A test runs them all, so that none is wrong.


F = TypeVar("F", bound=Callable[..., Any])

PROMPT: Final = "$ "
_UNWRAPPED: Final = "\b\n"  # before a paragraph whose lines are to stay as they are


def example(*commands: str) -> Callable[[F], F]:
    """Add ``commands``, as they are typed, to the help of the decorated command."""

    def with_examples(function: F) -> F:
        function.__doc__ = examples(inspect.getdoc(function) or "", *commands)
        return function

    return with_examples


def examples(text: str, *commands: str) -> str:
    """Return the help ``text`` with examples after it; for groups of commands, which are no functions."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    lines = "\n".join(f"  {PROMPT}{command}" for command in commands)
    return f"{text}\n\n{_UNWRAPPED}{title}\n{lines}"


def examples_in(text: str) -> list[str]:
    """Return the commands that a help text shows, each as one line."""
    lines = (line.strip() for line in re.sub(r"\\\n +", "", text).splitlines())
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]


def wait_seconds(wait: str | None) -> float:
    """Return the seconds that ``--wait`` allows. Raises RequestError."""
    if wait is None:
        return 0
    from ajuste.study.command_line.request import seconds

    try:
        return seconds("--wait", wait)
    except RequestError as failure:
        raise RequestError(failure.message, hint="write --wait 10m for ten minutes") from None


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, without its full stop."""
    return " ".join(text.replace("\b", "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def help_if_alone(context: typer.Context) -> None:
    """Print the help of a group and exit, where none of its commands is named."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
