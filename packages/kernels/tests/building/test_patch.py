"""Patches are applied whole or not at all, and only within the tree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste_kernels.building.built import SourceOrigin
from ajuste_kernels.building.make import Edit, Edits
from ajuste_kernels.building.patch import read_patches, try_patches
from ajuste_kernels.building.sources import directory_source
from small_kernel import PATCH, small_kernel


@pytest.fixture
def origin(tmp_path: Path) -> SourceOrigin:
    return directory_source(small_kernel(tmp_path / "linux"), tmp_path / "known.json", lambda _: None)


def applied(origin: SourceOrigin, *texts: str) -> tuple[Edits, list[str]]:
    files = []
    for number, text in enumerate(texts):
        files.append(Path(origin.place).parent / f"{number}.patch")
        files[-1].write_text(text)
    return try_patches(read_patches(files), origin)


def change(before: str, after: str, path: str = "kernel/core.c") -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{before}\n+{after}\n"


def test_what_a_patch_makes_of_its_files(origin: SourceOrigin) -> None:
    edits, notes = applied(origin, PATCH)
    assert list(edits) == ["kernel/fair.c"]
    assert b"sched_granularity = 3000000;" in (edits["kernel/fair.c"].content or b"")
    assert notes == []


def test_a_series_builds_on_itself(origin: SourceOrigin) -> None:
    edits, _ = applied(origin, change("int core = 1;", "int core = 2;"), change("int core = 2;", "int core = 3;"))
    assert edits == {"kernel/core.c": Edit(b"int core = 3;\n")}


def test_files_come_and_go(origin: SourceOrigin) -> None:
    new = "--- /dev/null\n+++ b/kernel/new.c\n@@ -0,0 +1 @@\n+int new;\n"
    gone = "--- a/kernel/core.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int core = 1;\n"
    moved = "diff --git a/kernel/kyber.c b/kernel/bfq.c\nsimilarity index 100%\n"
    moved += "rename from kernel/kyber.c\nrename to kernel/bfq.c\n"
    edits, _ = applied(origin, new, gone, moved)
    assert edits == {
        "kernel/new.c": Edit(b"int new;\n"),
        "kernel/core.c": Edit(None),
        "kernel/kyber.c": Edit(None),
        "kernel/bfq.c": Edit(b"int kyber = 1;\n"),
    }


def test_rejected_hunks_are_shown_with_file_and_line(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match="a hunk is rejected") as caught:
        applied(origin, change("int core = 7;", "int core = 8;"))
    hint = str(caught.value.hint)
    assert "kernel/core.c: @@ -1 +1 @@" in hint
    assert "-int core = 7;" in hint


def test_nothing_of_a_series_remains_if_the_last_does_not_fit(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match=r"1\.patch does not apply"):
        applied(origin, PATCH, change("no such line", "another"))
    assert b"750000" in origin.read("kernel/fair.c")


def test_a_patch_that_is_there_already(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match="already applied"):
        applied(origin, change("int core = 0;", "int core = 1;"))


def test_a_patch_for_another_tree(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match=r"kernel/other\.c not found"):
        applied(origin, change("a", "b", "kernel/other.c"))


def test_a_hunk_that_has_moved_is_told(origin: SourceOrigin) -> None:
    moved = PATCH.replace("@@ -2,6 +2,6 @@", "@@ -12,6 +12,6 @@")
    _, notes = applied(origin, moved)
    assert "offset" in notes[0]


@pytest.mark.parametrize(
    "path", ["a/../outside.c", "x/../../outside.c", "/etc/passwd", "a/kernel/../../../../tmp/outside", "../outside.c"]
)
def test_no_file_outside_of_the_tree_is_touched(origin: SourceOrigin, path: str) -> None:
    with pytest.raises(RequestError, match="is not a path in the source tree"):
        applied(origin, f"--- {path}\n+++ {path}\n@@ -0,0 +1 @@\n+outside\n")
    assert not (Path(origin.place).parent / "outside.c").exists()


def test_a_name_in_a_rename_stays_in_the_tree_too(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match="is not a path in the source tree"):
        applied(origin, "diff --git a/kernel/core.c b/kernel/core.c\nrename from kernel/core.c\nrename to ../core.c\n")


def test_links_are_not_followed(origin: SourceOrigin, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/core.c").write_text("int core = 1;\n")
    (Path(origin.place) / "away").symlink_to(tmp_path / "secret")
    with pytest.raises(RequestError, match="below a symbolic link"):
        applied(origin, change("int core = 1;", "int core = 2;", "away/core.c"))
    assert (tmp_path / "secret/core.c").read_text() == "int core = 1;\n"


def test_what_is_no_patch(origin: SourceOrigin) -> None:
    with pytest.raises(RequestError, match="no change; expected"):
        applied(origin, "diff --git a/kernel/core.c b/kernel/core.c\nold mode 100644\nnew mode 100644\n")
    with pytest.raises(RequestError, match="is not a patch"):
        applied(origin, "A letter.\n--- \nYours\n")
    with pytest.raises(RequestError, match="changes binary files"):
        applied(origin, "diff --git a/x b/x\nGIT binary patch\nliteral 3\n")
    with pytest.raises(RequestError, match="No such file"):
        read_patches([Path(origin.place) / "none.patch"])


def test_no_command_in_a_patch_is_run(origin: SourceOrigin, tmp_path: Path) -> None:
    script = f"--- a/kernel/core.c\n+++ b/kernel/core.c\n0a\n!touch {tmp_path}/run\n.\n!touch {tmp_path}/run\n"
    with pytest.raises(RequestError, match="is not a patch"):
        applied(origin, script)
    edits, _ = applied(origin, script + PATCH)
    assert (list(edits), (tmp_path / "run").exists()) == (["kernel/fair.c"], False)


@given(st.lists(st.sampled_from(["--- a/x", "+++ b/../x", "@@ -1 +1 @@", "-a", "+b", "rename to /x", "\0", ""])))
def test_any_text_is_a_patch_or_a_wrong_request(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "any.patch"
        file.write_text("\n".join(lines))
        try:
            patches = read_patches([file])
        except RequestError:
            return
        assert patches[0].touched == {"x"}
