"""The built-in functions of tuned's profiles, ``${f:NAME:ARGUMENT:…}``, as far as they can be computed without running
anything. Source: tuned's manual, "Built-in functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ajuste.model.topology import cpu_list, cpu_mask, parse_mask
from ajuste.profile.profile import MachineFacts

# Lists and masks of CPUs as tuned writes them: ``0,2-4,^3``, ``0x1f``, ``00000000,0000001f``.


MOST_CPUS: Final = 8192


def read_cpus(text: str) -> list[int]:
    """The CPUs of a list, in order; numbers behind ``^`` or ``!`` are left out. Masks are in hexadecimal with ``0x``,
    their groups separated by commas; two commas end one.

    Nothing of a list that is none, as tuned has it.
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
    """The CPUs of a mask. Raises ValueError for what is none."""
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
    """What function ``name`` gives; ``None`` where its call is left as it stands.

    Raises CannotCompute or Refused, with why.
    """
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
    """Arguments are separated by colons, and a mask ends with each."""
    return read_cpus(",,".join(arguments))


_FUNCTIONS: Final[Mapping[str, tuple[int, Function]]] = {
    "assertion": (3, _assertion),
    "assertion_non_equal": (3, _assertion_non_equal),
    "cpuinfo_check": (2, _cpuinfo_check),
    "cpulist2hex": (1, lambda given, _: cpu_mask(_cpus(given))),
    "cpulist2hex_invert": (1, lambda given, facts: cpu_mask(_others(given, facts))),
    "cpulist_invert": (1, lambda given, facts: written(_others(given, facts))),
    "cpulist_online": (1, _online),
    "cpulist_pack": (1, lambda given, _: cpu_list(_cpus(given))),
    "cpulist_present": (1, _online),
    "cpulist_unpack": (1, lambda given, _: written(_cpus(given))),
    "hex2cpulist": (1, lambda given, _: written(of_mask(given[0]))),
    "kb2s": (1, lambda given, _: str(int(given[0]) * 2)),
    "regex_search_ternary": (4, lambda given, _: given[2] if re.search(given[1], given[0]) else given[3]),
    "s2kb": (1, lambda given, _: str(round(int(given[0]) / 2))),
    "strip": (1, lambda given, _: "".join(given).strip()),
    "virt_check": (2, lambda given, facts: given[0] if facts.virtual else given[1]),
}
"""By name: how many arguments it takes at least, and what it does."""


# Variables and functions in the values of tuned's profiles: ``${name}`` and ``${f:function:argument}``.
#
# A backslash before the dollar keeps what follows from being read. Source: tuned's manual, "Variables in TuneD
# profiles".


_VARIABLE: Final = re.compile(r"(?<!\\)\$\{(\w+)\}")
_KEPT: Final = re.compile(r"\\(\$\{\w+\})")
_KEPT_CALL: Final = re.compile(r"\\(\$\{f:.*\})")
_COLON: Final = re.compile(r"(?<!\\):")
_MOST_CALLS: Final = 100


def expand(text: str, variables: Mapping[str, str], facts: MachineFacts) -> str:
    """``text`` with all that is known put in. What names no variable stays as it is (see ``unknown``).

    Raises CannotCompute for a function that cannot be computed here, Refused for one that is called wrongly or an
    assertion that does not hold.
    """
    static = _KEPT.sub(r"\1", _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text))
    return _KEPT_CALL.sub(r"\1", _with_functions(static, facts))


def unknown(text: str) -> str | None:
    """The name of a variable in ``text`` that nothing was put in for."""
    match = _VARIABLE.search(text)
    return match[1] if match else None


def _with_functions(text: str, facts: MachineFacts) -> str:
    """Calls are done from the inside out, from left to right; one that gives nothing stays as it stands."""
    begun: list[tuple[bool, int]] = []
    place = calls = 0
    while place < len(text):
        if text.startswith("${", place):
            begun.append((place > 0 and text[place - 1] == "\\", place))
        elif text[place] == "}" and begun:
            kept, start = begun.pop()
            inner = text[start + 2 : place]
            calls += 1
            if calls > _MOST_CALLS:
                raise Refused(f"found more than {_MOST_CALLS} functions in one value")
            if not kept and inner.startswith("f:"):
                given = _call(inner, facts)
                if given is not None:
                    text = text[:start] + given + text[place + 1 :]
                    place = start + len(given) - 1
        place += 1
    if any(not kept and text.startswith("${f:", start) for kept, start in begun):
        raise Refused("found ${f:… without a closing }")
    return text


def _call(inner: str, facts: MachineFacts) -> str | None:
    _, name, *arguments = (part.replace("\\:", ":") for part in _COLON.split(inner))
    return call(name, arguments, facts)
