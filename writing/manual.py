"""Man pages and completion scripts, as they are installed below a directory ``share``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import typer.main

from ajuste.cli.main import whole_application
from ajuste.cli.options import examples_in
from ajuste.machine.home import ajuste_version
from writing.command_line import commands_of, described, record, usage
from writing.generated import ROOT

SHARE: Final = ROOT / "target" / "share"
COMPLETIONS: Final = {
    "bash": "bash-completion/completions/ajuste",
    "zsh": "zsh/site-functions/_ajuste",
    "fish": "fish/vendor_completions.d/ajuste.fish",
}
"""Files in which the shells look for completions, below ``share``."""
STATUS: Final = "0 done; 1 the run failed; 2 the request was wrong; 130 interrupted."


def write_share(directory: Path = SHARE) -> None:
    """Write all pages and scripts."""
    files = {f"man/man1/{name}.1": text for name, text in man_pages().items()}
    files |= {path: _script(shell) for shell, path in COMPLETIONS.items()}
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def man_pages() -> dict[str, str]:
    """The pages by their names: ``ajuste`` and ``ajuste-COMMAND`` for each command, with those of its group."""
    group: Any = typer.main.get_command(whole_application())
    commands = dict(commands_of(group))
    pages = {
        "ajuste": _page(("ajuste",), group, {path: command for path, command in commands.items() if len(path) == 1})
    }
    for path, command in commands.items():
        if len(path) == 1:
            inner = {words: each for words, each in commands.items() if words[:1] == path and words != path}
            pages[f"ajuste-{path[0]}"] = _page(("ajuste", *path), command, inner)
    return pages


def _page(words: tuple[str, ...], command: Any, inner: dict[tuple[str, ...], Any]) -> str:
    text, summary = described(command), _sentence(command)
    date = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC).strftime("%Y-%m-%d")
    lines = [f'.TH {"-".join(words).upper()} 1 "{date}" "ajuste {ajuste_version()}" "Ajuste"']
    lines += [".SH NAME", f"{_roff('-'.join(words))} \\- {_roff(summary)}", ".SH SYNOPSIS"]
    lines += [
        _synopsis(words, command),
        ".SH DESCRIPTION",
        *_paragraphs(text),
        *_options(command, ".SH OPTIONS"),
    ]
    whole = len(words) == 1
    if inner:
        lines.append(".SH COMMANDS")
    for path, inner_command in inner.items():
        name = " ".join(("ajuste", *path))
        if whole:
            lines += [".TP", f"\\fBajuste\\-{_roff(path[0])}\\fR(1)", _roff(_sentence(inner_command))]
        else:
            lines += [
                f".SS {_roff(name)}",
                _synopsis(("ajuste", *path), inner_command),
                ".PP",
                *_paragraphs(described(inner_command)),
            ]
            lines += _options(inner_command, "")
            lines += _examples(inner_command, ".PP")
    lines += _examples(command, ".SH EXAMPLES")
    lines += [".SH EXIT STATUS", _roff(STATUS)]
    lines += [".SH SEE ALSO", "\\fBajuste\\fR(1)"] if not whole else []
    return "\n".join(lines) + "\n"


def _synopsis(words: tuple[str, ...], command: Any) -> str:
    name = " ".join(words)
    return f"\\fB{_roff(name)}\\fR {_roff(usage(words[1:], command).removeprefix(name).strip())}"


def _options(command: Any, head: str) -> list[str]:
    lines = [head] if command.params and head else []
    for what, meaning in map(record, command.params):
        lines += [".TP", f"\\fB{_roff(what)}\\fR", _roff(meaning) or "\\&"]
    return lines


def _examples(command: Any, head: str) -> list[str]:
    examples = examples_in(command.help)
    lines = [head, ".EX"] if examples else []
    lines += [_roff(f"$ {example}") for example in examples]
    return [*lines, ".EE"] if examples else []


def _sentence(command: Any) -> str:
    first = " ".join(described(command).split("\n\n")[0].split()).rstrip(".")
    return first[:1].lower() + first[1:]


def _paragraphs(text: str) -> list[str]:
    parts = [_roff(" ".join(part.replace("\b", "").split())) for part in text.split("\n\n") if part.strip()]
    return "\n.PP\n".join(parts).split("\n")


def _roff(text: str) -> str:
    """``text`` as groff_man(7) shows it exactly so."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha")
    escaped = escaped.replace("`", "\\(ga").replace("~", "\\(ti").replace("…", "...")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)


def _script(shell: str) -> str:
    command = [sys.executable, "-c", "from ajuste.cli.main import main; main()", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
