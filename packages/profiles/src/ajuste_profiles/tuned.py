"""tuned's profiles: ``tuned.conf`` with what it includes, merged as tuned does it, with variables put in.

Source: tuned-profiles(7), tuned.conf(5) and tuned's manual, "Customizing TuneD profiles". Nothing of a profile is run.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ajuste.model.caller import open_given
from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.model.topology import cpu_list, cpu_mask, parse_mask
from ajuste.study.profile import Profile, ProfileLine
from ajuste_profiles.meanings import PLUGINS

_MOST_BYTES: Final = 1_000_000

# configparser gathers what is wrong in a message, which takes ever longer with each line.
_MOST_LINES: Final = 10_000

_OPTION: Final = re.compile(r"\s*([^=#;\[\s][^=]*?)\s*(?:=|$)")
FILE: Final = "tuned.conf"

FOLDERS: Final = (
    Path("/etc/tuned/profiles"),
    Path("/etc/tuned"),
    Path("/usr/lib/tuned/profiles"),
    Path("/usr/lib/tuned"),
)
"""The directories of tuned's profiles; the first that has one of that name counts."""

_YES: Final = ("true", "1")
_SKIPPED: Final = ("priority", "dynamic")
_DEEPEST: Final = 20
MOST_CPUS: Final = 8192

_OF_THE_MACHINE: Final[Mapping[str, str]] = {
    "exec": "runs a program; Ajuste runs no program of a profile",
    "calc_isolated_cores": "depends on the machine's packages and cores",
    "check_net_queue_count": "depends on the machine's network devices",
    "cpulist2devs": "names devices of the machine",
    "lscpu_check": "depends on the machine's processor",
    "package2cpus": "depends on the machine's packages and cores",
    "package2uncores": "depends on the machine's packages and cores",
    "intel_recommended_pstate": "depends on the machine's processor",
    "log": "writes only to tuned's log",
}

_VARIABLE: Final = re.compile(r"(?<!\\)\$\{(\w+)\}")
_KEPT: Final = re.compile(r"\\(\$\{\w+\})")
_KEPT_CALL: Final = re.compile(r"\\(\$\{f:.*\})")
_COLON: Final = re.compile(r"(?<!\\):")
_MOST_CALLS: Final = 100


@dataclass(frozen=True)
class MachineFacts:
    """Facts that a profile may ask of its machine. ``cpus`` are the numbers of those online. ``cpuinfo`` is
    /proc/cpuinfo, ``None`` where it is not known before the machine runs; ``architecture`` as ``uname -m`` says it;
    ``virtual``: it is a guest.
    """

    cpus: tuple[int, ...]
    architecture: str = "x86_64"
    cpuinfo: str | None = None
    virtual: bool = False


# Files of sections and options as tuned reads them, with the number of each line.
#
# The values are read by Python's own configparser with tuned's choices, so that both understand a file alike.


@dataclass(frozen=True)
class IniOption:
    """The value of an option, and the line where it is given."""

    value: str
    file: Path
    number: int | None


Sections = dict[str, dict[str, IniOption]]


def read_text(path: Path) -> str:
    """Read a profile's file. Raises RequestError for one that cannot be read, or is far too large."""
    try:
        with open_given(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise RequestError(
                f"has more than {_MOST_BYTES} bytes; expected a profile of at most {_MOST_BYTES}", place=Place(path)
            )
        text = content.decode()
    except OSError as failure:
        raise RequestError(
            f"cannot be read: {failure.strerror}", place=Place(path), hint="check that the file exists and is readable"
        ) from None
    except UnicodeDecodeError:
        raise RequestError("is not valid UTF-8; expected a text file", place=Place(path)) from None
    if text.count("\n") > _MOST_LINES:
        raise RequestError(
            f"has more than {_MOST_LINES} lines; expected a profile of at most {_MOST_LINES}", place=Place(path)
        )
    return text


def read_sections(text: str, path: Path, *, section: str = "") -> Sections:
    """Parse the sections of ``text``, which is from ``path``; with ``section``, all belongs to that. Raises
    RequestError with the line of a mistake.
    """
    parser = configparser.RawConfigParser(
        delimiters=("=",),
        inline_comment_prefixes=("#",),
        strict=False,
        allow_no_value=bool(section),
        default_section="\0",
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    lead = f"[{section}]\n" if section else ""
    try:
        parser.read_string(lead + text, str(path))
    except configparser.MissingSectionHeaderError as failure:
        raise RequestError("expected a [section] before the first option", place=Place(path, failure.lineno)) from None
    except configparser.ParsingError as failure:
        number = failure.errors[0][0] - bool(lead)
        raise RequestError("expected OPTION = VALUE, a [section] or a # comment", place=Place(path, number)) from None
    numbers = _numbers(text, section)
    return {
        name: {
            option: IniOption(value or "", path, numbers.get((name, option)))
            for option, value in parser.items(name, raw=True)
        }
        for name in parser.sections()
    }


def _numbers(text: str, section: str) -> dict[tuple[str, str], int]:
    # The line of every section (with the option `""`) and option, of several the last.
    numbers: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[(.+)\]", line):
            section = header[1]
            numbers.setdefault((section, ""), number)
        elif option := _OPTION.match(line):
            numbers[section, option[1]] = number
    return numbers


def line_of_section(text: str, name: str) -> int | None:
    """Return the line on which a section begins."""
    return _numbers(text, "").get((name, ""))


_MAIN, _VARIABLES = "main", "variables"


@dataclass
class _Unit:
    # A section with its options. `about` are those that say how the section itself is meant.
    name: str
    place: Place
    options: dict[str, IniOption]
    about: dict[str, IniOption] = field(default_factory=dict)

    _ABOUT = (
        *("type", "enabled", "replace", "drop", "devices", "devices_udev_regex"),
        *("cpuinfo_regex", "uname_regex", "script_pre", "script_post"),
    )

    def __post_init__(self) -> None:
        self.about = {name: self.options.pop(name) for name in self._ABOUT if name in self.options}

    def value(self, name: str, otherwise: str = "") -> str:
        return self.about[name].value if name in self.about else otherwise

    @property
    def plugin(self) -> str:
        return self.value("type", self.name)

    @property
    def enabled(self) -> bool:
        return self.value("enabled", "true").strip().lower() in _YES

    def updated(self, later: _Unit) -> _Unit:
        # With what a later profile says of the same section; type, devices and enabled are always the later one's.
        if later.value("replace").strip().lower() in _YES:
            return later
        dropped = re.split(r"\b\s*[,;]\s*", later.value("drop")) if "drop" in later.about else []
        options = {name: option for name, option in self.options.items() if name not in dropped}
        lasting = {name: self.about[name] for name in self._ABOUT[5:] if name in self.about}
        unit = _Unit(self.name, later.place, options | later.options)
        unit.about = lasting | later.about
        return unit


@dataclass(frozen=True)
class Folders:
    """The directories in which profiles are looked up, and the root of their tree (for files that a profile names)."""

    folders: Sequence[Path]
    root: Path = Path("/")

    def candidates(self, name: str) -> list[Path]:
        """Return the files of a profile of that name, the one that counts first."""
        return [path for folder in self.folders if (path := folder / Path(name).name / FILE).is_file()]

    def names(self) -> list[str]:
        """Return all profiles."""
        return sorted({path.parent.name for folder in self.folders for path in folder.glob(f"*/{FILE}")})


def read_tuned(path: Path, folders: Folders, facts: MachineFacts, *, spec: str, origin: str) -> Profile:
    """Read the profile in ``path`` with all that it includes. Raises RequestError, with file and line, for a missing or
    circular include, a section of no plug-in, an undefined variable, a failed assertion.
    """
    units: dict[str, _Unit] = {}
    _merge(path, folders, facts, units, done=[], within=())
    variables = _variables(units.pop(_VARIABLES, None), folders, facts)
    lines = tuple(line for unit in units.values() if unit.enabled for line in _lines(unit, variables, facts))
    return Profile(path.parent.name, spec, origin, lines)


def _merge(
    path: Path,
    folders: Folders,
    facts: MachineFacts,
    units: dict[str, _Unit],
    done: list[Path],
    within: tuple[Path, ...],
) -> None:
    done.append(path)
    text = read_text(path)
    sections = read_sections(re.sub(r"(?<!\\)\$\{i:PROFILE_DIR\}", lambda _: str(path.parent), text), path)
    if include := sections.pop(_MAIN, {}).get("include"):
        for name in re.split(r"\s*[,;]\s*", _expanded(include, {}, facts)):
            for included in _included(name, include, folders, done, (*within, path)):
                _merge(included, folders, facts, units, done, (*within, path))
    for unit in _units(sections, text, path):
        units[unit.name] = units[unit.name].updated(unit) if unit.name in units else unit


def _included(
    name: str, include: IniOption, folders: Folders, done: Sequence[Path], within: tuple[Path, ...]
) -> Iterator[Path]:
    place = Place(include.file, include.number)
    optional = name.startswith("-")
    candidates = folders.candidates(name.removeprefix("-"))
    fresh = [path for path in candidates if path not in done]
    if fresh and len(within) < _DEEPEST:
        yield fresh[0]
    elif any(path in within for path in candidates) or len(within) >= _DEEPEST:
        circle = " → ".join(path.parent.name for path in (*within, *candidates[:1]))
        raise RequestError(f"profiles include each other: {circle}; expected no circle", place=place)
    elif not candidates and not optional:
        raise RequestError(
            f"includes the profile {name!r}, not found in {', '.join(map(str, folders.folders))}",
            hint=did_you_mean(nearest_names(name, folders.names())),
            place=place,
        )


def _units(sections: Sections, text: str, path: Path) -> Iterator[_Unit]:
    for name, options in sections.items():
        unit = _Unit(name, Place(path, line_of_section(text, name)), dict(options))
        if name != _VARIABLES and unit.plugin not in PLUGINS:
            raise RequestError(
                f"the section [{name}] has an unknown tuned plug-in: {unit.plugin!r}",
                hint=did_you_mean(nearest_names(unit.plugin, PLUGINS)) or f"use one of {', '.join(PLUGINS)}",
                place=unit.place,
            )
        yield unit


def _variables(unit: _Unit | None, folders: Folders, facts: MachineFacts) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, option in _definitions(unit, folders):
        try:
            values[name] = expand(option.value, values, facts)
        except CannotCompute:
            continue
        except Refused as failure:
            raise RequestError(str(failure), place=Place(option.file, option.number)) from None
    return values


def _definitions(unit: _Unit | None, folders: Folders) -> Iterator[tuple[str, IniOption]]:
    for name, option in unit.options.items() if unit else ():
        if name != "include":
            yield name, option
            continue
        file = folders.root / option.value.strip().lstrip("/")
        if file.is_file():
            yield from read_sections(read_text(file), file, section="all").get("all", {}).items()


def _lines(unit: _Unit, variables: Mapping[str, str], facts: MachineFacts) -> Iterator[ProfileLine]:
    unless = _unmet(unit, variables, facts)
    devices = _expanded(unit.about["devices"], variables, facts) if "devices" in unit.about else "*"
    if "devices_udev_regex" in unit.about:
        unless = unless or "selects devices by udev properties (devices_udev_regex)"
    for name, option in unit.options.items():
        if name in _SKIPPED:
            continue
        line = ProfileLine(unit.plugin, name, option.value, option.file, option.number, devices, unless)
        yield line if unless else _computed(line, variables, facts)


def _computed(line: ProfileLine, variables: Mapping[str, str], facts: MachineFacts) -> ProfileLine:
    # With variables and functions put in, or why that cannot be.
    option = IniOption(line.value, line.file, line.number)
    try:
        value = expand(line.value, variables, facts)
    except CannotCompute as reason:
        return replace(line, unless=str(reason))
    except Refused as failure:
        raise RequestError(str(failure), place=line.place) from None
    if line.plugin != "script":
        _require_known(value, option)
    return replace(line, value=" ".join(value.strip().strip("\"'").split()))


def _require_known(value: str, option: IniOption) -> None:
    if name := unknown(value):
        raise RequestError(
            f"the variable ${{{name}}} is not defined, or cannot be evaluated here",
            hint=f"define {name} = VALUE in the section [variables], or in a file it includes",
            place=Place(option.file, option.number),
        )


def _expanded(option: IniOption, variables: Mapping[str, str], facts: MachineFacts) -> str:
    try:
        value = expand(option.value, variables, facts).strip()
    except (CannotCompute, Refused) as failure:
        raise RequestError(str(failure), place=Place(option.file, option.number)) from None
    _require_known(value, option)
    return value


def _unmet(unit: _Unit, variables: Mapping[str, str], facts: MachineFacts) -> str:
    for name, text in (("uname_regex", facts.architecture), ("cpuinfo_regex", facts.cpuinfo)):
        if name not in unit.about:
            continue
        pattern = _expanded(unit.about[name], variables, facts)
        try:
            if text is None:
                return "is for certain processors only (cpuinfo_regex); the guest's is emulated"
            if not re.search(pattern, text, re.MULTILINE):
                other = "processors" if name == "cpuinfo_regex" else "machines"
                return f"is for other {other} ({name} = {pattern})"
        except re.error as failure:
            place = Place(unit.about[name].file, unit.about[name].number)
            raise RequestError(
                f"{name} is not a regular expression: {failure}; expected the syntax of Python", place=place
            ) from None
    return ""


# Lists and masks of CPUs as tuned writes them: ``0,2-4,^3``, ``0x1f``, ``00000000,0000001f``.


def read_cpus(text: str) -> list[int]:
    """Return the CPUs of a list, in order, without numbers behind ``^`` or ``!``. Masks are hexadecimal with ``0x``,
    their groups separated by commas; two commas end one. An invalid list is empty, as in tuned.
    """
    chosen: set[int] = set()
    without: set[int] = set()
    mask = ""
    for word in [*text.strip().strip("'\"").split(","), ""]:
        if mask and word:
            mask += word
            continue
        try:
            if mask:
                chosen |= set(of_mask(mask))
                mask = ""
            elif word[:2].lower() == "0x":
                mask = word
            elif word[:1] in ("^", "!"):
                without |= _range(word[1:])
            elif word:
                chosen |= _range(word)
        except ValueError:
            return []
    return sorted(chosen - without)


def _range(word: str) -> set[int]:
    first, dash, last = word.partition("-")
    begin, end = int(first), int(last if dash else first)
    if not 0 <= begin <= MOST_CPUS or end > MOST_CPUS:
        raise ValueError(word)
    return set(range(begin, end + 1))


def of_mask(text: str) -> tuple[int, ...]:
    """Return the CPUs of a mask. Raises ValueError."""
    cpus = parse_mask(text)
    if cpus and cpus[-1] >= MOST_CPUS:
        raise ValueError(text)
    return cpus


def written(cpus: Iterable[int]) -> str:
    """``0,1,2``."""
    return ",".join(map(str, cpus))


Function = Callable[[Sequence[str], MachineFacts], str | None]


class CannotCompute(Exception):
    """A function that would run something, or asks for what is not known here."""


class Refused(Exception):
    """An assertion of the profile that does not hold, or a function that is called wrongly."""


def call(name: str, arguments: Sequence[str], facts: MachineFacts) -> str | None:
    """Return what function ``name`` gives, ``None`` where its call stays. Raises CannotCompute or Refused, with why."""
    if name in _OF_THE_MACHINE:
        raise CannotCompute(f"${{f:{name}}} {_OF_THE_MACHINE[name]}")
    if name not in _FUNCTIONS:
        raise Refused(f"tuned has no function {name!r}")
    least, function = _FUNCTIONS[name]
    if len(arguments) < least:
        raise Refused(f"${{f:{name}}} takes {least} argument{'s' if least > 1 else ''}, got {len(arguments)}")
    try:
        return function(arguments, facts)
    except (ValueError, re.error) as failure:
        raise Refused(f"${{f:{name}}}: {failure}") from None


def _assertion(arguments: Sequence[str], _: MachineFacts) -> None:
    if arguments[1] != arguments[2]:
        raise Refused(f"the profile asserts that {arguments[0]}: {arguments[1]!r} is not {arguments[2]!r}")


def _assertion_non_equal(arguments: Sequence[str], _: MachineFacts) -> None:
    if arguments[1] == arguments[2]:
        raise Refused(f"the profile asserts that {arguments[0]}, and it is {arguments[1]!r}")


def _cpuinfo_check(arguments: Sequence[str], facts: MachineFacts) -> str:
    if facts.cpuinfo is None:
        raise CannotCompute("${f:cpuinfo_check} depends on the processor, which the guest emulates")
    for pattern, value in zip(arguments[::2], arguments[1::2], strict=False):
        if re.search(pattern, facts.cpuinfo, re.MULTILINE):
            return value
    return arguments[-1] if len(arguments) % 2 else ""


def _online(arguments: Sequence[str], facts: MachineFacts) -> str:
    return written(cpu for cpu in _cpus(arguments) if cpu in facts.cpus)


def _others(arguments: Sequence[str], facts: MachineFacts) -> list[int]:
    return sorted(set(facts.cpus) - set(_cpus(arguments)))


def _cpus(arguments: Sequence[str]) -> list[int]:
    # Arguments are separated by colons, and a mask ends with each.
    return read_cpus(",,".join(arguments))


# By name: how many arguments it takes at least, and what it does.
_FUNCTIONS: Final[Mapping[str, tuple[int, Function]]] = {
    "assertion": (3, _assertion),
    "assertion_non_equal": (3, _assertion_non_equal),
    "cpuinfo_check": (2, _cpuinfo_check),
    "cpulist2hex": (1, lambda args, _: cpu_mask(_cpus(args))),
    "cpulist2hex_invert": (1, lambda args, facts: cpu_mask(_others(args, facts))),
    "cpulist_invert": (1, lambda args, facts: written(_others(args, facts))),
    "cpulist_online": (1, _online),
    "cpulist_pack": (1, lambda args, _: cpu_list(_cpus(args))),
    "cpulist_present": (1, _online),
    "cpulist_unpack": (1, lambda args, _: written(_cpus(args))),
    "hex2cpulist": (1, lambda args, _: written(of_mask(args[0]))),
    "kb2s": (1, lambda args, _: str(int(args[0]) * 2)),
    "regex_search_ternary": (4, lambda args, _: args[2] if re.search(args[1], args[0]) else args[3]),
    "s2kb": (1, lambda args, _: str(round(int(args[0]) / 2))),
    "strip": (1, lambda args, _: "".join(args).strip()),
    "virt_check": (2, lambda args, facts: args[0] if facts.virtual else args[1]),
}


# Variables and functions in the values of tuned's profiles: ``${name}`` and ``${f:function:argument}``.
#
# A backslash before the dollar keeps what follows from being read. Source: tuned's manual, "Variables in TuneD
# profiles".


def expand(text: str, variables: Mapping[str, str], facts: MachineFacts) -> str:
    """Return ``text`` with all known variables and functions put in; unknown ones stay (see ``unknown``). Raises
    CannotCompute for a function that cannot be computed here, Refused for a wrong call or a failed assertion.
    """
    static = _KEPT.sub(r"\1", _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text))
    return _KEPT_CALL.sub(r"\1", _with_functions(static, facts))


def unknown(text: str) -> str | None:
    """Return the name of a variable left in ``text``."""
    match = _VARIABLE.search(text)
    return match[1] if match else None


def _with_functions(text: str, facts: MachineFacts) -> str:
    # Calls are done from the inside out, from left to right; one that gives nothing stays as it stands.
    opened: list[tuple[bool, int]] = []
    place = calls = 0
    while place < len(text):
        if text.startswith("${", place):
            opened.append((place > 0 and text[place - 1] == "\\", place))
        elif text[place] == "}" and opened:
            escaped, start = opened.pop()
            inner = text[start + 2 : place]
            calls += 1
            if calls > _MOST_CALLS:
                raise Refused(f"found more than {_MOST_CALLS} functions in one value")
            if not escaped and inner.startswith("f:"):
                _, name, *arguments = (part.replace("\\:", ":") for part in _COLON.split(inner))
                result = call(name, arguments, facts)
                if result is not None:
                    text = text[:start] + result + text[place + 1 :]
                    place = start + len(result) - 1
        place += 1
    if any(not escaped and text.startswith("${f:", start) for escaped, start in opened):
        raise Refused("found ${f:… without a closing }")
    return text
