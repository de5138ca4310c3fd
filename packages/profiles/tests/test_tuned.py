"""tuned's profiles, merged; with tuned's own reader as the truth where its package is installed or fetched."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.study.profile import Profile
from ajuste_profiles.tuned import FILE, Folders, MachineFacts, read_tuned

Write = Callable[..., Path]
Read = Callable[..., Profile]


def words(profile: Profile) -> list[str]:
    return [line.words for line in profile.lines]


def test_a_child_has_the_lines_of_its_parents_and_its_own_hold(write: Write, read: Read) -> None:
    write("grandparent", "[sysctl]\nvm.swappiness=1\nvm.laptop_mode=5\n")
    write("parent", "[main]\ninclude=grandparent\n[sysctl]\nvm.swappiness=2\n[vm]\ntransparent_hugepages=never\n")
    write("child", "[main]\ninclude=parent\nsummary=x\n[sysctl]\nvm.swappiness = 3 # now\n")
    assert words(read("child")) == [
        "vm.swappiness = 3",
        "vm.laptop_mode = 5",
        "vm transparent_hugepages = never",
    ]


def test_a_section_can_replace_that_of_a_parent_drop_options_of_it_or_be_off(write: Write, read: Read) -> None:
    parent = "[sysctl]\na=1\nb=2\n[vm]\ntransparent_hugepages=never\n[cpu]\ngovernor=powersave\n"
    write("parent", parent)
    write("child", "[main]\ninclude=parent\n[sysctl]\nreplace=1\nc=3\n[cpu]\nenabled=false\n")
    assert words(read("child")) == ["c = 3", "vm transparent_hugepages = never"]
    write("dropper", "[main]\ninclude=parent\n[sysctl]\ndrop=a\nc=3\n[cpu]\ndrop=governor\n")
    assert words(read("dropper")) == ["b = 2", "c = 3", "vm transparent_hugepages = never"]


def test_sections_of_the_same_plugin_have_devices_of_their_own(write: Write, read: Read) -> None:
    write("disks", "[disk-sas]\ntype=disk\ndevices=sd*\nreadahead=0\n[disk]\ndevices=!sd*\nreadahead=>4096\n")
    assert [(line.name, line.devices) for line in read("disks").lines] == [
        ("disk readahead", "sd*"),
        ("disk readahead", "!sd*"),
    ]


def test_sections_for_other_machines_are_told_as_such(write: Write, read: Read) -> None:
    text = "[variables]\nmine=AMD\n[sysctl.amd]\ntype=sysctl\nuname_regex=x86_64\ncpuinfo_regex=${mine}\na=1\n"
    write("one", text)
    assert read("one").lines[0].unless == ""
    assert "other processors" in read("one", MachineFacts((0,), cpuinfo="Intel")).lines[0].unless
    assert "other machines" in read("one", MachineFacts((0,), "aarch64", "AMD")).lines[0].unless
    assert "emulated" in read("one", MachineFacts((0,), cpuinfo=None)).lines[0].unless


def test_variables_are_put_in_also_from_a_file(write: Write, read: Read, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "cores.conf").write_text("# mine\ncores=1-2\nempty\n")
    text = "[variables]\ninclude=/etc/cores.conf\nmask=${f:cpulist2hex:${cores}}\n[sysfs]\n/sys/a/cpumask=${mask}\n"
    write("one", text)
    assert words(read("one")) == ["/sys/a/cpumask = 00000006"]


def test_functions_that_run_something_leave_their_line_out(write: Write, read: Read) -> None:
    write("one", "[sysctl]\na=${f:exec:id}\nb=2\n")
    of_a, of_b = read("one").lines
    assert "runs a program" in of_a.unless
    assert not of_b.unless


def test_a_profile_may_include_its_like_of_a_later_folder_and_two_the_same_parent(write: Write, read: Read) -> None:
    write("base", "[sysctl]\na=1\nb=1\n", folder="later")
    write("base", "[main]\ninclude=base\n[sysctl]\nb=2\n")
    write("left", "[main]\ninclude=base\n[sysctl]\nc=3\n")
    write("right", "[main]\ninclude=base\n[sysctl]\nd=4\n")
    write("both", "[main]\ninclude=left, right; -nowhere\n")
    assert words(read("both")) == ["a = 1", "b = 2", "c = 3", "d = 4"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[main]\ninclude=nowhere\n", 2, "includes the profile 'nowhere'"),
        ("[main]\n\ninclude=other\n", 2, "include each other: one → other → one; expected no circle"),
        ("[sysctl]\na=1\n[sysctrl]\nb=1\n", 3, "an unknown tuned plug-in: 'sysctrl'"),
        ("[sysctl]\na=${missing}\n", 2, r"\$\{missing\} is not defined"),
        ("[sysctl]\na=${f:nothing:1}\n", 2, "no function 'nothing'"),
        ("[variables]\na=${f:assertion:all is well:1:2}\n", 2, "all is well"),
        ("a=1\n", 1, "before the first option"),
        ("[sysctl]\nb=1\nnonsense\n", 3, "expected OPTION = VALUE"),
        ("[sysctl]\ncpuinfo_regex=(\na=1\n", 2, "not a regular expression"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(write: Write, read: Read, text: str, line: int, message: str) -> None:
    write("other", "[main]\ninclude=one\n")
    write("one", text)
    with pytest.raises(RequestError, match=message) as raised:
        read("one")
    assert raised.value.exit_code == 2
    assert raised.value.place is not None
    assert raised.value.place.line == line
    assert Path(raised.value.place.file).name == FILE


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(text=st.text(alphabet="[]main sysctl\n=#;${}:f\\a\t1é", max_size=80))
def test_any_file_is_a_profile_or_refused(write: Write, read: Read, text: str) -> None:
    write("any", text)
    with contextlib.suppress(RequestError):
        assert read("any").name == "any"


def tuned_trees() -> list[Path]:
    """Return where tuned is unpacked, with its programs: this machine's own and those that were fetched."""
    trees = [Path("/"), *(home().cache / "tuned").glob("*/tree")]
    return [tree for tree in trees if (tree / "usr/lib/python3/dist-packages/tuned/profiles/loader.py").is_file()]


REFERENCE = """
import json, sys, types
sys.path.insert(0, sys.argv[1] + "/usr/lib/python3/dist-packages")
for name in ("tuned.logs", "tuned.utils.commands", "tuned.profiles.functions", "tuned.profiles.functions.functions"):
    sys.modules[name] = types.ModuleType(name)
class Log:
    def __getattr__(self, name):
        return lambda *_: None
sys.modules["tuned.logs"].get = lambda: Log()
class Plain:
    def multiple_re_replace(self, found, text):
        return text
    def expand(self, text):
        return text
sys.modules["tuned.utils.commands"].commands = Plain
sys.modules["tuned.profiles.functions"].functions = sys.modules["tuned.profiles.functions.functions"]
sys.modules["tuned.profiles.functions.functions"].Functions = Plain
import tuned
tuned.logs = sys.modules["tuned.logs"]
from tuned.profiles.factory import Factory
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
folder, found = sys.argv[1] + "/usr/lib/tuned", {}
for name in sys.argv[2:]:
    profile = Loader(Locator([folder]), Factory(), Merger(), None, Variables()).load(name)
    found[name] = [[unit.type, option, str(value).split()] for unit in profile.units.values() if unit.enabled
                   for option, value in unit.options.items()]
print(json.dumps(found))
"""


@pytest.mark.skipif(not tuned_trees(), reason="tuned is neither installed nor fetched")
def test_tuneds_own_profiles_are_merged_as_tuned_itself_merges_them() -> None:
    """tuned's loader and merger run as the reference, without its variables: those that have any are left out."""
    tree = tuned_trees()[0]
    folders = Folders([tree / "usr/lib/tuned"], tree)
    plain = [name for name in folders.names() if "${" not in merged_text(folders, name)]
    assert len(plain) > 10
    reference = subprocess.run(
        [sys.executable, "-c", REFERENCE, str(tree), *plain], capture_output=True, text=True, timeout=60, check=False
    )
    assert reference.returncode == 0, reference.stderr
    for name, lines in json.loads(reference.stdout).items():
        path = folders.candidates(name)[0]
        parsed = read_tuned(path, folders, MachineFacts((0,), cpuinfo=""), spec="", origin="")
        # tuned's script is a list of paths, and its priority is no setting.
        theirs = [
            (plugin, option, " ".join(value).strip("\"'"))
            for plugin, option, value in lines
            if plugin != "script" and option != "priority" and option != "dynamic"
        ]
        ours = [(line.plugin, line.option, line.value) for line in parsed.lines if line.plugin != "script"]
        assert ours == theirs, name


def merged_text(folders: Folders, name: str) -> str:
    """The text of a profile and of all that it includes."""
    text = folders.candidates(name)[0].read_text()
    included = next((line.partition("=")[2] for line in text.splitlines() if line.startswith("include")), "")
    return text + (merged_text(folders, included.strip()) if included and "$" not in included else "")
