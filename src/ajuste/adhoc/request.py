"""What a person asked for on the command line of ``ajuste compare``, word by word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """``commands`` are those between the ``--``; every other field is the option of that name, as it was given."""

    commands: tuple[tuple[str, ...], ...]
    set: tuple[str, ...] = ()
    profile: str | None = None
    nice: str | None = None
    policy: str | None = None
    cpus: str | None = None
    cgroup_weight: str | None = None
    kernel: str | None = None
    vm: bool = False
    clock: str | None = None
    memory: str | None = None
    one_at_a_time: bool = False
    screen: bool = False
    baseline: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    setup: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    file: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    min_effect: str | None = None
    confidence: str | None = None
    max_time: str | None = None
    blocks: str | None = None
    warm_up: int | None = None
    timeout: str | None = None
    seed: int | None = None
    name: str | None = None
    as_root: bool = False
    ignore_failure: bool = False

    @property
    def in_guest(self) -> bool:
        return self.vm or self.kernel is not None


def split_commands(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The commands that ``--`` separates; an empty one where there is nothing between two."""
    commands: list[tuple[str, ...]] = [()]
    for word in words:
        if word == "--":
            commands.append(())
        else:
            commands[-1] = (*commands[-1], word)
    return tuple(commands)
