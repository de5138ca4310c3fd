"""Plug-ins: what other packages add to Ajuste, by the entry points that their metadata name.

The groups are those of ``Group``. Nothing of a package is loaded before it is used. One that is broken is named, and
all else goes on.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType
from typing import Any, Final, Literal

from ajuste.model.error import RequestError, RunError

Group = Literal[
    "commands",
    "schedules",
    "assemblers",
    "facets",
    "sections",
    "notes",
    "reports",
    "texts",
    "pictures",
    "stored",
    "pages",
    "operations",
    "outputs",
    "exports",
    "features",
    "kernels",
    "testbeds",
    "recorders",
    "profiles",
    "sources",
    "catalogues",
]
"""Groups of what a package can add; the entry points of each are in ``ajuste.GROUP``:

- ``commands``: a function, or a group of commands (``ajuste.cli.command_line.Commands``), by the command's name
- ``schedules``: what decides which trials come next in a kind of experiment, called as the class
  ``ajuste.run.schedule.Schedule``
- ``assemblers``: a function that gives the results of a kind of experiment, as ``ajuste.analysis.results.assemble``
- ``facets`` and ``sections``: modules on what only some runs have, and how a report tells it (``ajuste.run.facets``,
  ``ajuste.report.facets``)
- ``notes``: modules with ``clock_notes(results)``: sentences on what a run's clock means (``ajuste.report.method``)
- ``reports``: functions that write a run's results to a file in a language, by the name of the format (``ajuste report
  RUN --format NAME --output FILE``)
- ``texts``: functions that return a run's results as text, by the name of the format (``ajuste report RUN --format
  NAME``); they take the results, the names of metrics, the results of a run that explains them, and the home
- ``pictures``: functions that draw every picture of a report into a directory, by the name of the format, and return
  the files (``ajuste report RUN --pictures DIR --format NAME``)
- ``stored``: modules with what the store has beside runs, by the word that its names begin with (``suite`` of
  ``suite-NAME``): ``find(store, name)``, and ``show`` for ``ajuste report`` (``ajuste_ci.suite.showing``)
- ``pages``: modules with ``PLACES`` and ``ROUTES`` of the lab page (``ajuste_lab.pages``)
- ``operations``: modules with ``OPERATIONS`` for programs that use the lab (``ajuste_lab.agents.operations``)
- ``outputs``: modules that read what programs write (``ajuste.outputs.programs``)
- ``exports``: modules with a format for what won (``ajuste_profiles.formats``)
- ``features``: modules with features of kernels (``ajuste_guest.proofs.features``)
- ``kernels``: ``build``, what builds kernels that are not there yet: a class of the interface
  ``ajuste.kernel.builder.KernelBuilder``
- ``testbeds``: classes of machines that studies are measured on (``ajuste.run.testbed``): ``guest``, guests of this
  machine; ``cluster``, guests of the machines of a cluster; ``machines``, those machines themselves
- ``recorders``: ``why``, a module that records trials and explains them (``ajuste.run.experiment.recorder``)
- ``profiles``: ``place``, what profiles set on a study's machine: a class of the interface
  ``ajuste.run.placement.ProfilePlacement``
- ``sources``: modules with a source of live metrics (``ajuste_live.sources``)
- ``catalogues``: packages with files of settings, workloads and studies, in the folders that ``ajuste.catalogue`` has
"""

_DIRECTORY: Final = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info")
_PINNED: Final = re.compile(r"^Requires-Dist: ajuste *(?:\[[^]]*\])? *\(?== *([^\s;,)]+)", re.MULTILINE)

_problems: dict[str, None] = {}


@dataclass(frozen=True)
class Plugin:
    """A plug-in of an installed ``package`` (name and version): ``value`` is ``MODULE`` or ``MODULE:OBJECT``."""

    group: Group
    name: str
    value: str
    package: str
    metadata: Path

    @property
    def module(self) -> str:
        """Return the name of its module."""
        return self.value.partition(":")[0]

    def load(self) -> Any:
        """Return the module or object. Raises RequestError that names the plug-in and its package."""
        pinned, present = _PINNED.search(_text(self.metadata / "METADATA")), _version()
        if pinned and present and pinned[1] != present:
            raise self._unusable(f"is for Ajuste {pinned[1]}; this is {present}", "install both in one version")
        module, _, name = self.value.partition(":")
        try:
            imported = import_module(module)
            return getattr(imported, name) if name else imported
        except RequestError as error:
            raise self._unusable(f"cannot be loaded: {error.message}", error.hint) from error
        except Exception as error:
            reason = f"cannot be loaded: {type(error).__name__}: {error}"
            raise self._unusable(reason, f"update {self.package.partition(' ')[0]}, or remove it") from error

    def _unusable(self, reason: str, hint: str | None) -> RequestError:
        return RequestError(f"{self} {reason}", hint=hint)

    def __str__(self) -> str:
        return f"plug-in {self.name} ({self.group}) of the package {self.package}"


@cache
def plugins(group: Group) -> Mapping[str, Plugin]:
    """Return the plug-ins of a group by name. Of two with one name neither is there, and ``problems`` has both."""
    named: dict[str, list[Plugin]] = {}
    for plugin in _installed():
        if plugin.group == group:
            named.setdefault(plugin.name, []).append(plugin)
    for same in named.values():
        if same[1:]:
            add_problem(f"{same[0]} has the name of that of {same[1].package}: remove one of them")
    return MappingProxyType({name: same[0] for name, same in named.items() if not same[1:]})


def added() -> dict[str, tuple[str, ...]]:
    """Return what each installed package adds, such as ``commands live``, by its name and version."""
    by_package: dict[str, tuple[str, ...]] = {}
    for plugin in _installed():
        by_package[plugin.package] = (*by_package.get(plugin.package, ()), f"{plugin.group} {plugin.name}")
    return by_package


def packages() -> frozenset[str]:
    """Return the names of the Python packages that have plug-ins."""
    return frozenset(plugin.module.partition(".")[0] for plugin in _installed())


def load_plugin(group: Group, name: str) -> Any:
    """Return the module or object of a plug-in. Raises RequestError if there is not one, or it cannot be loaded."""
    if (plugin := plugins(group).get(name)) is None:
        raise RequestError(
            f"plug-in {name} ({group}) not found, or in two packages",
            hint="install Ajuste again, or remove one of them",
        )
    return plugin.load()


def modules(
    folder: ModuleType, group: Group, wanted: Callable[[str], bool] = lambda _: True
) -> Mapping[str, ModuleType]:
    """Return the modules of ``folder``, for which a file in it is enough, and the plug-ins of ``group``, by name; only
    those that are ``wanted`` are loaded.

    A plug-in that cannot be loaded, or has the name of one of the modules, is left out, and ``problems`` has it.
    """
    names = [module.name for module in iter_modules(folder.__path__)]
    loaded = {name: import_module(f"{folder.__name__}.{name}") for name in names if wanted(name)}
    for name, module in load_each(group, wanted):
        if name in names:
            add_problem(f"{plugins(group)[name]} has the name of one of Ajuste's: rename it")
        else:
            loaded[name] = module
    return MappingProxyType(dict(sorted(loaded.items())))


def catalogues() -> Iterator[Traversable]:
    """Yield the catalogue of each package that has one."""
    for _, package in load_each("catalogues"):
        yield files(package)


def folders(name: str) -> Iterator[Traversable]:
    """Yield the folder ``name`` of each package with a catalogue that has one."""
    for place in catalogues():
        if (folder := place / name).is_dir():
            yield folder


def load_each(group: Group, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, Any]]:
    """Yield what of the group can be loaded, by name; ``problems`` has the others."""
    for plugin in plugins(group).values():
        if wanted(plugin.name):
            try:
                yield plugin.name, plugin.load()
            except RequestError as error:
                add_problem(error.message)


@contextmanager
def isolated(module: ModuleType) -> Iterator[None]:
    """Leave out what a plug-in's ``module`` cannot do; a fault of Ajuste itself is raised, and damage of the store."""
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        if module.__name__.partition(".")[0] == "ajuste":
            raise
        add_problem(f"{module.__name__}, a plug-in, failed: {type(error).__name__}: {error}")


def add_problem(problem: str) -> None:
    """Add what is wrong with a plug-in that is left out."""
    _problems[problem] = None


def problems() -> tuple[str, ...]:
    """Return what is wrong with plug-ins that were left out until now."""
    return tuple(_problems)


@cache
def _installed() -> tuple[Plugin, ...]:
    # importlib.metadata takes longer to load than most commands; the files are as simple as their specification
    # (https://packaging.python.org/en/latest/specifications/entry-points).
    installed: list[Plugin] = []
    for name, (package, metadata) in _distributions().items():
        group: str | None = None
        for line in _text(metadata / "entry_points.txt").splitlines() if name != "ajuste" else ():
            text = line.strip()
            if text.startswith("["):
                group = text[1:-1].removeprefix("ajuste.") if text.startswith("[ajuste.") else None
            elif group is not None and "=" in text and text[0] not in "#;":
                key, value = (part.strip() for part in text.split("=", 1))
                installed.append(Plugin(group, key, value.partition("[")[0].strip(), package, metadata))  # type: ignore[arg-type]
    return tuple(installed)


@cache
def _distributions() -> Mapping[str, tuple[str, Path]]:
    # Each installed package with its name and version, and the directory of its metadata: the first in sys.path.
    packages: dict[str, tuple[str, Path]] = {}
    for entry in _metadata():
        if match := _DIRECTORY.fullmatch(entry.name):
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            packages.setdefault(name, (f"{name} {match['version']}", entry))
    return packages


def _metadata() -> Iterator[Path]:
    for place in sys.path:
        try:
            with os.scandir(place or ".") as entries:
                yield from sorted(Path(entry.path) for entry in entries if entry.name.endswith(".dist-info"))
        except OSError:
            continue  # a directory that is not there, or an archive


def _version() -> str:
    return _distributions().get("ajuste", ("", Path()))[0].partition(" ")[2]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
