"""The configurations that a person names (kernels, .config files, the running system), and two of them compared."""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.kernel.building.build import BuildWatcher
from ajuste.kernel.building.built import SourceOrigin, find_built, version_of
from ajuste.kernel.building.packaged import PackagedSource, cached_sources
from ajuste.kernel.building.sources import DirectorySource, open_source
from ajuste.kernel.building.specified import build_specified, version_to_build
from ajuste.kernel.difference.difference import (
    KernelDifference,
    KnownOptions,
    OptionDifference,
    Side,
    changes,
    differing,
)
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.kconfig.config_file import ConfigFile, ConfigSetting, read_config
from ajuste.kernel.kconfig.tree import KconfigAnswer, KconfigQuestion, as_values, ask, source_version
from ajuste.kernel.spec import OwnKernel, is_to_build, parse_spec, specs_to_build
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.kernel import DifferingOption, KernelImage, KernelOptions
from ajuste.model.wording import Say

RUNNING: Final = "running"
FORMS: Final = "a kernel (debian:6.1, mine:NAME), a .config file, or running"


@dataclass(frozen=True)
class NamedConfig:
    """``asked`` are the options that were asked for when the kernel was built here, ``source`` what it was built
    from, as its record has it.
    """

    name: str
    config: ConfigFile
    asked: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


def named_config(text: str, home: Home, say: Say, *, root: Path = Path("/")) -> NamedConfig:
    """The configuration that ``text`` names; a kernel is fetched if it is not here. ``root`` is where the running
    system has its files. Raises RequestError, or RunError where fetching fails.
    """
    if text == RUNNING:
        return NamedConfig(text, _of_running(root))
    path = Path(text).expanduser()
    if path.is_dir() and (path / ".config").is_file():
        path = path / ".config"
    if path.is_file():
        return NamedConfig(text, read_config(path))
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
    """``texts`` with a name (``mine:NAME``) for each kernel to be built, which is built by now. The others, and the
    ``sources`` of Kconfig files that are named, are looked up before. Raises RequestError, RunError.
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
    """Source: CONFIG_IKCONFIG_PROC of the kernel, and where distributions put the file."""
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


_SERIES: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class KconfigSource:
    """``tree`` has at least the Kconfig files and what they call; ``named`` if a person named it."""

    title: str
    version: str
    tree: Path
    named: bool = False

    @property
    def series(self) -> str:
        return series_of(self.version)


def series_of(version: str) -> str:
    """``6.1`` of ``6.1.192``; empty for what is no version."""
    found = _SERIES.match(version)
    return found[0] if found else ""


@contextmanager
def kconfig_sources(named: Sequence[str], home: Home, say: Say) -> Iterator[list[KconfigSource]]:
    """Those that are ``named`` (``debian:6.1``, a directory, ``git:DIR@REVISION``), which are fetched if they are not
    here; then all packaged ones that are here. Raises RequestError, RunError.
    """
    with tempfile.TemporaryDirectory(prefix="ajuste-kconfig-") as folder:
        found = [_opened(open_source(text, home, say), Path(folder) / str(number)) for number, text in enumerate(named)]
        cached = [KconfigSource(one.title, source_version(one.tree), one.tree) for one in cached_sources(home)]
        yield [*found, *(one for one in cached if one.tree not in {other.tree for other in found})]


def source_for(config: NamedConfig, sources: Sequence[KconfigSource]) -> KconfigSource | None:
    """The source that a configuration was made for: exactly that one, or else one of the same series. One that does
    not say what it was made for is taken to be for the source that was named.
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
    return next((source for source in sources if source.series and source.series == series_of(version)), None)


def _opened(origin: SourceOrigin, folder: Path) -> KconfigSource:
    version = version_of(origin)
    if isinstance(origin, PackagedSource):
        return KconfigSource(origin.title, version, origin.tree, named=True)
    if isinstance(origin, DirectorySource):
        return KconfigSource(origin.title, version, origin.directory, named=True)
    paths = [path for path in origin.manifest if _is_needed(path)]
    for parent in {path.rpartition("/")[0] for path in paths}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    origin.write(paths, folder)
    return KconfigSource(origin.title, version, folder, named=True)


def _is_needed(path: str) -> bool:
    return path == "Makefile" or path.startswith("scripts/") or path.rpartition("/")[2].startswith("Kconfig")


# Two configurations side by side, with what the Kconfig files of their sources say of what differs.


def compare(a: NamedConfig, b: NamedConfig, sources: Sequence[KconfigSource], say: Say) -> KernelDifference:
    """What differs from ``a`` to ``b``. Where no source is here, or it cannot be read, that side says so and what
    differs is told without its reasons.
    """
    names = differing(a.config, b.config)
    source_a, source_b = source_for(a, sources), source_for(b, sources)
    asked_a, asked_b = _asked(names, a.config, b.config), _asked(names, b.config, a.config)
    one_source = source_a is not None and source_a == source_b
    lacking_a, lacking_b = _lacking(a, source_a), _lacking(b, source_b)
    answer_a: KconfigAnswer | None = None
    answer_b: KconfigAnswer | None = None
    try:
        if source_a is not None and one_source and names:
            answer_a, answer_b = _read(source_a, [asked_a, asked_b], say)
        elif names:
            answer_a = _read(source_a, [asked_a], say)[0] if source_a else None
            answer_b = _read(source_b, [asked_b], say)[0] if source_b else None
    except AjusteError as error:
        lacking_a = lacking_a or error.message
        lacking_b = lacking_b or error.message
    known_a = KnownOptions(a.config, answer_a, a.asked)
    known_b = KnownOptions(b.config, answer_b, b.asked)
    return KernelDifference(
        a=_side(a, source_a if answer_a else None, lacking_a),
        b=_side(b, source_b if answer_b else None, lacking_b),
        changes=changes(known_a, known_b, one_source=one_source),
    )


def _read(source: KconfigSource, asked: list[KconfigQuestion], say: Say) -> tuple[KconfigAnswer, ...]:
    say(f"reading the Kconfig files of {source.title}")
    return ask(source.tree, asked)


def _asked(names: Sequence[str], own: ConfigFile, other: ConfigFile) -> KconfigQuestion:
    return KconfigQuestion(
        config=as_values(own), explain={name: _as_wanted(other[name]) for name in names}, defaults=tuple(names)
    )


def _as_wanted(setting: ConfigSetting) -> str:
    return setting.text if setting.is_on else "n"


def _side(named: NamedConfig, source: KconfigSource | None, lacking: str) -> Side:
    return Side(
        name=named.name,
        kernel=named.config.kernel,
        compiler=named.config.compiler,
        options=sum(setting.is_on for setting in named.config.settings.values()),
        source=source.title if source else "",
        lacking="" if source else lacking,
        asked=dict(named.asked),
    )


def _lacking(named: NamedConfig, source: KconfigSource | None) -> str:
    if source is not None:
        return ""
    series = series_of(named.config.kernel)
    if not series:
        return "its file has no kernel version"
    return f"the source of kernel {series} is not cached"


# Kernels that are compared with each other in a study: in which build options each differs from the baseline's.


MOST_OPTIONS: Final = 40


def compared_options(
    baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[str, KernelOptions]:
    """For each of ``images``, by spec, that has the version of the ``baseline``'s. Between versions nearly all would be
    told, and what comes without its configuration has nothing to tell: these are left out.
    """
    version = images[baseline].version
    peers = [spec for spec, image in images.items() if spec != baseline and image.version == version]
    first = _config(baseline, home, say) if peers else None
    if first is None:
        return {}
    with kconfig_sources((), home, say) as sources:
        others = {spec: other for spec in peers if (other := _config(spec, home, say)) is not None}
        return {spec: _told(baseline, compare(first, other, sources, say)) for spec, other in others.items()}


def _config(spec: str, home: Home, say: Say) -> NamedConfig | None:
    try:
        return named_config(spec, home, say)
    except AjusteError:
        return None


def _told(baseline: str, difference: KernelDifference) -> KernelOptions:
    changes = sorted(difference.effective, key=lambda change: change.reason != "asked")
    return KernelOptions(baseline=baseline, total=len(changes), options=tuple(map(_option, changes[:MOST_OPTIONS])))


def _option(change: OptionDifference) -> DifferingOption:
    return DifferingOption(name=change.name, title=change.title, baseline=change.a, own=change.b, because=change.said)
