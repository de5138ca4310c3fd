"""The part of make's output that is shown."""

from __future__ import annotations

from ajuste.outputs.builds import first_error


def test_the_compiler_comes_before_make() -> None:
    lines = [
        "  CC      kernel/fork.o",
        "make[2]: *** [scripts/Makefile.build:250: kernel/sched/fair.o] Error 1",
        "kernel/sched/fair.c:7730:9: error: 'undeclared' undeclared (first use in this function)",
        " 7730 |         undeclared();",
        "      |         ^~~~~~~~~~",
        "  CC      kernel/exit.o",
        "kernel/sched/fair.c:7731:9: error: another",
    ]
    assert first_error(lines) == lines[2:5]


def test_a_linker_and_a_missing_header_are_told() -> None:
    undefined = "ld: kernel/sched/core.o: in function `schedule': undefined reference to `nothing'"
    assert first_error(["make: *** [Makefile:1: vmlinux] Error 1", undefined]) == [undefined]
    header = "scripts/sign-file.c:21:10: fatal error: openssl/bio.h: No such file or directory"
    assert first_error(["  HOSTCC  scripts/sign-file", header])[0] == header


def test_a_target_that_is_missing_comes_before_those_that_failed_for_it() -> None:
    lines = ["make[1]: *** No rule to make target 'x'.  Stop.", "make: *** [Makefile:9: all] Error 2"]
    assert first_error(list(reversed(lines))) == lines[:1]


def test_nothing_is_invented() -> None:
    assert first_error(["  CC      kernel/fork.o", "done"]) == []
