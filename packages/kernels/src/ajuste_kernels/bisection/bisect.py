"""A bisection over versions, options or revisions of a kernel, or over BPF schedulers, as its ends require."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ajuste.kernel.builder import BuildWatcher
from ajuste.kernel.spec import BUILT, PackagedKernel, is_to_build, parse_spec
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.wording import Say
from ajuste_kernels.bisection.revisions import (
    bisect_revisions,
    bisect_versions,
    count_between,
    revision_ends,
    versions_between,
)
from ajuste_kernels.bisection.schedulers import scheduler_builds
from ajuste_kernels.bisection.session import BisectionResult, BisectionSession, Kind
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.sources import source_option
from ajuste_kernels.difference import (
    KernelDifference,
    NamedConfig,
    compare_configs,
    kconfig_sources,
    named_by_kernel,
    named_config,
)
from ajuste_stats.bisection import Outcome, steps_needed
from ajuste_stats.delta_debugging import Changes, minimal_changes

# Bisection over the options in which two kernels differ.


_LONGEST: Final = 4
_NOT_SET: Final = frozenset({"n", "absent"})

Test = Callable[[Changes], Outcome]


@dataclass(frozen=True)
class OptionChanges:
    """The values that turn the good kernel's options into the bad one's, by name; Kconfig derives all others."""

    settings: dict[str, str]

    @property
    def names(self) -> Changes:
        return tuple(self.settings)

    def some(self, names: Changes) -> tuple[str, ...]:
        """Return the options of ``names`` in the form of ``ajuste kernel build --set``."""
        return tuple(f"{name}={self.settings[name]}" for name in names)


def option_changes(difference: KernelDifference) -> OptionChanges:
    """Return the changes that do not follow from others. Raises RequestError if there are none, or if the kernels have
    no common source to decide it.
    """
    if not difference.a.source or not difference.b.source:
        lacking = difference.a.lacking or difference.b.lacking
        raise RequestError(
            f"cannot find the options that decide: {lacking}",
            hint="name the kernel's source, such as --source debian:6.1",
        )
    if difference.a.source != difference.b.source:
        raise RequestError(
            f"the kernels have different sources ({difference.a.source}, {difference.b.source}); "
            "bisecting options requires one source",
            hint="bisect versions instead, such as --good debian:5.10 --bad debian:6.1",
        )
    # An option that follows from others by Kconfig cannot be set by itself.
    chosen = [change for change in difference.effective if change.reason in ("asked", "default")]
    settings = {change.name: "n" if change.b in _NOT_SET else change.b for change in chosen}
    if not settings:
        raise RequestError(
            f"{difference.a.name} and {difference.b.name} have the same value for every option that can be set",
            hint="give two kernels with different options",
        )
    return OptionChanges(settings)


def bisect_options(changes: OptionChanges, test: Test) -> Changes:
    """Return the smallest set of options that makes the difference. Raises RequestError if all options together do not
    make it.
    """
    names = changes.names
    if len(names) > 1 and (outcome := test(names)) != "there":
        raise RequestError(
            f"all {len(names)} options together do not reproduce the difference ({outcome}), so no option explains it",
            hint="compare the sources, patches and compilers of the kernels",
        )
    return minimal_changes(names, test)


def label_of(names: Changes) -> str:
    """Return the label of a set of options in one line."""
    more = len(names) - _LONGEST
    return ", ".join(names[:_LONGEST]) + (f" and {more} more" if more > 0 else "")


def kernel_name(*parts: str) -> str:
    """Return a name for a kernel built as a candidate, derived from ``parts``: a rebuild has the same name."""
    return f"bisect-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


Watching = Callable[[], AbstractContextManager[BuildWatcher]]


@dataclass(frozen=True)
class Ask:
    """The request, as typed.

    ``source`` applies to ends that are .config files, ``config`` and ``settings`` to builds of revisions, ``every`` to
    versions. ``scheduler`` is a BPF scheduler of a repository, built by the command ``make`` for ``kernel``.
    """

    good: str
    bad: str
    source: str | None = None
    config: str = "lab"
    settings: tuple[str, ...] = ()
    every: bool = False
    scheduler: str | None = None
    make: str | None = None
    kernel: str | None = None


@dataclass(frozen=True)
class Workshop:
    """The place where kernels are built; ``watching`` opens a display of the build."""

    home: Home
    watching: Watching
    say: Say

    def build(self, request: BuildRequest) -> str:
        """Build the kernel and return its spec. Raises RequestError, RunError."""
        with self.watching() as watcher:
            return build_kernel(request, self.home, watcher).image.spec


SessionFor = Callable[[str, int], BisectionSession]
"""Takes the spec of the good kernel and the expected number of verdicts."""


def bisect(ask: Ask, workshop: Workshop, session_for: SessionFor) -> BisectionResult:
    """Bisect between the ends. Raises RequestError for ends that cannot be bisected, RunError if they do not differ."""
    if ask.scheduler is not None:
        return _over_schedulers(ask, ask.scheduler, workshop, session_for)
    if ask.good.startswith("git:") or ask.bad.startswith("git:"):
        return _over_revisions(ask, workshop, session_for)
    versions = _packaged(ask.good), _packaged(ask.bad)
    if versions[0] and versions[1]:
        return _over_versions(ask, versions[0], versions[1], workshop, session_for)
    return _over_options(ask, workshop, session_for)


def _over_versions(
    ask: Ask, good: PackagedKernel, bad: PackagedKernel, workshop: Workshop, session_for: SessionFor
) -> BisectionResult:
    specs = versions_between(good, bad, workshop.home, workshop.say, every=ask.every)
    session = session_for(specs[0], 1 + steps_needed(len(specs)))
    session.measure_ends(specs[-1], specs[-1])
    culprits = bisect_versions(specs, session.test)
    before = specs[specs.index(culprits[0]) - 1]
    return _result("versions", session, before, specs[-1], len(specs) - 1, culprits)


def _over_revisions(ask: Ask, workshop: Workshop, session_for: SessionFor) -> BisectionResult:
    ends = revision_ends(ask.good, ask.bad)
    count = count_between(ends)

    def build(commit: str) -> str:
        source = f"git:{ends.repository}@{commit}"
        name = kernel_name(source, ask.config, *ask.settings)
        return workshop.build(BuildRequest(source, ask.config, ask.settings, name=name))

    session = session_for(build(ends.good), 1 + steps_needed(count + 1))
    session.measure_ends(build(ends.bad), ask.bad)

    def test(commit: str, label: str) -> Outcome:
        return session.test(label, lambda: build(commit))

    return _result("revisions", session, ask.good, ask.bad, count, bisect_revisions(ends, test))


def _over_schedulers(ask: Ask, scheduler: str, workshop: Workshop, session_for: SessionFor) -> BisectionResult:
    if ask.kernel is None:
        raise RequestError("bisecting schedulers requires one kernel", hint="add it, such as --kernel debian:6.18")
    ends = revision_ends(ask.good, ask.bad)
    count = count_between(ends)
    with scheduler_builds(scheduler, ask.make, ends, ask.kernel, workshop.home, workshop.say) as builds:

        def build(commit: str) -> str:
            workshop.say(f"building {scheduler} at {commit[:12]}")
            return builds.build(commit)

        good, bad = build(ends.good), build(ends.bad)
        if good == bad:
            raise RequestError(f"{ask.good} and {ask.bad} make the same program", hint="give other revisions")
        session = replace(session_for(good, 1 + steps_needed(count + 1)), study_of_step=builds.study_of_step)
        session.measure_ends(bad, ask.bad, ask.good)

        def test(commit: str, label: str) -> Outcome:
            return session.test(label, lambda: build(commit))

        culprits = bisect_revisions(ends, test)
    return _result("revisions", session, ask.good, ask.bad, count, culprits)


def _over_options(ask: Ask, workshop: Workshop, session_for: SessionFor) -> BisectionResult:
    ask = _with_ends_built(ask, workshop)
    good, bad = (named_config(text, workshop.home, workshop.say) for text in (ask.good, ask.bad))
    source = _one_source(ask, good, bad)
    with kconfig_sources([source], workshop.home, workshop.say) as sources:
        changes = option_changes(compare_configs(good, bad, sources, workshop.say))
    base = _base(ask.good, workshop.home)

    def build(names: Changes) -> str:
        settings = changes.some(names)
        name = kernel_name(source, good.config.text(), *settings)
        return workshop.build(BuildRequest(source, str(base), settings, name=name))

    def end(text: str, names: Changes) -> str:
        return text if text.startswith(f"{BUILT}:") else build(names)

    # `minimal_changes` takes about twice the steps of halving where one option is to blame.
    session = session_for(end(ask.good, ()), 2 + 2 * steps_needed(len(changes.names) + 1))
    session.measure_ends(end(ask.bad, changes.names), ask.bad)

    def test(names: Changes) -> Outcome:
        return session.test(label_of(names), lambda: build(names))

    culprits = bisect_options(changes, test)
    return _result("options", session, ask.good, ask.bad, len(changes.names), changes.some(culprits))


def _with_ends_built(ask: Ask, workshop: Workshop) -> Ask:
    # A build takes long, so the rest of the request is checked before it.
    if not any(is_to_build(text) for text in (ask.good, ask.bad)):
        return ask
    if not is_to_build(ask.good):
        _base(ask.good, workshop.home)
    with workshop.watching() as watcher:
        sources = [ask.source] if ask.source else []
        good, bad = named_by_kernel((ask.good, ask.bad), sources, workshop.home, watcher)
    return replace(ask, good=good, bad=bad)


def _result(
    kind: Kind, session: BisectionSession, good: str, bad: str, among: int, culprits: tuple[str, ...]
) -> BisectionResult:
    return BisectionResult(
        kind=kind,
        study=session.study.name,
        metric=session.metric,
        good=good,
        bad=bad,
        among=among,
        steps=tuple(session.steps),
        culprits=culprits,
    )


def _packaged(text: str) -> PackagedKernel | None:
    if Path(text).expanduser().exists():
        return None
    try:
        spec = parse_spec(text)
    except RequestError:
        return None
    return spec if isinstance(spec, PackagedKernel) else None


def _one_source(ask: Ask, good: NamedConfig, bad: NamedConfig) -> str:
    if ask.source:
        return ask.source
    titles = {end.source for end in (good, bad) if end.source}
    if len(titles) == 1:
        return source_option(titles.pop())
    if titles:
        raise RequestError(
            f"{ask.good} and {ask.bad} were built from different sources: {', '.join(sorted(titles))}",
            hint="name one source for both, such as --source debian:6.1",
        )
    raise RequestError("bisecting .config files requires their source", hint="add it, such as --source debian:6.1")


def _base(text: str, home: Home) -> Path:
    from ajuste_kernels.building.built import find_built

    if text.startswith(f"{BUILT}:"):
        config = find_built(text.removeprefix(f"{BUILT}:"), home).image.config
        assert config is not None, "built kernels are kept with their configuration"
        return config
    path = Path(text).expanduser()
    if path.is_dir():
        path = path / ".config"
    if not path.is_file():
        raise RequestError(
            f"--good {text}: configuration not found", hint="give mine:NAME or a .config file to bisect kernel options"
        )
    return path
