"""Differences between the build options of two kernels, option by option, and the reason of each."""

from __future__ import annotations

import platform
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ajuste.kernel.builder import BuildWatcher
from ajuste.kernel.spec import OwnKernel, is_to_build, parse_spec, specs_to_build
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.kernel import DifferingOption, KernelImage, KernelOptions
from ajuste.model.wording import Say
from ajuste_guest.kernel.config import ConfigFile, read_config
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_kernels.building.build import build_specified, version_to_build
from ajuste_kernels.building.built import SourceOrigin, find_built, read_version
from ajuste_kernels.building.sources import DirectorySource, PackagedSource, cached_sources, open_source
from ajuste_kernels.kconfig import (
    KconfigAnswer,
    KconfigOption,
    KconfigQuestion,
    OptionExplanation,
    as_values,
    ask,
    source_version,
)

Reason = Literal["asked", "follows", "default", "rules", "compiler", "unknown"]
"""The reason why an option differs in B: ``asked``, it was free to be set; ``follows``, from other options that differ;
``default``, a default changed; ``rules``, the Kconfig files of the versions differ;
``compiler``, a test of the tools that built it; ``unknown`` where there is no source that would tell."""
Kind = Literal["changed", "new", "gone"]

ELSEWHERE: Final = "Elsewhere"
_MOST_CAUSES: Final = 4

_TOOLS: Final = re.compile(
    r"(CC|GCC|CLANG|AS|LD|LLD|RUST|RUSTC|PAHOLE|BINDGEN|TOOLCHAIN|GENKSYMS)_.*|CC_VERSION_TEXT|TOOLS_SUPPORT_.*"
)

RUNNING: Final = "running"
FORMS: Final = "a kernel (debian:6.1, mine:NAME), a .config file, or running"
_SERIES: Final = re.compile(r"\d+\.\d+")
MOST_OPTIONS: Final = 40


class OptionDifference(BaseModel):
    """An option that differs. ``a`` and ``b`` are its values as in a .config, or ``absent``. It is ``new`` or ``gone``
    if the other version has no option of that name. ``follows_from`` are other changes that bring it with them, most
    direct first; ``why`` says it in full. ``title`` is its prompt, ``help`` a sentence, ``file`` where it is defined.
    """

    name: str
    a: str
    b: str
    kind: Kind = "changed"
    reason: Reason = "unknown"
    follows_from: tuple[str, ...] = ()
    why: str = ""
    title: str = ""
    help: str = ""
    file: str = ""
    menus: tuple[str, ...] = ()

    def subsystem(self, depth: int = 2) -> str:
        """Return the ``depth`` outermost menus it is in: a name to group by."""
        return " › ".join(self.menus[:depth]) or ELSEWHERE

    @property
    def because(self) -> str:
        """Say in a few words where the difference comes from; empty if unknown."""
        if self.kind != "changed":
            return "new in B's version" if self.kind == "new" else "gone in B's version"
        if self.reason == "asked":
            return "set explicitly"
        if self.reason == "follows":
            others = ("others",) if self.follows_from[_MOST_CAUSES:] else ()
            return f"because of {', '.join((*self.follows_from[:_MOST_CAUSES], *others))}"
        return "" if self.reason == "unknown" else self.why.partition("\n")[0]

    @property
    def in_neither(self) -> bool:
        """Return whether only one kernel offers it, and does not use it."""
        return {self.a, self.b} <= {"n", "absent"}


class Side(BaseModel):
    """A kernel of the two. ``kernel`` and ``compiler`` are what its configuration says, ``source`` the Kconfig files
    that were read for it, ``lacking`` why there are none, ``asked`` the options that were asked for when it was built
    here.
    """

    name: str
    kernel: str = ""
    compiler: str = ""
    options: int = 0
    source: str = ""
    lacking: str = ""
    asked: Mapping[str, str] = {}


class KernelDifference(BaseModel):
    """The differences, by name; what is in neither kernel comes last."""

    a: Side
    b: Side
    changes: tuple[OptionDifference, ...]

    @property
    def effective(self) -> tuple[OptionDifference, ...]:
        """Return what differs in the kernels themselves."""
        return tuple(change for change in self.changes if not change.in_neither)

    def counts(self) -> dict[str, int]:
        """Return how many of the effective changes there are of each reason, and how many of the others."""
        reasons: list[str] = [change.reason for change in self.effective]
        by_reason = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
        return {"total": len(reasons), **by_reason, "in_neither": len(self.changes) - len(reasons)}

    def followers(self) -> Counter[str]:
        """Return how many changes each one brings with it directly."""
        return Counter(name for change in self.effective for name in change.follows_from)

    def groups(self, depth: int = 2) -> dict[str, tuple[OptionDifference, ...]]:
        """Return the effective changes by outermost menus, first what was asked for or is followed most."""
        order: tuple[Reason, ...] = ("asked", "default", "follows", "rules", "compiler", "unknown")
        followers = self.followers()
        by_subsystem: dict[str, list[OptionDifference]] = {}
        for change in self.effective:
            by_subsystem.setdefault(change.subsystem(depth), []).append(change)

        def rank(change: OptionDifference) -> tuple[int, int, str]:
            return order.index(change.reason), -followers[change.name], change.name

        names = sorted(by_subsystem, key=lambda name: (name == ELSEWHERE, name))
        return {name: tuple(sorted(by_subsystem[name], key=rank)) for name in names}

    def within(self, text: str) -> KernelDifference:
        """Return the changes whose name, menus or file have ``text`` in them."""
        wanted = text.casefold()
        relevant = [
            change
            for change in self.changes
            if any(wanted in place.casefold() for place in (*change.menus, change.file, change.name))
        ]
        return self.model_copy(update={"changes": tuple(relevant)})


# What a difference comes from, by the rules of one or both kernels.


@dataclass(frozen=True)
class KnownOptions:
    """A kernel's options; ``answer`` is what its Kconfig files say of those that differ, None where there are no
    files, ``requested`` the options that were asked for when it was built here.
    """

    config: ConfigFile
    answer: KconfigAnswer | None = None
    requested: Mapping[str, str] = field(default_factory=dict)


def differing(a: ConfigFile, b: ConfigFile) -> tuple[str, ...]:
    """Return the names of options that are not written alike."""
    return tuple(sorted(name for name in {*a.settings, *b.settings} if a[name] != b[name]))


def changes(a: KnownOptions, b: KnownOptions, *, same_source: bool) -> tuple[OptionDifference, ...]:
    """Return every difference with what it comes from; ``same_source`` if both have the same rules."""
    names = differing(a.config, b.config)
    differences = [_change(name, frozenset(names), a, b, same_source) for name in names]
    return tuple(sorted(differences, key=lambda change: (change.in_neither, change.name)))


def _change(name: str, names: Collection[str], a: KnownOptions, b: KnownOptions, same_source: bool) -> OptionDifference:
    before, after = _explanation(a, name), _explanation(b, name)
    kind: Kind = "changed"
    if a.answer is not None and b.answer is not None:
        if name not in a.answer.options and name in b.answer.options:
            kind = "new"
        elif name in a.answer.options and name not in b.answer.options:
            kind = "gone"
    reason, follows_from, why = _origin(name, names, a, b, same_source, kind)
    option = _option(b, name) or _option(a, name)
    menus = b.config.menus.get(name) or a.config.menus.get(name) or ()
    change = OptionDifference(
        name=name,
        a=str(a.config[name]),
        b=str(b.config[name]),
        kind=kind,
        reason=reason,
        follows_from=follows_from,
        why=why if why or after is None or before is None else after.sentence,
        menus=menus,
    )
    if option is None:
        return change
    described = {"title": option.title, "help": option.help, "file": option.file, "menus": option.menus or menus}
    return change.model_copy(update=described)


def _origin(
    name: str, names: Collection[str], a: KnownOptions, b: KnownOptions, same_source: bool, kind: Kind
) -> tuple[Reason, tuple[str, ...], str]:
    before, after = _explanation(a, name), _explanation(b, name)
    if name in b.requested or name in a.requested:
        return "asked", (), "it is set explicitly"
    if _TOOLS.fullmatch(name):
        return "compiler", (), "the tools that built the kernels differ"
    if after is None and before is None:
        return "unknown", (), ""
    if kind != "changed":
        return "rules", (), ""
    if foreign := _foreign(name, a, b):
        return "rules", (), foreign
    if after is None or after.cause in ("asked", "default", "range"):
        return _of_free(name, names, before, a, b, same_source)
    for explanation in (after, before):
        if explanation is not None and (causes := _through(explanation, names, name)):
            return "follows", causes, "\n".join(explanation.sentences())
    if not same_source:
        return "rules", (), after.sentence
    return ("default" if after.cause == "hidden" else "asked"), (), after.sentence


def _of_free(
    name: str,
    names: Collection[str],
    before: OptionExplanation | None,
    a: KnownOptions,
    b: KnownOptions,
    same_source: bool,
) -> tuple[Reason, tuple[str, ...], str]:
    # What could be set in B: whether it has its value from somebody, or only is what it is by default.
    value, was = b.config[name].text or "n", a.config[name].text or "n"
    by_default = b.answer is not None and b.answer.defaults.get(name) == value
    if before is not None and by_default and before.cause not in ("asked", "default", "choice"):
        if causes := _through(before, names, name):
            return "follows", causes, f"{before.sentence}; otherwise its default is {value}"
        if not same_source:
            return "rules", (), before.sentence
    if by_default and a.answer is not None and a.answer.defaults.get(name) == was:
        return "default", (), f"its default changes from {was} to {value}"
    if b.answer is None:
        return "unknown", (), ""
    return "asked", (), ""


def _foreign(name: str, a: KnownOptions, b: KnownOptions) -> str:
    # A distribution's patches can give an option a value that the sources read here cannot.
    for known in (b, a):
        explanation = _explanation(known, name)
        if explanation is None:
            continue
        setting = known.config[name]
        if explanation.cause == "unknown":
            if setting.is_on:
                return "option not found in this source"
        elif explanation.value.casefold() != (setting.text.casefold() if setting.is_on else explanation.value and "n"):
            return f"by this source it is {explanation.value or 'empty'}, not {setting}"
    return ""


def _through(explanation: OptionExplanation, names: Collection[str], name: str) -> tuple[str, ...]:
    # The options among `names` that a value follows from: the most direct ones.
    direct = tuple(option for option in explanation.deciding if option in names and option != name)
    if direct:
        return direct
    return tuple(dict.fromkeys(option for step in explanation.because for option in _through(step, names, name)))


def _explanation(known: KnownOptions, name: str) -> OptionExplanation | None:
    return known.answer.explanations.get(name) if known.answer else None


def _option(known: KnownOptions, name: str) -> KconfigOption | None:
    return known.answer.options.get(name) if known.answer else None


# The configurations that a person names (kernels, .config files, the running system), and two of them compared.


@dataclass(frozen=True)
class NamedConfig:
    """A configuration by the name that a person uses. ``requested`` are the options that were asked for when the kernel
    was built here, ``source`` what it was built from, as its record has it.
    """

    name: str
    config: ConfigFile
    requested: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def named_config(text: str, home: Home, say: Say, *, root: Path = Path("/")) -> NamedConfig:
    """Return the configuration that ``text`` names, fetching a missing kernel. ``root`` is where the running system has
    its files. Raises RequestError, or RunError where fetching fails.
    """
    if text == RUNNING:
        return NamedConfig(text, _of_running(root))
    path = Path(text).expanduser()
    if path.is_dir() and (path / ".config").is_file():
        path = path / ".config"
    if path.is_file():
        return NamedConfig(text, read_config(path, named=True))
    try:
        spec = parse_spec(text)
    except RequestError as error:
        raise RequestError(f"file {text!r} not found; {error.message}", hint=f"give {FORMS}") from error
    if isinstance(spec, OwnKernel):
        built = find_built(spec.name, home)
        provenance = built.provenance
        return NamedConfig(text, _of_image(text, built.image.config), provenance.settings, provenance.source)
    return NamedConfig(text, _of_image(text, fetch_kernel(text, home, say=say).config))


def named_by_kernel(texts: Sequence[str], sources: Sequence[str], home: Home, watcher: BuildWatcher) -> tuple[str, ...]:
    """Return ``texts`` with a name (``mine:NAME``) for each kernel to be built, which it builds after looking up the
    others and the ``sources`` of Kconfig files. Raises RequestError, RunError.
    """
    wanted = [text for text in texts if is_to_build(text)]
    if not wanted:
        return tuple(texts)
    for spec in specs_to_build(wanted).values():
        version_to_build(spec, home)
    for text in set(texts) - set(wanted):
        named_config(text, home, watcher.say)
    for text in sources:
        open_source(text, home, watcher.say)
    built = build_specified(wanted, home, watcher)
    return tuple(built[text].image.spec if text in built else text for text in texts)


def _of_image(text: str, config: Path | None) -> ConfigFile:
    if config is None:
        raise RequestError(f"the kernel {text} has no configuration file", hint="give its .config file instead")
    return read_config(config)


def _of_running(root: Path) -> ConfigFile:
    # Source: CONFIG_IKCONFIG_PROC of the kernel, and where distributions put the file.
    release = platform.release()
    places = (
        root / "proc/config.gz",
        root / f"boot/config-{release}",
        root / f"lib/modules/{release}/config",
        root / f"usr/lib/modules/{release}/config",
    )
    for place in places:
        if place.is_file():
            return read_config(place)
    raise RequestError(
        f"the configuration of the running kernel {release} was not found: expected {places[0]} or {places[1]}",
        hint="try modprobe configs for /proc/config.gz, or give its .config file",
    )


# The sources whose Kconfig files tell why: those that are here, or those that a person names.


@dataclass(frozen=True)
class KconfigSource:
    """A source to read Kconfig files from. ``tree`` has at least these and what they call; ``named`` if a person named
    it.
    """

    title: str
    version: str
    tree: Path
    named: bool = False

    @property
    def series(self) -> str:
        return version_series(self.version)


def version_series(version: str) -> str:
    """Return ``6.1`` of ``6.1.192``, empty for what is no version."""
    series = _SERIES.match(version)
    return series[0] if series else ""


@contextmanager
def kconfig_sources(named: Sequence[str], home: Home, say: Say) -> Iterator[list[KconfigSource]]:
    """Yield the ``named`` sources (``debian:6.1``, a directory, ``git:DIR@REVISION``), which it fetches, then all
    packaged ones here. Raises RequestError, RunError.
    """
    with tempfile.TemporaryDirectory(prefix="ajuste-kconfig-") as folder:
        opened = [
            _opened(open_source(text, home, say), Path(folder) / str(number)) for number, text in enumerate(named)
        ]
        cached = [
            KconfigSource(source.title, source_version(source.tree), source.tree) for source in cached_sources(home)
        ]
        yield [*opened, *(source for source in cached if source.tree not in {other.tree for other in opened})]


def source_for(config: NamedConfig, sources: Sequence[KconfigSource]) -> KconfigSource | None:
    """Return the source that a configuration was made for, or else one of the same series. A configuration that does
    not name its version belongs to the named source.
    """
    for source in sources:
        if config.source and config.source == source.title:
            return source
    version = config.config.kernel
    if not version:
        return next((source for source in sources if source.named), None)
    for source in sources:
        if source.version == version:
            return source
    return next((source for source in sources if source.series and source.series == version_series(version)), None)


def _opened(origin: SourceOrigin, folder: Path) -> KconfigSource:
    version = read_version(origin)
    if isinstance(origin, PackagedSource):
        return KconfigSource(origin.title, version, origin.tree, named=True)
    if isinstance(origin, DirectorySource):
        return KconfigSource(origin.title, version, origin.directory, named=True)
    paths = [
        path
        for path in origin.manifest
        if path == "Makefile" or path.startswith("scripts/") or path.rpartition("/")[2].startswith("Kconfig")
    ]
    for parent in {path.rpartition("/")[0] for path in paths}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    origin.write(paths, folder)
    return KconfigSource(origin.title, version, folder, named=True)


# Two configurations side by side, with what the Kconfig files of their sources say of what differs.


def compare_configs(a: NamedConfig, b: NamedConfig, sources: Sequence[KconfigSource], say: Say) -> KernelDifference:
    """Return what differs from ``a`` to ``b``, without reasons where no source is here or it cannot be read; that side
    says so.
    """
    names = differing(a.config, b.config)
    source_a, source_b = source_for(a, sources), source_for(b, sources)
    question_a, question_b = _question(names, a.config, b.config), _question(names, b.config, a.config)
    same_source = source_a is not None and source_a == source_b
    lacking_a, lacking_b = _lacking(a, source_a), _lacking(b, source_b)
    answer_a: KconfigAnswer | None = None
    answer_b: KconfigAnswer | None = None
    try:
        if source_a is not None and same_source and names:
            answer_a, answer_b = _read(source_a, [question_a, question_b], say)
        elif names:
            answer_a = _read(source_a, [question_a], say)[0] if source_a else None
            answer_b = _read(source_b, [question_b], say)[0] if source_b else None
    except AjusteError as error:
        lacking_a = lacking_a or error.message
        lacking_b = lacking_b or error.message
    known_a = KnownOptions(a.config, answer_a, a.requested)
    known_b = KnownOptions(b.config, answer_b, b.requested)
    return KernelDifference(
        a=_side(a, source_a if answer_a else None, lacking_a),
        b=_side(b, source_b if answer_b else None, lacking_b),
        changes=changes(known_a, known_b, same_source=same_source),
    )


def _read(source: KconfigSource, questions: list[KconfigQuestion], say: Say) -> tuple[KconfigAnswer, ...]:
    say(f"reading the Kconfig files of {source.title}")
    return ask(source.tree, questions)


def _question(names: Sequence[str], config: ConfigFile, other: ConfigFile) -> KconfigQuestion:
    return KconfigQuestion(
        config=as_values(config),
        explain={name: other[name].text if other[name].is_on else "n" for name in names},
        defaults=tuple(names),
    )


def _side(named: NamedConfig, source: KconfigSource | None, lacking: str) -> Side:
    return Side(
        name=named.name,
        kernel=named.config.kernel,
        compiler=named.config.compiler,
        options=sum(setting.is_on for setting in named.config.settings.values()),
        source=source.title if source else "",
        lacking="" if source else lacking,
        asked=dict(named.requested),
    )


def _lacking(named: NamedConfig, source: KconfigSource | None) -> str:
    if source is not None:
        return ""
    series = version_series(named.config.kernel)
    if not series:
        return "its file has no kernel version"
    return f"the source of kernel {series} is not cached"


# Kernels that are compared with each other in a study: in which build options each differs from the baseline's.


def compared_options(
    baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[str, KernelOptions]:
    """Compare each of ``images``, by spec, that has the version of the ``baseline``'s: between versions nearly all
    options differ.
    """
    version = images[baseline].version
    peers = [spec for spec, image in images.items() if spec != baseline and image.version == version]
    first = _config(baseline, home, say) if peers else None
    if first is None:
        return {}
    with kconfig_sources((), home, say) as sources:
        others = {spec: other for spec in peers if (other := _config(spec, home, say)) is not None}
        return {
            spec: _listed_options(baseline, compare_configs(first, other, sources, say))
            for spec, other in others.items()
        }


def _config(spec: str, home: Home, say: Say) -> NamedConfig | None:
    try:
        return named_config(spec, home, say)
    except AjusteError:
        return None


def _listed_options(baseline: str, difference: KernelDifference) -> KernelOptions:
    changes = sorted(difference.effective, key=lambda change: change.reason != "asked")
    options = tuple(
        DifferingOption(name=change.name, title=change.title, baseline=change.a, own=change.b, because=change.because)
        for change in changes[:MOST_OPTIONS]
    )
    return KernelOptions(baseline=baseline, total=len(changes), options=options)
