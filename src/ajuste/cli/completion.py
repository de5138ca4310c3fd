"""``ajuste completion``: the script for a shell, and its suggestions.

The shell calls Ajuste with ``_AJUSTE_COMPLETE`` for every Tab. Nothing of the program is loaded for it: commands,
options and the catalogue's names are read from command-line.json, runs and kernels from the home.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import typer
import typer.main
from typer.completion import shell_complete

from ajuste.cli.command_line import known_commands
from ajuste.cli.options import example, first_sentence
from ajuste.machine.home import home
from ajuste.model.error import AjusteError

COMPLETE: Final = "_AJUSTE_COMPLETE"

# Values that mean the same in every shell. Others, such as names of runs with `$` in them, are never offered.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:=+@%/-]+")
# The directory of a kernel of Debian's in the cache, which begins with its release.
_FETCHED: Final = re.compile(r"(\d+\.\d+)[.\d]*\S*-cloud-amd64_")
# Characters that are replaced in the few words about a value, for the same reason.
_PLAIN_TEXT: Final = re.compile(r"[^A-Za-z0-9 _.,:+@/-]")
# Maximum number of runs that are offered, the newest first.
_MOST: Final = 200

Offered = Iterable[tuple[str, str]]
"""Values with a few words on each."""
Values = Mapping[str, Mapping[str, str]]
"""The catalogue's names by kind, with a few words on each."""

_BASH: Final = """_ajuste_completion() {
    # Bash takes words apart at : and =, which belong to names such as debian:6.1.
    local IFS=$'\\n' word words=() last
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if (( ${#words[@]} > 1 )) && [[ $word == [:=]* || ${words[-1]} == *[:=] ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    last=${words[-1]}
    [[ $last == --*=* ]] && last=${last#*=}
    COMPREPLY=( $( env COMP_WORDS="${words[*]}" COMP_CWORD=$(( ${#words[@]} - 1 )) \\
                   _AJUSTE_COMPLETE=complete_bash "$1" 2>/dev/null ) )
    [[ $last == *[:=]* ]] && COMPREPLY=( "${COMPREPLY[@]#"${last%"${last##*[:=]}"}"}" )
    [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace
    return 0
}

complete -o default -F _ajuste_completion ajuste
"""

_ZSH: Final = """#compdef ajuste

_ajuste_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _AJUSTE_COMPLETE=complete_zsh ajuste 2>/dev/null)
}

# Loaded from $fpath, this file is the function itself.
if [[ ${funcstack[1]} == _ajuste ]]; then
    _ajuste_completion
else
    compdef _ajuste_completion ajuste
fi
"""
# Fish takes Typer's own script.
_SCRIPTS: Final = MappingProxyType({"bash": _BASH, "zsh": _ZSH})


@example("ajuste completion bash")
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.", show_default=False)],
) -> None:
    """Print the completion script of a shell.

    Bash: add eval "$(ajuste completion bash)" to ~/.bashrc. Fish: write it to
    ~/.config/fish/completions/ajuste.fish. Zsh: write it to a file _ajuste in a directory of $fpath.
    """
    if shell in _SCRIPTS:
        typer.echo(_SCRIPTS[shell], nl=False)
    else:
        shell_complete(_completing(), {}, "ajuste", COMPLETE, f"source_{shell}")


def answer() -> None:
    """Answer a shell that asks by ``_AJUSTE_COMPLETE``. Raises SystemExit."""
    with suppress(BrokenPipeError):
        _completing()(prog_name="ajuste")


def _completing() -> Any:
    # Commands with the names and parameters of the real ones and empty bodies: Typer completes them without loading
    # a command.
    known = known_commands()
    apps: dict[str, typer.Typer] = {}
    for path, command in known["commands"].items():
        above, _, name = path.rpartition(" ")
        nothing = _doing_nothing(path, command["parameters"], known["values"])
        if not command["group"]:
            apps[above].command(name, help=command["summary"])(nothing)
            continue
        apps[path] = typer.Typer(add_completion=not path, rich_markup_mode=None)
        apps[path].callback()(nothing)
        if path:
            apps[above].add_typer(apps[path], name=name, help=command["summary"])
    made: Any = typer.main.get_command(apps[""])  # which also makes Typer know the shells
    made.params = [
        parameter for parameter in made.params if parameter.opts[0] not in ("--install-completion", "--show-completion")
    ]
    return made


def _doing_nothing(path: str, parameters: list[dict[str, Any]], values: Values) -> Callable[..., None]:
    def nothing(**_: object) -> None: ...

    made = []
    for place, parameter in enumerate(parameters):
        metavar, names, number = parameter["metavar"], parameter["names"], parameter["number"]
        sources = _OFFERED.get(f"{path} {metavar}", _OFFERED.get(metavar, ()))
        complete = _completer([*(partial(_values, name, values) for name in sources), *_chosen(parameter["choices"])])
        default: object = None
        kind: Any = {1: str, 2: tuple[str, str], -1: list[str]}[number]
        if parameter["kind"] == "argument":
            info = typer.Argument(metavar=metavar, autocompletion=complete)
        elif parameter["kind"] == "flag":
            info, kind, default = typer.Option(*names, help=first_sentence(parameter["help"])), bool, False
        else:
            info = typer.Option(
                *names, metavar=metavar, help=first_sentence(parameter["help"]), autocompletion=complete
            )
        annotation = Annotated[kind, info]
        made.append(Parameter(f"p{place}", Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    nothing.__signature__ = Signature(made)  # type: ignore[attr-defined]
    nothing.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
    return nothing


# Sources of a parameter's values, by its metavar alone or after its command.
_OFFERED: Final = MappingProxyType(
    {
        "NAME=LEVEL,...": ("settings",),
        "KERNEL": ("kernels", "cached", "built"),
        "KERNEL,...": ("kernels", "cached", "built"),
        "K": ("kernels",),
        "SPEC…": ("kernels",),
        "kernel diff A": ("kernels", "cached", "built"),
        "kernel diff B": ("kernels", "cached", "built"),
        "kernel remove NAME…": ("built",),
        "tunables show NAME": ("tunables",),
        "STUDY": ("studies", "files"),
        "RUN": ("runs",),
        "RUN...": ("runs",),
        "[RUN]...": ("runs",),
        "compare COMMAND [ARGUMENT]... [-- COMMAND ...]": ("workloads",),
        "ablate COMMAND [ARGUMENT]...": ("workloads",),
    }
)


def _completer(sources: list[Callable[[], Offered]]) -> Callable[[str], list[tuple[str, str]]]:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        if incomplete.endswith("="):
            return []  # levels are the person's own
        # In a list with commas, only the last value is completed.
        name, comma, last = incomplete.rpartition(",") if "=" not in incomplete else ("", "", incomplete)
        candidates = (candidate for source in sources for candidate in source() if candidate[0].startswith(last))
        offered: dict[str, str] = {}
        for value, about in candidates:
            if _PLAIN.fullmatch(value):
                offered.setdefault(name + comma + value, about)
        return list(offered.items())

    return complete


def _chosen(choices: list[str]) -> list[Callable[[], Offered]]:
    return [lambda: [(choice, "") for choice in choices]]


def _values(name: str, values: Values) -> Offered:
    if name == "settings":
        return ((f"{tunable}=", about) for tunable, about in values["tunables"].items())
    if name in values:
        return values[name].items()
    return {"runs": _runs, "cached": _cached, "built": _built, "files": _study_files}[name]()


def _runs() -> Iterator[tuple[str, str]]:
    # The studies of a store in a file, then its runs. Opened read-only with a short timeout: another command may be
    # writing to it, and a Tab must not wait.
    with suppress(AjusteError, OSError, sqlite3.Error, UnicodeError):
        file = home().data / "store.sqlite"
        if os.environ.get("AJUSTE_STORE") or not file.is_file():
            return
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0.1)) as store:
            rows = store.execute("SELECT id, study FROM runs ORDER BY id DESC LIMIT ?", (_MOST,)).fetchall()
        yield from dict.fromkeys((str(study), "the newest run of this study") for _, study in rows)
        yield from ((str(name), _PLAIN_TEXT.sub("?", str(study))) for name, study in rows)


def _cached() -> Iterator[tuple[str, str]]:
    # Fetched kernels of the default flavour, by series.
    with suppress(AjusteError, OSError):
        matches = filter(None, (_FETCHED.match(file.name) for file in sorted(home().kernels.iterdir())))
        yield from dict.fromkeys((f"debian:{match[1]}", "cached") for match in matches)


def _built() -> Iterator[tuple[str, str]]:
    with suppress(AjusteError, OSError):
        yield from ((f"mine:{file.name}", "built here") for file in sorted((home().cache / "built/names").iterdir()))


def _study_files() -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        yield from ((file.name, "a study file") for file in sorted(Path().glob("*.toml")))
