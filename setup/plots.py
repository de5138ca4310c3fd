"""The part of plotly.js that reports draw with, out of the whole that the Python package plotly carries.

``make setup`` calls it: ``python setup/plots.py FILE``. The whole has 48 kinds of traces and 4.8 MB; reports use five,
which need 1.3 MB. Its bundler, esbuild, makes each module a statement of its own, and modules need each other by
calls: what is registered in the end leads to all that is needed. The same package gives the same bytes.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

TRACES = ("bar", "contour", "heatmap", "icicle")
"""What is drawn beside scatter, which plotly.js has always."""
_HELPERS = (
    re.compile(r"([\w$]+)=\(e,t\)=>\(\)=>\{try\{return t\|\|e\(\(t=\{exports:\{\}\}\)\.exports,t\)"),
    re.compile(r"([\w$]+)=\(e,t,r\)=>\(\)=>\{if\(r\)throw r\[0\];try\{return e&&\(t=e\(e=0\)\)"),
)
"""How esbuild's two helpers begin that make a module of a function: __commonJS and __esm."""
_REGISTERED = re.compile(r"\.register\(\[((?:[\w$]+\(\),?)+)\]\)")
_CALLED = re.compile(r"(?<![.\w$])([A-Za-z_$][\w$]*)\(\)")
_TRACE = re.compile(r'moduleType:"trace",name:"(\w+)"')
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[`(){}\[\]/]""", re.DOTALL)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/")
_BEFORE_REGEX = re.compile(
    r"(?:[(,=:\[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|delete|throw|new|else|do))\s*$"
)
_LONGEST_WORD = 12


@dataclass(frozen=True)
class Module:
    """Whole statements, in the last of which the function ``name`` is defined that gives the module."""

    name: str
    text: str


def part_of(text: str, traces: Sequence[str] = TRACES) -> str:
    """plotly.js with no other traces. Raises ValueError where it is not built as it was."""
    registered = _REGISTERED.search(text)
    if registered is None:
        raise ValueError("traces are registered in another way")
    head, modules, tail = split(text)
    by_name = {module.name: module for module in modules}
    calls = {call: trace_of(by_name[call.removesuffix("()")], by_name) for call in registered[1].split(",")}
    if missing := set(traces) - set(calls.values()):
        raise ValueError(f"there are no traces called {', '.join(sorted(missing))}")
    wanted = ",".join(call for call, trace in calls.items() if trace in traces)
    fewer = {name: module.text.replace(registered[1], wanted) for name, module in by_name.items()}
    needed: set[str] = set()
    found = {name for name in _CALLED.findall(head + tail) if name in fewer}
    while found:
        needed |= found
        called = {name for one in found for name in _CALLED.findall(fewer[one])}
        found = {name for name in called if name in fewer} - needed
    return "".join([head, *(text for name, text in fewer.items() if name in needed), tail])


def split(text: str) -> tuple[str, list[Module], str]:
    """What stands before all modules, the modules, and what stands behind them. Raises ValueError."""
    helpers = [found[1] for one in _HELPERS if (found := one.search(text))]
    if len(helpers) != len(_HELPERS):
        raise ValueError("esbuild has other helpers")
    modules = list(_modules(text, *helpers))
    begin, end = text.index(modules[0].text), sum(len(module.text) for module in modules)
    return text[:begin], modules, text[begin + end :]


def _modules(text: str, common: str, es: str) -> Iterator[Module]:
    """The modules. Functions of an ES module stand before the statement that makes it one."""
    names = rf"(?P<names>(?:[\w$]+,)*[\w$]+)=(?P<helper>{re.escape(common)}|{re.escape(es)})"
    statement = re.compile(rf"(?<=[;}}])var {names}\((?=\(?[\w$,]*\)?=>\{{)")
    place = 0
    while found := statement.search(text, place):
        end = closing(text, found.end() - 1) + 1
        begin = place if found["helper"] == es and place else found.start()
        if text[end - 1] != ";" or place not in (begin, 0):
            raise ValueError(f"the module {found['names']} is no statement of its own")
        yield Module(found["names"].rpartition(",")[2], text[begin:end])
        place = end


def trace_of(module: Module, modules: Mapping[str, Module]) -> str:
    """Which trace a module is, or the one that it only hands on; empty for what is none."""
    while (found := _TRACE.search(module.text)) is None:
        handed = re.search(r"exports=([\w$]+)\(\)\}\);$", module.text)
        if handed is None:
            return ""
        module = modules[handed[1]]
    return found[1]


def closing(text: str, start: int) -> int:
    """The place after the bracket that closes the one at ``start``, in JavaScript. Raises ValueError."""
    depth, place = 0, start
    filled: list[int] = []  # how deep ${ of templates stand
    while found := _TOKEN.search(text, place):
        sign, place = found[0], found.end()
        if sign == "/" and _BEFORE_REGEX.search(text, max(0, place - 1 - _LONGEST_WORD), place - 1):
            regex = _REGEX.match(text, place - 1)
            if regex is None:
                raise ValueError(f"no end of the regular expression at {place - 1}")
            place = regex.end()
        elif sign == "`" or (sign == "}" and filled and filled[-1] == depth):
            if sign == "}":
                filled.pop()
                depth -= 1
            place = _in_template(text, place)
            if text[place - 1] == "{":
                depth += 1
                filled.append(depth)
        elif sign in "({[":
            depth += 1
        elif sign in ")}]":
            depth -= 1
            if depth == 0:
                return place
    raise ValueError(f"no end of the bracket at {start}")


def _in_template(text: str, place: int) -> int:
    """The place after the template's end, or after the next ``${`` in it."""
    while text[place] != "`" and not text.startswith("${", place):
        place += 2 if text[place] == "\\" else 1
    return place + (1 if text[place] == "`" else 2)


def main(file: Path) -> None:
    """Write it, compressed, whole or not at all."""
    whole = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    written = file.with_name(f"{file.name}.part")
    written.write_bytes(gzip.compress(part_of(whole).encode(), 9, mtime=0))
    written.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
