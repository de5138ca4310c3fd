"""Commands of hyperfine: a file with one a line, or its --export-json."""

from __future__ import annotations

import json
import shlex
from pathlib import Path, PurePosixPath

from ajuste.study.job import Argv
from ajuste.study.site import is_study_file, normal_name
from ajuste_ci.harnesses.base import BuiltProject, Harness, HarnessBenchmark


def read_commands(text: str) -> tuple[str, ...]:
    """Return the commands of a file. Raises ValueError."""
    if text.lstrip().startswith("{"):
        commands = [str(result["command"]) for result in json.loads(text)["results"]]
    else:
        commands = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for command in commands:
        shlex.split(command)
    return tuple(dict.fromkeys(commands))


class Hyperfine(Harness):
    """Whole commands, as hyperfine compares them."""

    name = "hyperfine"
    build = ()
    repeats = False

    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """List the commands of the file."""
        if not built.list_file:
            raise built.lacks("the file of commands", 'add commands = "FILE" to the benchmark')
        try:
            commands = read_commands((built.directory / built.list_file).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise built.lacks(built.list_file, "check the field commands of the benchmark") from None
        except (ValueError, KeyError, TypeError) as failure:
            hint = "write one command a line, or use hyperfine --export-json"
            raise built.rejects(f"{built.list_file} has no commands of hyperfine: {failure}", hint) from None
        return tuple(HarnessBenchmark(command, "", PurePosixPath(), _files(command)) for command in commands)

    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return the command; a shell runs it, as in hyperfine, only where one is needed."""
        if any(character in benchmark.id for character in "|&;<>()$`*?[]#~{}\n"):
            return ("sh", "-c", benchmark.id)
        return tuple(shlex.split(benchmark.id))

    def is_used(self, project: Path) -> bool:
        """Return False: a file of commands has no name of its own."""
        return False


def _files(command: str) -> tuple[str, ...]:
    first = shlex.split(command)[0]
    return (normal_name(first),) if is_study_file(first) else ()
