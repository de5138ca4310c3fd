from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.model.plan import User
from ajuste.target.caller import callers_environment, host_site, invoking_user

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
        ("environment", "said"),
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
            ({"SUDO_UID": "987654", "SUDO_GID": "987654"}, "SUDO_UID = 987654 is no user of this machine"),
        ],
    )
    def test_anything_else_is_refused_and_never_root(self, environment: dict[str, str], said: str) -> None:
        with pytest.raises(RequestError) as caught:
            invoking_user(environment)
        assert said in caught.value.message
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


def test_commands_find_their_callers_environment_but_for_what_is_ours() -> None:
    called_with = {"PATH": "/opt/bin", "LANG": "C", "HOME": "/root", "AJUSTE_HOME": "/x", "SUDO_USER": "ada"}
    assert callers_environment(None, called_with) == {"PATH": "/opt/bin", "LANG": "C", "HOME": "/root"}
    own = callers_environment(User(uid=NOBODY.pw_uid, gid=NOBODY.pw_gid), called_with)
    assert (own["HOME"], own["USER"], own["LOGNAME"]) == (NOBODY.pw_dir, "nobody", "nobody")
    assert callers_environment(User(uid=987654, gid=1), called_with)["HOME"] == "/root"


def test_the_site_is_this_machine_from_here() -> None:
    site = host_site()
    assert site.in_place
    assert site.directory == os.getcwd()  # noqa: PTH109 - an independent way to know it
    assert site.cpus == os.sched_getaffinity(0)
