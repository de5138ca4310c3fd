"""The built-in functions of tuned's profiles, ``${f:NAME:ARGUMENT:…}``, as far as they can be computed without running
anything. Source: tuned's manual, "Built-in functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ajuste.profile.cpus import mask_of, of_mask, packed, read_cpus, written
from ajuste.profile.facts import Facts

Function = Callable[[Sequence[str], Facts], str | None]


class CannotCompute(Exception):
    """A function that would run something, or asks for what is not known here."""


class Refused(Exception):
    """An assertion of the profile that does not hold, or a function that is called wrongly."""


def call(name: str, arguments: Sequence[str], facts: Facts) -> str | None:
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
    "exec": "runs a program; Ajuste runs nothing of a profile",
    "calc_isolated_cores": "depends on the machine's packages and cores",
    "check_net_queue_count": "depends on the machine's network devices",
    "cpulist2devs": "names devices of the machine",
    "lscpu_check": "depends on the machine's processor",
    "package2cpus": "depends on the machine's packages and cores",
    "package2uncores": "depends on the machine's packages and cores",
    "intel_recommended_pstate": "depends on the machine's processor",
    "log": "only writes into tuned's log",
}


def _assertion(arguments: Sequence[str], facts: Facts) -> None:
    if arguments[1] != arguments[2]:
        raise Refused(f"the profile asserts that {arguments[0]}: {arguments[1]!r} is not {arguments[2]!r}")


def _assertion_non_equal(arguments: Sequence[str], facts: Facts) -> None:
    if arguments[1] == arguments[2]:
        raise Refused(f"the profile asserts that {arguments[0]}, and it is {arguments[1]!r}")


def _cpuinfo_check(arguments: Sequence[str], facts: Facts) -> str:
    if facts.cpuinfo is None:
        raise CannotCompute("${f:cpuinfo_check} asks for the processor, which the guest emulates")
    for pattern, value in zip(arguments[::2], arguments[1::2], strict=False):
        if re.search(pattern, facts.cpuinfo, re.MULTILINE):
            return value
    return arguments[-1] if len(arguments) % 2 else ""


def _online(arguments: Sequence[str], facts: Facts) -> str:
    return written(cpu for cpu in _cpus(arguments) if cpu in facts.cpus)


def _others(arguments: Sequence[str], facts: Facts) -> list[int]:
    return sorted(set(facts.cpus) - set(_cpus(arguments)))


def _cpus(arguments: Sequence[str]) -> list[int]:
    """Arguments are separated by colons, and a mask ends with each."""
    return read_cpus(",,".join(arguments))


_FUNCTIONS: Final[Mapping[str, tuple[int, Function]]] = {
    "assertion": (3, _assertion),
    "assertion_non_equal": (3, _assertion_non_equal),
    "cpuinfo_check": (2, _cpuinfo_check),
    "cpulist2hex": (1, lambda given, _: mask_of(_cpus(given))),
    "cpulist2hex_invert": (1, lambda given, facts: mask_of(_others(given, facts))),
    "cpulist_invert": (1, lambda given, facts: written(_others(given, facts))),
    "cpulist_online": (1, _online),
    "cpulist_pack": (1, lambda given, _: packed(_cpus(given))),
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
