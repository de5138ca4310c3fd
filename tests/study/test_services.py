"""Services: what each trial starts for its workload, and stops afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.loader import catalogue as real_catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import User
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.site import GUEST, Site

WORKLOAD = 'kind = "matrix"'
HOST = ('kernel = "debian:5.10"', 'kind = "host"\nclock = "wall"')
FACTOR = ('name = "sched_min_granularity_ns"\nlevels = [750000, 7500000]', 'name = "NAME"\nlevels = [0, 5]')
REDIS = """command = ["client", "-p", "{port}"]
[[workload.service]]
command = ["redis-server", "--port", "{port}"]
"""
DATABASE = """command = ["client", "{port}", "{data}"]
prepare = ["load", "{port}"]
[[workload.service]]
name = "db"
command = ["postgres", "-D", "{data}", "-p", "{port}"]
data = ["initdb", "-D", "{data}"]
stop = "INT"
"""
TWO = """command = ["client", "{port:front}", "{port:back}"]
[[workload.service]]
name = "back"
command = ["server", "{port}"]
[[workload.service]]
name = "front"
command = ["proxy", "{port}", "{port:back}"]
ready = "log:up"
"""

Resolving = Callable[..., ResolvedStudy]
HERE = Site(bundled="/native/ajuste-workloads", directory="/home/me", in_place=True, uid=7, services="/var/tmp/s")


@pytest.fixture
def resolved(read: Callable[..., Any], catalogue: Catalogue) -> Resolving:
    def resolving(workload: str, *more: tuple[str, str], site: Site | None = None) -> ResolvedStudy:
        study = read((WORKLOAD, workload), *((HOST,) if site else ()), *more)
        version = KernelVersion.parse("5.10.0")
        kernels = {HOST_KERNEL if site else "debian:5.10": version}
        return resolve(study, catalogue, kernels, lambda name: f"/bin/{name}", site or GUEST)

    return resolving


def argvs(commands: Any) -> list[tuple[str, ...]]:
    return [command.argv for command in commands]


def test_a_service_is_started_before_the_workload_and_stopped_after_it(resolved: Resolving) -> None:
    study = resolved(REDIS)
    configuration = study.configurations[0]
    directory = "/tmp/ajuste-services-1000/redis-server"
    start: tuple[str, ...] = ("/ajuste/bin/ajuste-service", "start", "--name", "redis-server", "--directory", directory)
    start += ("--ready", "port:21700", "--port", "21700", "--within", "30000", "--stop", "TERM", "--patience", "10000")
    start += ("--", "/bin/redis-server", "--port", "21700")
    assert argvs(configuration.before) == [start, ("/ajuste/bin/ajuste-service", "begin", directory)]
    assert argvs(configuration.after) == [("/ajuste/bin/ajuste-service", "stop", directory)]
    assert configuration.workload.argv == ("/bin/client", "-p", "21700")
    assert [(service.name, service.command.argv) for service in configuration.services] == [
        ("redis-server", ("/bin/redis-server", "--port", "21700"))
    ]
    assert study.programs == ("/bin/redis-server", "/bin/client")
    assert {"service-cpu", "service-peak-rss"} <= {metric.name for metric in study.described}


@pytest.mark.parametrize(("service", "expected"), [((), ["redis"]), (("valkey {port}",), ["valkey"])])
def test_a_workload_of_the_catalogue_brings_its_service_unless_the_study_has_one(
    service: tuple[str, ...], expected: list[str]
) -> None:
    known = real_catalogue()
    study = adhoc_study(Request(commands=(("redis-benchmark",),), nice="0,5", service=service), known)
    resolved_study = resolve(
        study, known, {HOST_KERNEL: KernelVersion.parse("6.1.0")}, lambda name: f"/bin/{name}", HERE
    )
    served = resolved_study.configurations[0]
    assert [service.name for service in served.services] == expected
    port = served.services[0].command.argv[-1 if service else 2]
    assert served.workload.argv[:5] == ("/bin/redis-benchmark", "-h", "127.0.0.1", "-p", port)


def test_an_ordinary_user_plans_a_daemon_of_usr_sbin() -> None:
    known = real_catalogue()
    study = adhoc_study(Request(commands=(("redis-benchmark",),), nice="0,5", service=("tuned {port}",)), known)
    kernels = {HOST_KERNEL: KernelVersion.parse("6.1.0")}
    outside_path = {"tuned": None, "/usr/sbin/tuned": "/usr/sbin/tuned"}
    resolved_study = resolve(study, known, kernels, lambda name: outside_path.get(name, f"/bin/{name}"), HERE)
    assert resolved_study.configurations[0].services[0].command.argv[0] == "/usr/sbin/tuned"
    with pytest.raises(RequestError, match='program "tuned" not found'):
        resolve(study, known, kernels, lambda name: None if "tuned" in name else f"/bin/{name}", HERE)


def test_without_services_nothing_is_added(resolved: Resolving) -> None:
    study = resolved('command = ["jq", "{data}"]')
    document = study.model_dump(mode="json")
    assert all("services" not in configuration for configuration in document["configurations"])
    assert "services" not in document["study"]["workload"]
    assert "service" not in document["study"]["workload"]
    assert study.configurations[0].workload.argv == ("/bin/jq", "{data}")
    assert not study.configurations[0].before


ON_A_DISK = """
schema = 1
name = "disk"
[[factor]]
name = "NAME"
levels = ["1", "2"]
[workload]
WORKLOAD
[target]
kind = "host"
clock = "wall"
[analysis]
metrics = ["elapsed"]
"""
REMOVED = [("/bin/rm", "-f", "ajuste-fio.data")]


@pytest.mark.parametrize(
    ("workload", "factor", "expected"),
    [
        ('kind = "fio"', "nice", REMOVED),
        ('kind = "fio"\nparameters = { file = "mine" }', "nice", []),
        ('kind = "fio"', "workload.file", []),
        ('kind = "matrix"\n[[workload.background]]\nkind = "fio"', "nice", REMOVED),
        ('kind = "fio"\n[scratch]\nfilesystem = "ext4"', "nice", []),
    ],
)
def test_the_file_that_a_workload_of_the_catalogue_makes_here_goes_after_all_trials(
    tmp_path: Path, workload: str, factor: str, expected: list[tuple[str, ...]]
) -> None:
    file, known = tmp_path / "disk.toml", real_catalogue()
    file.write_text(ON_A_DISK.replace("NAME", factor).replace("WORKLOAD", workload))
    study = resolve(
        read_study(file, known), known, {HOST_KERNEL: KernelVersion.parse("6.1.0")}, lambda name: f"/bin/{name}", HERE
    )
    assert argvs(study.cleanup) == expected
    assert all(command.directory == HERE.directory for command in study.cleanup)


def test_data_is_made_once_here_and_copied_for_each_trial(resolved: Resolving) -> None:
    study = resolved(DATABASE, FACTOR_OF_SERVICE, site=HERE)
    directory, program = "/var/tmp/s-7/db", "/native/ajuste-service"
    assert argvs(study.setup) == [
        (program, "data", "make", directory),
        ("/bin/initdb", "-D", f"{directory}/data"),
        (program, "data", "keep", directory, f"{directory}/template"),
    ]
    assert argvs(study.cleanup) == [(program, "data", "remove", directory)]
    start, load, begin = study.configurations[0].before
    assert ("--restore", f"{directory}/template", "--stop", "INT") == start.argv[12:16]
    assert (load.argv, begin.argv[1]) == (("/bin/load", "21700"), "begin")
    assert study.configurations[0].workload.argv == ("/bin/client", "21700", f"{directory}/data")


FACTOR_OF_SERVICE = (FACTOR[0], FACTOR[1].replace("NAME", "service.nice"))


def test_in_a_guest_data_is_made_in_each_trial(resolved: Resolving) -> None:
    study = resolved(DATABASE)
    words = [(Path(argv[0]).name, argv[1]) for argv in argvs(study.configurations[0].before)]
    service = "ajuste-service"
    assert words == [(service, "data"), ("initdb", "-D"), (service, "start"), ("load", "21700"), (service, "begin")]
    assert not study.setup
    assert not study.cleanup


def test_several_services_have_ports_of_their_own(resolved: Resolving) -> None:
    configuration = resolved(TWO).configurations[0]
    assert configuration.workload.argv == ("/bin/client", "21701", "21700")
    back, front, begin = configuration.before
    assert (back.argv[-1], front.argv[-2:]) == ("21700", ("21701", "21700"))
    assert front.argv[6:8] == ("--ready", "log:up")
    assert [path.rpartition("/")[2] for path in begin.argv[2:]] == ["back", "front"]


def test_a_port_that_is_in_use_is_passed_over(resolved: Resolving) -> None:
    site = replace(HERE, free_port=lambda first: first + 5)
    assert resolved(REDIS, FACTOR_OF_SERVICE, site=site).configurations[0].workload.argv[-1] == "21705"


@pytest.mark.parametrize("name", ["service.nice", "service.redis-server.nice"])
def test_attributes_of_a_service_can_be_varied(resolved: Resolving, name: str) -> None:
    study = resolved(REDIS, (FACTOR[0], FACTOR[1].replace("NAME", name)))
    assert [configuration.before[0].attributes.nice for configuration in study.configurations] == [0, 5]
    assert [configuration.before[1].attributes.nice for configuration in study.configurations] == [None, None]
    assert [configuration.workload.attributes.nice for configuration in study.configurations] == [None, None]
    assert [configuration.configuration.name for configuration in study.configurations] == [f"{name}=0", f"{name}=5"]


SETTINGS = {
    "postgres -p {port}": ("service.shared_buffers", "128MB", ["-c", "shared_buffers=128MB"]),
    "postgres -p {port} -c work_mem=1MB": (
        "service.auto_explain.log_timing",
        "on",
        ["-c", "auto_explain.log_timing=on"],
    ),
    "redis-server --port {port}": ("service.maxmemory-policy", "allkeys-lru", ["--maxmemory-policy", "allkeys-lru"]),
    "/usr/sbin/nginx -c my.conf": ("service.nginx.worker_processes", "2", ["-g", "worker_processes 2;"]),
    "memcached -p {port}": ("service.memory-limit", "64", ["--memory-limit=64"]),
}


def adhoc(service: str, *settings: str, **more: Any) -> ResolvedStudy:
    known = real_catalogue()
    request = Request(commands=(("client",),), set=settings, service=(service,), **more)
    return resolve(
        adhoc_study(request, known),
        known,
        {HOST_KERNEL: KernelVersion.parse("6.1.0")},
        lambda name: f"/bin/{name}",
        HERE,
    )


def served(study: ResolvedStudy) -> dict[str, tuple[str, ...]]:
    return {
        configuration.configuration.name: configuration.services[0].command.argv[1:]
        for configuration in study.configurations
    }


@pytest.mark.parametrize("service", SETTINGS)
def test_a_known_server_takes_any_of_its_own_settings(service: str) -> None:
    name, level, arguments = SETTINGS[service]
    plain, changed = served(adhoc(service, f"{name}={level}")).items()
    assert (plain[0], changed[0]) == ("as it is", f"{name}={level}")
    assert changed[1] == (*plain[1], *arguments)


def test_an_option_that_counts_once_gets_the_text_of_all_settings() -> None:
    study = adhoc("nginx -g 'daemon off;' -c my.conf", "service.worker_processes=1,2", "service.worker_priority=5")
    assert served(study)["service.worker_processes=2"] == (
        *("-g", "daemon off; worker_priority 5; worker_processes 2;", "-c", "my.conf"),
    )


def test_a_name_in_braces_is_a_setting_of_any_server() -> None:
    study = adhoc("server --threads={threads} {port}", "service.threads=1..4:step=3")
    assert [argv[0] for argv in served(study).values()] == ["--threads=1", "--threads=4"]
    assert study.factors[0].span is not None
    explained = study.explained[0]
    assert (explained.title, explained.where) == ("threads of the service server", "the service's command line")


def test_braces_of_a_shell_stay() -> None:
    study = adhoc("sh -c 'f() {print}; exec server {workers} {port}'", "service.workers=1,2")
    assert served(study)["service.workers=2"][1] == "f() {print}; exec server 2 21700"


def test_a_study_says_how_its_server_takes_settings(resolved: Resolving) -> None:
    server = REDIS.replace("redis-server", "server") + 'setting = ["-o", "{name}:{value}"]\n'
    study = resolved(server, (FACTOR[0], 'name = "service.a.b"\nlevels = [1, 2]'))
    assert [argv[-2:] for argv in served(study).values()] == [("-o", "a.b:1"), ("-o", "a.b:2")]


@pytest.mark.parametrize(
    ("service", "setting", "expected"),
    [
        (
            "server {port}",
            "service.threads=1,2",
            'write the argument in the command, such as "server --threads {threads}"',
        ),
        (
            "server --threads {threads}",
            "service.thread=1,2",
            'has no setting or attribute "thread"; did you mean threads',
        ),
        ("server --threads {threads}", "service.nice=1,2", "found {threads}, but no factor sets it"),
        ("server --threads {threads}", "service.threads=2", 'found {threads}, which the level "as it is" does not set'),
        ("redis-server {port}", "service.rediss-server.hz=1,2", 'service "rediss-server" not found; did you mean'),
        (
            "redis-server {port}",
            "service.max_memory=1,2",
            "of Redis; expected one such as maxmemory-policy",
        ),
        ("nginx", "service.worker_processes=1,2; daemon on", "expected one value"),
    ],
)
def test_settings_of_services_are_checked(service: str, setting: str, expected: str) -> None:
    with pytest.raises(RequestError) as raised:
        adhoc(service, setting)
    assert expected in f"{raised.value} {raised.value.hint}"


def test_two_services_of_one_program_have_different_names(catalogue: Catalogue) -> None:
    server = "redis-server --port {port}"
    client = ("client", "{port:redis-server}", "{port:redis-server-2}")
    study = adhoc_study(Request(commands=(client,), service=(server, server)), catalogue)
    assert study.workload.service_names == ("redis-server", "redis-server-2")


def test_the_user_of_a_service_has_a_directory_of_their_own(resolved: Resolving) -> None:
    site = replace(HERE, uid=0, user=User(uid=7, gid=7), find_user=lambda name: User(uid=9, gid=9))
    configuration = resolved(REDIS + 'user = "redis"\n', FACTOR_OF_SERVICE, site=site).configurations[0]
    assert configuration.before[0].user == User(uid=9, gid=9)
    assert configuration.before[0].argv[5] == "/var/tmp/s-9/redis-server"
    assert configuration.workload.user == User(uid=7, gid=7)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ('command = ["client", "{port}"]', "{port}, which is the port of a service; this study has no service"),
        (REDIS.replace("client", "{port:redis}"), 'service "redis" not found; did you mean redis-server'),
        (TWO.replace("{port:front}", "{port}"), "which several services have; expected one of {port:back}, {port:fr"),
        (TWO.replace('"front"', '"back"'), 'two services have the name "back"'),
        (REDIS.replace('"{port}"]\n[[', '"1"]\n[[') + 'ready = "ports"\n', "expected text that matches"),
        (REDIS + 'ready = "log:("\n', "is not a regular expression"),
        ('command = ["a"]\n[[workload.service]]\ncommand = ["b"]\nready = "port"\n', "port requires {port}"),
        (REDIS + 'user = "somebody"\n', 'user "somebody" not found in guests; expected root'),
        (REDIS + 'setting = ["--{value}"]\n', "a setting needs its name and value"),
        (REDIS + "attributes = { priority = 3 }\n", 'priority requires policy = "fifo" or "rr"'),
    ],
)
def test_what_is_wrong_with_services_is_said(resolved: Resolving, workload: str, expected: str) -> None:
    with pytest.raises(RequestError) as raised:
        resolved(workload)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("name", "workload", "expected"),
    [
        ("service.nice", TWO, "expected one of service.back.nice, service.front.nice"),
        ("service.middle.nice", TWO, 'service "middle" not found; expected one of back, front'),
        ("service.mice", REDIS.replace("redis-", ""), '"server" has no setting or attribute "mice"; did you mean nice'),
        ("service.nice", 'command = ["a"]', "this study has no service"),
    ],
)
def test_factors_of_services_are_checked(resolved: Resolving, name: str, workload: str, expected: str) -> None:
    with pytest.raises(RequestError) as raised:
        resolved(workload, (FACTOR[0], FACTOR[1].replace("NAME", name)))
    assert expected in str(raised.value)
