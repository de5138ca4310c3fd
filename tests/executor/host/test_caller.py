from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.executor.host.caller import (
    AGENTS,
    agents_directory,
    callers_environment,
    host_site,
    invoking_user,
    plan_text,
    remove_left_groups,
    remove_left_services,
    services_directories,
    services_place,
)
from ajuste.machine.session import started_ticks
from ajuste.model.error import RequestError
from ajuste.model.plan import Command, User

NOBODY = pwd.getpwnam("nobody")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as another")
class TestUnderSudo:
    def test_commands_are_those_of_whoever_called_sudo(self) -> None:
        user = invoking_user({"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)})
        assert user == User(uid=NOBODY.pw_uid, gid=NOBODY.pw_gid, groups=(NOBODY.pw_gid,))

    @pytest.mark.parametrize(
        "environment", [{}, {"SUDO_UID": "0", "SUDO_GID": "0"}, {"SUDO_UID": "0", "SUDO_GID": "5"}]
    )
    def test_without_sudo_and_where_root_called_it_they_are_roots(self, environment: dict[str, str]) -> None:
        assert invoking_user(environment) is None

    @pytest.mark.parametrize(
        ("environment", "message"),
        [
            ({"SUDO_UID": "1000"}, "SUDO_UID is set and SUDO_GID is not"),
            ({"SUDO_GID": "1000"}, "SUDO_GID is set and SUDO_UID is not"),
            ({"SUDO_UID": "", "SUDO_GID": ""}, "SUDO_UID = ''"),
            ({"SUDO_UID": "-1", "SUDO_GID": "1000"}, "SUDO_UID = '-1'"),
            ({"SUDO_UID": "1e3", "SUDO_GID": "1000"}, "SUDO_UID = '1e3'"),
            ({"SUDO_UID": " 1000", "SUDO_GID": "1000"}, "SUDO_UID = ' 1000'"),
            ({"SUDO_UID": "4294967295", "SUDO_GID": "1000"}, "SUDO_UID = '4294967295'"),
            ({"SUDO_UID": "9" * 5000, "SUDO_GID": "1000"}, f"SUDO_UID = '{'9' * 40}'"),
            ({"SUDO_UID": "1000", "SUDO_GID": "root"}, "SUDO_GID = 'root'"),
            ({"SUDO_UID": "1000", "SUDO_GID": "-0"}, "SUDO_GID = '-0'"),
            ({"SUDO_UID": "١٠٠٠", "SUDO_GID": "1000"}, "SUDO_UID = '١٠٠٠'"),
            ({"SUDO_UID": "987654", "SUDO_GID": "987654"}, "SUDO_UID = 987654: user not found"),
        ],
    )
    def test_anything_else_is_refused_and_never_root(self, environment: dict[str, str], message: str) -> None:
        with pytest.raises(RequestError) as caught:
            invoking_user(environment)
        assert message in caught.value.message
        assert caught.value.exit_code == 2
        assert len(caught.value.message) < 200

    @pytest.mark.parametrize("malformed", ["1000x", "", "-1"])
    def test_a_command_runs_nothing_with_it(self, tmp_path: Path, malformed: str) -> None:
        done = subprocess.run(
            [Path(sys.executable).with_name("ajuste"), "compare", "--set", "nice=0,5", "--", "touch", "made"],
            env=os.environ | {"AJUSTE_HOME": str(tmp_path / "home"), "SUDO_UID": malformed, "SUDO_GID": "1000"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert f"SUDO_UID = {malformed!r}" in done.stderr
        assert list(tmp_path.iterdir()) == []


BLOCK = b"PATH=/opt/bin\0LANG=C\0HOME=/root\0AJUSTE_HOME=/x\0SUDO_USER=ada\0EMPTY=\0LANG=twice\0no variable\0"


def test_commands_find_their_callers_environment_but_for_what_is_ours() -> None:
    called_with = {"PATH": "/opt/bin", "LANG": "C", "HOME": "/root", "EMPTY": ""}
    assert list(callers_environment(None, BLOCK).items()) == list(called_with.items())
    environment = callers_environment(User(uid=NOBODY.pw_uid, gid=NOBODY.pw_gid), BLOCK)
    assert (environment["HOME"], environment["USER"], environment["LOGNAME"]) == (NOBODY.pw_dir, "nobody", "nobody")
    assert callers_environment(User(uid=987654, gid=1), BLOCK)["HOME"] == "/root"


@given(st.binary())
def test_every_byte_of_a_variable_is_in_the_plan(value: bytes) -> None:
    text = plan_text(value)
    assert Command(argv=("x",), environment={"A": text}).model_dump_json()
    assert b"".join(bytes([ord(c) & 0xFF]) if ord(c) >= 0x10FF80 else c.encode() for c in text) == value


EVERYTHING = """
import contextlib, importlib, importlib.util, os, pkgutil, sys
import ajuste
from ajuste.executor.host.caller import callers_environment
before = dict(os.environb)
for found in pkgutil.walk_packages(ajuste.__path__, "ajuste."):
    if found.name.rpartition(".")[2] not in ("__main__", "child", "search_lines"):  # programs, which begin to work
        importlib.import_module(found.name)
for name in ("sklearn.cluster", "threadpoolctl", "matplotlib.pyplot", "torch", "distributed", "optuna", "cmaes"):
    if importlib.util.find_spec(name.partition(".")[0]):
        importlib.import_module(name)
os.environ["KMP_INIT_AT_FORK"] = "FALSE"  # as scikit-learn does, installed or not
sys.stdout.buffer.write(repr(list(callers_environment(None).items())).encode())
"""


@pytest.mark.slow
def test_nothing_that_is_imported_gets_into_the_environment_of_commands() -> None:
    environment = {b"ZED": b"1", b"PATH": os.environb[b"PATH"], b"B\xfe": b"\xff\xe9", b"A": b"", b"HOME": b"/root"}
    done = subprocess.run([sys.executable, "-c", EVERYTHING], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    expected = [(plan_text(name), plan_text(value)) for name, value in environment.items()]
    assert done.stdout.decode() == repr(expected)


def test_the_site_is_this_machine_from_here() -> None:
    site = host_site()
    assert site.in_place
    assert site.directory == os.getcwd()  # noqa: PTH109 - an independent way to know it
    assert site.cpus == os.sched_getaffinity(0)


def test_a_name_that_another_user_has_taken_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [tmp_path / "services", tmp_path / "services.1", tmp_path / "services.2"]
    uid = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert services_place(places) == places[0]
    (tmp_path / f"services-{uid}").mkdir()
    (tmp_path / f"services.1-{uid}").symlink_to(tmp_path)
    assert services_place(places) == places[2]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert services_place(places) not in places


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has services of other users")
def test_the_services_of_root_have_directories_of_their_users_where_nobody_else_makes_any(tmp_path: Path) -> None:
    place = tmp_path / "roots" / "uid"
    with services_directories([User(uid=NOBODY.pw_uid, gid=NOBODY.pw_gid)], place):
        parent, directory = place.parent.stat(), Path(f"{place}-{NOBODY.pw_uid}").stat()
        assert (parent.st_uid, parent.st_mode & 0o777) == (0, 0o711)
        assert (directory.st_uid, directory.st_mode & 0o777) == (NOBODY.pw_uid, 0o700)
    assert not place.parent.exists()


def test_what_services_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    mine = tmp_path / f"services-{os.geteuid()}"
    (mine / "one" / "data").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (mine / "one" / "link").symlink_to(elsewhere)
    others = [tmp_path / "services-4294967294", tmp_path / "services-x", tmp_path / "other"]
    for other in others:
        other.mkdir()
    assert remove_left_services([tmp_path / "none", tmp_path / "services"]) == (mine,)
    assert not mine.exists()
    assert all(path.is_dir() for path in (elsewhere, *others))
    mine.symlink_to(elsewhere)
    assert remove_left_services([tmp_path / "services"]) == ()
    assert elsewhere.is_dir()


def test_groups_of_sessions_that_ended_are_removed_with_those_in_them(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    alive, ticks = os.getpid(), started_ticks(os.getpid())
    gone = [f"ajuste-session-{ended.pid}-1", f"ajuste-session-{alive}-{ticks + 1}", f"a/ajuste-{ended.pid}-workload"]
    remaining = [f"ajuste-session-{alive}-{ticks}", f"ajuste-{alive}-workload", "ajuste-notes", "user.slice"]
    for name in (*gone, *remaining):
        (tmp_path / name / "child" / "grandchild").mkdir(parents=True)
    remove_left_groups(tmp_path)
    assert [name for name in gone if (tmp_path / name).exists()] == []
    assert [name for name in remaining if not (tmp_path / name / "child" / "grandchild").exists()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
def test_the_groups_of_a_container_that_goes_on_stay(tmp_path: Path) -> None:
    """Leave them: the agent has another number there, and a process outside of a container is shown as 0 in it."""
    with subprocess.Popen(["unshare", "--pid", "--fork", "cat"], stdin=subprocess.PIPE) as container:
        children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
        while not (pids := children.read_text().split()):
            pass
        agent = int(pids[0])
        group = tmp_path / f"ajuste-session-1-{started_ticks(agent)}"
        outside = tmp_path / f"ajuste-session-{agent}-1"
        for directory, members in ((group, agent), (outside, 0)):
            directory.mkdir()
            (directory / "cgroup.procs").write_text(f"{members}\n")
        remove_left_groups(tmp_path)
        assert started_ticks(agent)
        container.communicate(b"")
    assert container.returncode == 0
    assert group.is_dir()


def test_commands_of_an_agent_are_nobodys_and_find_nothing_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_ASKED_BY", "agent:vm.swappiness")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    nobody = pwd.getpwnam("nobody")
    user = invoking_user()
    assert user is not None
    assert (user.uid, user.groups) == (nobody.pw_uid, (nobody.pw_gid,))
    assert invoking_user({"SUDO_UID": "1000", "SUDO_GID": "1000", "AJUSTE_ASKED_BY": "agent:"}) == user
    assert set(callers_environment(user, b"TOKEN=secret\0PATH=/bin\0")) == {"HOME", "LANG", "PATH"}
    assert host_site().directory == str(AGENTS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory away")
def test_the_directory_of_an_agent_is_empty_nobodys_and_gone_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_ASKED_BY", "agent:vm.swappiness")
    place = tmp_path / "agent"
    place.mkdir()
    (place / "left").touch()
    with agents_directory(place):
        assert (place.stat().st_uid, place.stat().st_mode & 0o777) == (pwd.getpwnam("nobody").pw_uid, 0o700)
        assert list(place.iterdir()) == []
    assert not place.exists()
    place.symlink_to("/etc")
    os.lchown(place, 1000, 1000)
    with pytest.raises(RequestError, match="another user"), agents_directory(place):
        pass
