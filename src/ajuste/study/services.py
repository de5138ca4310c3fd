"""The services of a study: their places and ports, and the commands that start and stop them in each trial."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.plan import Attributes, Command, User
from ajuste.model.tunable import SERVICE_PREFIX
from ajuste.model.workload import WorkloadKind
from ajuste.study.factors import (
    SETTING_PLACEHOLDER,
    check_attributes,
    names_set,
    process_attributes,
    service_kind,
    service_part,
    service_placeholders,
    set_by,
    varies,
)
from ajuste.study.job import ServiceTable
from ajuste.study.problem import KeyPath, Problem, nearest
from ajuste.study.resolved import Service
from ajuste.study.schema import Study
from ajuste.study.site import MOUNT_POINT, Site

# First port of a service, below those that the kernel gives to clients (net.ipv4.ip_local_port_range).
FIRST_PORT: Final = 21700

# Share of a trial's time limit: a service that is not ready by then is reported before the trial is stopped.
LONGEST_SHARE: Final = 0.9

_PLACEHOLDER: Final = re.compile(r"\{(port|data)(?::([a-z0-9-]+))?\}")


# What stands for a port or a directory in commands.


def _named(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    # Yield each placeholder in `words`: port or data, and the service's name, which may be empty.
    for word in words:
        for match in _PLACEHOLDER.finditer(word):
            yield match[1], match[2] or ""


def _placeholder_texts(service: ServiceTable) -> tuple[str, ...]:
    # Return the texts of a service in which placeholders are its own.
    lists = [words for words in (service.ready, service.stop, service.data) if isinstance(words, tuple)]
    ready = (service.ready,) if isinstance(service.ready, str) else ()
    return (*service.command, *ready, *(word for words in lists for word in words), *service.environment.values())


def _askers(study: Study) -> Iterator[tuple[KeyPath, tuple[str, ...]]]:
    workload = study.workload
    yield ("workload", "command"), workload.command or ()
    for index, variant in enumerate(workload.variants):
        yield ("workload", "variant", index, "command"), variant.command
    for index, load in enumerate(workload.background):
        yield ("workload", "background", index, "command"), load.command or ()
        yield ("workload", "background", index, "ready"), load.ready if isinstance(load.ready, tuple) else ()
    yield ("workload", "prepare"), workload.prepare or ()


def _having(study: Study, kind: str) -> tuple[str, ...]:
    placeholder_names = {
        name for _, words in _askers(study) for placeholder, name in _named(words) if placeholder == kind
    }
    placeholder_names |= {
        name
        for service in study.workload.services
        for placeholder, name in _named(_placeholder_texts(service))
        if placeholder == kind
    }
    with_placeholder = {
        service.called for service in study.workload.services if (kind, "") in _named(_placeholder_texts(service))
    }
    with_data = {service.called for service in study.workload.services if kind == "data" and service.data}
    return tuple(
        service.called
        for service in study.workload.services
        if service.called in placeholder_names | with_placeholder | with_data
    )


def with_services(study: Study, known: Catalogue) -> Study:
    """Return ``study`` with the services that the workload of the catalogue needs, unless it has some itself."""
    kind = known.workloads.get(study.workload.kind or "")
    if kind is None or not kind.services or study.workload.services:
        return study
    workload = study.workload.model_copy(update={"services": catalogue_services(kind)})
    return study.model_copy(update={"workload": workload})


def catalogue_services(kind: WorkloadKind) -> tuple[ServiceTable, ...]:
    """Return the servers that a workload of the catalogue needs, as a study has them."""
    return tuple(ServiceTable.model_validate(service.model_dump(exclude_unset=True)) for service in kind.services)


def check_services(study: Study) -> Iterator[Problem]:
    """Yield services of one name, and placeholders that stand for nothing."""
    services = study.workload.services
    names = study.workload.service_names
    for index, service in enumerate(services):
        path: KeyPath = ("workload", "service", index)
        if service.called in names[:index]:
            message = f'two services have the name "{service.called}"; expected different names'
            yield Problem((*path, "name" if service.name else "command"), message)
        prefixes = (f"{SERVICE_PREFIX}{service.called}.", *([SERVICE_PREFIX] if len(services) == 1 else []))
        prefix = next((prefix for prefix in prefixes if varies(study, f"{prefix}policy")), prefixes[0])
        yield from check_attributes((*path, "attributes"), service.attributes, study, prefix)
        has_port = ("port", "") in _named(_placeholder_texts(service))
        if isinstance(service.ready, str) and not _is_pattern(service.ready.removeprefix("log:")):
            yield Problem(
                (*path, "ready"), f"{service.ready} is not a regular expression", "write a backslash before ( and ["
            )
        if service.ready == "port" and not has_port:
            yield Problem(
                (*path, "ready"), "port requires {port} in the command", "write port:NUMBER if the port is fixed"
            )
        yield from _unknown((*path, "command"), _placeholder_texts(service), study, mine=True)
        yield from _unfilled((*path, "command"), service, study)
    for path, words in _askers(study):
        yield from _unknown(path, words, study, mine=False)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _unknown(path: KeyPath, words: Sequence[str], study: Study, *, mine: bool) -> Iterator[Problem]:
    names = study.workload.service_names
    for kind, name in dict.fromkeys(_named(words)):
        if name and names and name not in names:
            near = nearest(name, names) or f"; expected one of {', '.join(names)}"
            yield Problem(path, f'found {{{kind}:{name}}}; service "{name}" not found{near}')
        elif not name and not mine and kind == "port" and not names:
            yield Problem(
                path,
                "found {port}, which is the port of a service; this study has no service",
                "add a service that uses {port}, or write the number of the port",
            )
        elif not name and not mine and len(having := _having(study, kind)) != 1 and names:
            some = f"; expected one of {', '.join(f'{{{kind}:{service}}}' for service in having)}" if having else ""
            yield Problem(
                path, f"found {{{kind}}}, which {'several services have' if having else 'no service has'}{some}"
            )


def _unfilled(path: KeyPath, service: ServiceTable, study: Study) -> Iterator[Problem]:
    # A shell's text may have braces of its own, but then it has blanks too.
    plain = [word for word in (*service.command, *service.environment.values()) if not re.search(r"\s", word)]

    def settings(names: Iterable[str]) -> set[str]:
        parts = (service_part(name, study.workload) for name in names)
        return {part.name for part in parts if part and part.service in ("", service.called)}

    for name in service_placeholders(service):
        hint = f"give its levels: --set {SERVICE_PREFIX}{name}=LEVEL,LEVEL"
        factor = next((factor for factor in study.factors if name in settings(names_set(factor))), None)
        if factor is None:
            if any(f"{{{name}}}" in word for word in plain):
                yield Problem(path, f"found {{{name}}}, but no factor sets it", hint)
        elif lacking := [level for level in factor.levels if name not in settings(set_by(factor, level))]:
            yield Problem(path, f'found {{{name}}}, which the level "{lacking[0]}" does not set', hint)


# The commands.


class MakeCommand(Protocol):
    """A maker of commands of a trial: with the environment, the directory and the user that all commands have."""

    def __call__(self, argv: tuple[str, ...], attributes: Attributes, *, in_place: bool) -> Command: ...


def is_there(when: Mapping[str, Sequence[str]], levels: Mapping[str, str]) -> bool:
    """Return whether a configuration with these ``levels``, by factor, has what is there ``when`` they are."""
    return all(levels.get(factor) in allowed for factor, allowed in when.items())


@dataclass(frozen=True)
class Served:
    """The services of a configuration in each trial: commands that start them, that begin ``accounting`` and that
    stop them.
    """

    services: tuple[Service, ...] = ()
    started: tuple[Command, ...] = ()
    accounting: tuple[Command, ...] = ()
    stopped: tuple[Command, ...] = ()


class Services:
    """The services of ``study`` at ``site``. ``program`` finds a program by its name and where that is written;
    ``make`` makes commands. Raises RequestError for a user that there is not.
    """

    def __init__(
        self,
        study: Study,
        catalogue: Catalogue,
        site: Site,
        program: Callable[[str, KeyPath], str],
        make: MakeCommand,
    ) -> None:
        self._study = study
        self._catalogue = catalogue
        self._site = site
        self._make = make
        self._tables = study.workload.services
        self._argv = {
            (index, field): (program(words[0], ("workload", "service", index, field, 0)), *words[1:])
            for index, table in enumerate(self._tables)
            for field in ("command", "ready", "stop", "data")
            if isinstance(words := getattr(table, field), tuple)
        }
        self._users = {table.called: self._user(index, table) for index, table in enumerate(self._tables)}

    def fill(self, words: tuple[str, ...], service: str = "") -> tuple[str, ...]:
        """Fill ports and directories into ``words``; what has no name is of ``service``, or of the only one that has
        such a thing. Without services as they are.
        """
        if not self._tables:
            return words

        def value(match: re.Match[str]) -> str:
            kind = match[1]
            there: Mapping[str, object] = self._ports if kind == "port" else self._data
            return str(there.get(match[2] or service or next(iter(there), ""), match[0]))

        return tuple(_PLACEHOLDER.sub(value, word) for word in words)

    def of(
        self,
        varied: Mapping[str, Mapping[str, str]],
        settings: Mapping[str, Mapping[str, str]],
        levels: Mapping[str, str],
    ) -> Served:
        """Return those of a configuration with these ``levels``, by factor; ``varied`` are the attributes and
        ``settings`` the services' own that it sets, by the name of the service.
        """
        tables = [(index, table) for index, table in enumerate(self._tables) if is_there(table.when, levels)]
        if not tables:
            return Served()
        made = [
            self._service(index, table, varied.get(table.called, {}), settings.get(table.called, {}))
            for index, table in tables
        ]
        started = [command for (_, commands) in made for command in commands]
        directories = tuple(self._directory(table.called) for _, table in tables)
        return Served(
            services=tuple(service for service, _ in made),
            started=tuple(started),
            accounting=(self._service_command(("begin", *directories), self._askers_user),),
            stopped=(self._service_command(("stop", *directories), self._askers_user),),
        )

    @cached_property
    def made(self) -> tuple[Command, ...]:
        """Return the commands that make the services' data once, before all trials, as a template."""
        return () if self._in_each_trial else tuple(self._templates())

    @cached_property
    def removed(self) -> tuple[Command, ...]:
        """Return the commands that run once, after all trials."""
        if self._in_each_trial:
            return ()
        names = [table.called for table in self._tables]
        return tuple(
            self._service_command(("data", "remove", self._directory(name)), self._users[name]) for name in names
        )

    def _templates(self) -> Iterator[Command]:
        for index, table in enumerate(self._tables):
            if table.data:
                user, directory = self._users[table.called], self._directory(table.called)
                yield self._service_command(("data", "make", directory), user)
                yield self._filling(index, table)
                yield self._service_command(("data", "keep", directory, f"{directory}/template"), user)

    def _service(
        self, index: int, table: ServiceTable, varied: Mapping[str, str], settings: Mapping[str, str]
    ) -> tuple[Service, tuple[Command, ...]]:
        name, directory, user = table.called, self._directory(table.called), self._users[table.called]
        attributes = process_attributes(table.attributes, varied)
        argv = self._with_settings(self._argv[index, "command"], table, settings)
        command = self._make(self.fill(argv, name), attributes, in_place=True)
        texts = tuple(_filled(text, settings) for text in table.environment.values())
        environment = dict(zip(table.environment, self.fill(texts, name), strict=True))
        command = command.model_copy(update={"user": user, "environment": {**command.environment, **environment}})
        default = "port" if ("port", "") in _named(table.command) else "none"
        ready = self._command_or(index, "ready", table.ready or default, name)
        if ready == "port":
            ready = f"port:{self._ports[name]}"
        words = ["start", "--name", name, "--directory", directory, "--ready", ready]
        words += ["--port", str(self._ports[name])] if name in self._ports else []
        words += ["--within", _milliseconds(min(table.ready_timeout_s, LONGEST_SHARE * self._study.workload.timeout_s))]
        words += ["--settle", _milliseconds(table.settle_s)] if table.settle_s else []
        before: tuple[Command, ...] = ()
        if table.data and self._in_each_trial:
            before = (self._service_command(("data", "make", directory), user), self._filling(index, table))
        elif table.data:
            words += ["--restore", f"{directory}/template"]
        elif name in self._data:
            words += ["--data"]
        words += ["--stop", self._command_or(index, "stop", table.stop, name)]
        words += ["--patience", _milliseconds(table.stop_timeout_s), "--", *command.argv]
        start = command.model_copy(update={"argv": (self._site.service_program, *words)})
        return Service(name=name, command=command, ready=ready), (*before, start)

    def _with_settings(
        self, argv: tuple[str, ...], table: ServiceTable, settings: Mapping[str, str]
    ) -> tuple[str, ...]:
        replaced, kind = service_placeholders(table), service_kind(table, self._catalogue)
        argv = tuple(_filled(word, settings) for word in argv)
        for name, level in settings.items():
            if name not in replaced and kind is not None:
                argv = kind.pass_setting(argv, name, level)
        return argv

    def _filling(self, index: int, table: ServiceTable) -> Command:
        argv = self.fill(self._argv[index, "data"], table.called)
        command = self._make(argv, Attributes(), in_place=True)
        filled = command.model_copy(update={"user": self._users[table.called]})
        return filled if self._in_each_trial else filled.model_copy(update={"directory": self._site.directory})

    def _command_or(self, index: int, field: str, value: object, name: str) -> str:
        # Return a command, or any other value, as `ajuste-service` takes it.
        if isinstance(value, str):
            return self.fill((value,), name)[0]
        return f"command:{json.dumps(self.fill(self._argv[index, field], name), ensure_ascii=False)}"

    def _service_command(self, words: tuple[str, ...], user: User | None) -> Command:
        command = self._make((self._site.service_program, *words), Attributes(), in_place=False)
        return command.model_copy(update={"directory": "/", "user": user})

    @property
    def _askers_user(self) -> User | None:
        # Return the user who may ask all keepers: that of all services, or else the agent's.
        users = set(self._users.values())
        return users.pop() if len(users) == 1 else None

    @property
    def _in_each_trial(self) -> bool:
        # Nothing outlives a trial in a guest, and in a file system that is made for it.
        return not self._site.in_place or self._study.scratch is not None

    def _directory(self, name: str) -> str:
        user = self._users[name]
        parent = self._site.services if self._study.scratch is None else f"{MOUNT_POINT}/ajuste-services"
        return f"{parent}-{self._site.uid if user is None else user.uid}/{name}"

    def _user(self, index: int, table: ServiceTable) -> User | None:
        if table.user is None:
            return None if self._study.workload.as_root else self._site.user
        try:
            return self._site.find_user(table.user)
        except RequestError as failure:
            raise failure.at(self._study.place("workload", "service", index, "user")) from None

    @cached_property
    def _ports(self) -> Mapping[str, int]:
        ports: dict[str, int] = {}
        for name in _having(self._study, "port"):
            ports[name] = self._site.free_port(max(ports.values(), default=FIRST_PORT - 1) + 1)
        return ports

    @cached_property
    def _data(self) -> Mapping[str, str]:
        return {name: f"{self._directory(name)}/data" for name in _having(self._study, "data")}


def _filled(text: str, settings: Mapping[str, str]) -> str:
    return SETTING_PLACEHOLDER.sub(lambda match: settings.get(match[1], match[0]), text)


def _milliseconds(seconds: float) -> str:
    return str(round(1000 * seconds))
