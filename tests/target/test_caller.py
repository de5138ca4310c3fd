from __future__ import annotations

import os
import pwd

import pytest

from ajuste.model.plan import User
from ajuste.target.caller import callers_environment, host_site, invoking_user

NOBODY = pwd.getpwnam("nobody")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as another")
class TestUnderSudo:
    def test_commands_are_those_of_whoever_called_sudo(self) -> None:
        user = invoking_user({"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)})
        assert user == User(uid=NOBODY.pw_uid, gid=NOBODY.pw_gid, groups=(NOBODY.pw_gid,))

    def test_an_account_that_is_in_no_file_has_no_more_groups(self) -> None:
        assert invoking_user({"SUDO_UID": "987654", "SUDO_GID": "987654"}) == User(uid=987654, gid=987654)

    @pytest.mark.parametrize(
        "environment",
        [
            {},
            {"SUDO_UID": "0", "SUDO_GID": "0"},
            {"SUDO_UID": "1000"},
            {"SUDO_GID": "1000"},
            {"SUDO_UID": "-1", "SUDO_GID": "1000"},
            {"SUDO_UID": "4294967295", "SUDO_GID": "1000"},
            {"SUDO_UID": "99999999999999", "SUDO_GID": "1000"},
            {"SUDO_UID": "1000", "SUDO_GID": "root"},
            {"SUDO_UID": "١٠٠٠", "SUDO_GID": "1000"},
        ],
    )
    def test_what_makes_no_sense_changes_nothing(self, environment: dict[str, str]) -> None:
        assert invoking_user(environment) is None


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
