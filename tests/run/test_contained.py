"""Patches and BPF schedulers that a study file contains: what is built of it, and what is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.saving import save_study
from ajuste.kernel.spec import KernelToBuild, parse_spec, parse_study_spec
from ajuste.machine.home import Home
from ajuste.model.capability import Asked
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.results import Results
from ajuste.run.outcome import results_of
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.schema import ExpectedFigure, ExpectTable, Study
from ajuste_ci.reproducer import reproducer
from ajuste_guest.contained import with_patches, with_programs, with_schedulers
from ajuste_kernels.building.build import BuildRequest, build_kernel, build_specified
from ajuste_kernels.building.built import find_built
from ajuste_kernels.building.patch import read_patches
from ajuste_kernels.workplace import scheduler_workplace
from ajuste_share.shared_study import shared_study
from shell import SMALL
from small_kernel import PATCH, Silent, small_kernel
from small_stores import run_of

ALLOWED = Asked("study file", options=frozenset({"--build"}))
BUILDS = """
[[scheduler]]
name = "scx_mine"
program = "out/scx_mine"
build = ["sh", "build.sh"]
source = { "build.sh" = "mkdir out && cp /bin/true out/scx_mine\\n" }
"""
PATCHED = "build:debian:6.1.192+longer.patch"
TRUE = hashlib.sha256(Path("/bin/true").read_bytes()).hexdigest()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that schedulers are built for, whose types are ``types``."""
    image = KernelImage(spec="debian:5.10", release="5.10.1", vmlinuz=tmp_path / "vmlinuz", sha256="0" * 64)
    monkeypatch.setattr("ajuste_kernels.workplace.fetch_kernel", lambda spec, home, *, say: image)
    monkeypatch.setattr("ajuste_kernels.workplace.read_vmlinux", lambda _: b"types")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Study]:
    def written(more: str, kernel: str = "debian:5.10", rights: Asked = ALLOWED) -> Study:
        file = tmp_path / "study.toml"
        file.write_text(f"{SMALL.replace('debian:5.10', kernel)}\n{more}")
        return read_study(file, catalogue(), parse_kernel=lambda text: parse_study_spec(text, rights))

    return written


def patch_table(text: str = PATCH, **more: str) -> str:
    fields = {"name": "longer.patch", "text": text, **more}
    return "[[patch]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


def built(study: Study, home: Home, *programs: Path, rights: Asked = ALLOWED) -> Any:
    return with_schedulers(study, home, rights, lambda _: None, programs)


def test_a_patch_is_taken_from_the_file_itself(study: Callable[..., Study], home: Home) -> None:
    digest = hashlib.sha256(PATCH.encode()).hexdigest()
    made = with_patches(study(patch_table(sha256=digest), PATCHED), home)
    spec = parse_spec(made.target.kernel or "")
    assert isinstance(spec, KernelToBuild)
    assert (spec.patches[0].name, spec.patches[0].read_text()) == ("longer.patch", PATCH)
    assert made.patches == ()


def test_what_is_expected_of_a_patched_kernel_is_expected_of_it_with_the_file(
    study: Callable[..., Study], home: Home
) -> None:
    figure = ExpectedFigure(metric="elapsed", configuration=f"kernel={PATCHED}", verdict=("improves",))
    expecting = study(patch_table(), PATCHED).model_copy(update={"expect": ExpectTable(figures=(figure,))})
    made = with_patches(expecting, home)
    assert made.expect is not None
    assert [figure.configuration for figure in made.expect.figures] == [f"kernel={made.target.kernel}"]


def test_patches_that_are_not_whole_or_not_there_are_refused(study: Callable[..., Study], home: Home) -> None:
    with pytest.raises(RequestError, match="another hash than sha256"):
        study(patch_table(sha256="0" * 64), PATCHED)
    with pytest.raises(RequestError, match=r"study.toml:\d+: target.kernel: .*does not contain the patch other.patch"):
        with_patches(study(patch_table(), "build:debian:6.1.192+other.patch"), home)


def test_a_file_builds_nothing_unless_that_is_allowed(study: Callable[..., Study], home: Home, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"longer.patch is not allowed in a study file without --build"):
        study(patch_table(), PATCHED, Asked("study file"))
    marked = BUILDS.replace("mkdir", f"touch {tmp_path}/marked; mkdir")
    for asker in ("study file", "project file", "page", "agent", "bundle"):
        with pytest.raises(RequestError, match=r"which .* may "):
            built(study(marked), home, rights=Asked(asker))
    assert not (tmp_path / "marked").exists()


def test_a_scheduler_is_built_once_from_what_the_file_contains(
    study: Callable[..., Study], home: Home, tmp_path: Path
) -> None:
    counted = BUILDS.replace("mkdir", f"echo >> {tmp_path}/builds; mkdir")
    for _ in range(2):
        done = built(study(counted), home)
        assert ([scheduler.sha256 for scheduler in done.study.schedulers], done.notes) == ([TRUE], ())
    assert (tmp_path / "builds").read_text() == "\n"
    with pytest.raises(RunError, match="scx_mine does not build"):
        built(study(BUILDS.replace("mkdir", "exit 1; mkdir")), home)
    other = built(study(f"{BUILDS}sha256 = '{'0' * 64}'"), home)
    assert other.study.schedulers[0].sha256 == TRUE
    assert "scx_mine has the hash" in other.notes[0]
    assert not list(tmp_path.glob("**/build.sh"))


def test_an_edited_recipe_means_another_program_whatever_hash_is_left_in_the_file(
    study: Callable[..., Study], home: Home
) -> None:
    recipe = f"{BUILDS}sha256 = '{TRUE}'"
    assert built(study(recipe), home).notes == ()
    fixed = built(study(recipe.replace("/bin/true", "/bin/false")), home)
    assert fixed.study.schedulers[0].sha256 != TRUE
    assert "scx_mine has the hash" in fixed.notes[0]


def test_a_scheduler_is_built_at_the_same_place_for_the_types_of_the_kernel(
    study: Callable[..., Study], home: Home, tmp_path: Path
) -> None:
    # A program contains the paths of its sources.
    build = f"mkdir out && cat /bin/true $VMLINUX_BTF > out/scx_mine && pwd >> {tmp_path}/places\\n"
    table = BUILDS[: BUILDS.index("source")] + f'source = {{ "build.sh" = "{build}" }}\n'
    (digest,) = [scheduler.sha256 for scheduler in built(study(table), home).study.schedulers]
    assert digest == hashlib.sha256(Path("/bin/true").read_bytes() + b"types").hexdigest()
    built(study(table), Home(tmp_path / "other", tmp_path / "other-cache", tmp_path / "other-state"))
    place, again = (Path(line) for line in (tmp_path / "places").read_text().splitlines())
    assert place == again
    assert not place.parent.exists()
    # One that a killed process left is emptied, and that of another process left alone.
    (place / "out").mkdir(parents=True)
    with (
        scheduler_workplace(home, ["sh", "build.sh"]) as first,
        scheduler_workplace(home, ["sh", "build.sh"]) as second,
    ):
        assert first.directory == place.parent
        assert second.directory != place.parent
        assert not list(first.tree.iterdir())


def test_a_scheduler_is_built_from_a_commit(study: Callable[..., Study], home: Home, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "build.sh").write_text("mkdir out && cp /bin/true out/scx_mine\n")
    git = ("git", "-C", str(clone), "-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "one")):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (clone / "build.sh").write_text("exit 1\n")
    table = BUILDS.replace(BUILDS.splitlines()[-1], f"repository = '{clone}'\ncommit = '{commit}'")
    assert built(study(table), home).study.schedulers[0].sha256 == TRUE
    with pytest.raises(RequestError, match="commit 111111111111 not found in"):
        built(study(table.replace(commit, "1" * 40)), home)
    with pytest.raises(RequestError, match="repository /nowhere not found"):
        built(study(table.replace(str(clone), "/nowhere")), home)
    with pytest.raises(RequestError, match=r"not found; expected https://"):
        built(study(table.replace(str(clone), f"ext::touch {tmp_path}/marked")), home)
    assert not (tmp_path / "marked").exists()


def test_a_program_at_hand_has_the_hash_that_is_expected(
    study: Callable[..., Study], home: Home, tmp_path: Path
) -> None:
    table = f"[[scheduler]]\nname = 'scx_mine'\nsha256 = '{TRUE}'\n"
    with pytest.raises(RequestError, match="scx_mine is not contained in the file, only its hash") as lacking:
        built(study(table), home)
    assert "--scheduler" in str(lacking.value.hint)
    program = tmp_path / "scx_mine"
    shutil.copy("/bin/false", program)
    with pytest.raises(RequestError, match=f"expected {TRUE}"):
        built(study(f"{table}program = 'scx_mine'"), home)
    assert "scx_mine has the hash" in built(study(table), home, program).notes[0]
    shutil.copy("/bin/true", program)
    assert built(study(table), home, program).notes == ()
    with pytest.raises(RequestError, match="outside of"):
        built(study(table.replace(TRUE, "1" * 64) + "program = '../scx_mine'"), home)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("program = 'x'\ncommit = '" + "1" * 40 + "'", "repository and commit require each other"),
        ("program = 'x'\nbuild = ['make']", "build requires repository and commit, or source"),
        ("source = { x = '' }\nbuild = ['make']", "build requires program"),
        ("", "expected program, or sha256"),
        ("program = 'x'\nsource = { '../x' = '' }\nbuild = ['make']", "source"),
    ],
)
def test_a_scheduler_says_where_it_comes_from(study: Callable[..., Study], fields: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        study(f"[[scheduler]]\nname = 'scx_mine'\n{fields}\n")


def test_a_kernel_without_sched_ext_cannot_have_it(study: Callable[..., Study], home: Home, tmp_path: Path) -> None:
    made = built(study(BUILDS), home).study
    config = tmp_path / "config"
    image = KernelImage(spec="debian:6.12", release="6.12.1", vmlinuz=Path("vmlinuz"), config=config, sha256="0" * 64)
    config.write_text("CONFIG_DEBUG_INFO_BTF=y\n")
    with pytest.raises(RequestError, match=r"debian:6.12 cannot load scx_mine: it lacks SCHED_CLASS_EXT=y"):
        with_programs(image, made, home)
    config.write_text("CONFIG_DEBUG_INFO_BTF=y\nCONFIG_SCHED_CLASS_EXT=y\n")
    folder = with_programs(image, made, home).schedulers
    assert folder is not None
    assert [file.name for file in folder.iterdir()] == ["scx_mine"]
    shutil.rmtree(home.cache / "contained")
    with pytest.raises(RequestError, match="not in the cache"):
        with_programs(image, made, home)


def test_a_built_kernel_keeps_its_patches(home: Home, tmp_path: Path) -> None:
    tree, file = small_kernel(tmp_path / "linux"), tmp_path / "longer.patch"
    file.write_text(PATCH)
    build_kernel(BuildRequest(str(tree), patches=(file,), name="patched"), home, Silent())
    kernel = find_built("patched", home)
    assert kernel.patches == tuple(patch.content for patch in read_patches([file]))
    (kernel.directory / "patches" / "0").unlink()
    with pytest.raises(RequestError, match=r"the patch longer.patch of mine:patched was not stored"):
        _ = kernel.patches


@pytest.mark.parametrize("config", ["lab-ext", "distro"])
def test_a_specification_has_a_configuration(config: str) -> None:
    spec = parse_spec(f"build:debian:6.12+NUMA=n+config={config}")
    assert isinstance(spec, KernelToBuild)
    assert (spec.config, str(spec)) == (config, f"build:debian:6.12+config={config}+NUMA=n")
    with pytest.raises(RequestError, match="expected one of lab, lab-ext, distro"):
        parse_spec("build:debian:6.12+config=/etc/passwd")


def measured(kernel: str, store: Store, directory: Path) -> tuple[Run, Results]:
    """A run that says it measured ``kernel``, and its results."""
    started = run_of(SMALL, store, directory)
    results = results_of(started, store)
    run = replace(started, resolved=started.resolved.replace("debian:5.10", kernel), stopped="decided")
    return run, results.model_copy(update={"stopped": "decided"})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = small_kernel(tmp_path / "linux")
    git = ("git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "one")):
        subprocess.run([*git, *words], check=True)
    return tree


def test_a_reproducer_contains_what_its_kernel_was_built_from(
    home: Home, store: Store, tmp_path: Path, repository: Path
) -> None:
    file = tmp_path / "longer.patch"
    file.write_text(PATCH)
    request = BuildRequest(f"git:{repository}", settings=("NUMA=n",), patches=(file,), name="patched")
    kernel = build_kernel(request, home, Silent())
    run, results = measured("mine:patched", store, tmp_path)
    study, notes = reproducer(run, results, home)
    commit = subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    name = f"git:{repository}@{commit.stdout.strip()}"
    assert study.target.kernel == f"build:{name}+NUMA=n+longer.patch"
    assert [(patch.name, patch.text.encode()) for patch in study.patches] == [("longer.patch", kernel.patches[0])]
    assert study.expect is not None
    assert (study.expect.kernels, study.expect.stalls) == ((kernel.image.sha256,), 0)
    assert "must be at hand" in notes[0]
    # In another home the file alone builds the very same.
    save_study(study.document(), tmp_path / "test.toml", "")
    other = Home(tmp_path / "other" / "data", tmp_path / "other" / "cache", tmp_path / "other" / "state")
    read = read_study(tmp_path / "test.toml", catalogue(), parse_kernel=lambda text: parse_study_spec(text, ALLOWED))
    spec = with_patches(read, other).target.kernel or ""
    assert build_specified([spec], other, Silent())[spec].image.sha256 == kernel.image.sha256


def test_a_study_for_a_mail_names_kernels_as_others_build_them(
    home: Home, store: Store, tmp_path: Path, repository: Path
) -> None:
    file = tmp_path / "longer.patch"
    file.write_text(PATCH)
    request = BuildRequest(f"git:{repository}", settings=("NUMA=n",), patches=(file,), name="patched")
    kernel = build_kernel(request, home, Silent())
    run, _ = measured("mine:patched", store, tmp_path)
    resolved = run.resolved.replace(
        "Does a larger minimum granularity mean", "Does mine:patched, not mine:patched-2, mean"
    )
    shared = shared_study(replace(run, resolved=resolved), home)
    spec = shared.study.target.kernel
    assert spec is not None
    assert spec.startswith("build:git:")
    assert spec.endswith("+NUMA=n+longer.patch")
    assert shared.built == {"mine:patched": spec}
    assert [(patch.name, patch.text.encode()) for patch in shared.study.patches] == [
        ("longer.patch", kernel.patches[0])
    ]
    assert f"mine:patched is {spec}." in shared.remarks[0]
    assert "must be at hand" in shared.remarks[1]
    assert shared.study.question == f"Does {spec}, not mine:patched-2, mean fewer switches?"
    # A kernel that nobody else has keeps its name, and the mail has the reason.
    build_kernel(BuildRequest(str(repository), name="uncommitted"), home, Silent())
    shared = shared_study(measured("mine:uncommitted", store, tmp_path)[0], home)
    assert (shared.study.target.kernel, shared.built) == ("mine:uncommitted", {})
    assert "Others cannot build mine:uncommitted: " in shared.remarks[0]
    packaged = shared_study(measured("debian:5.10.200", store, tmp_path)[0], home)
    assert (packaged.study.target.kernel, packaged.remarks) == ("debian:5.10.200", ())


def test_two_patches_of_one_name_are_not_taken_for_one(
    home: Home, store: Store, tmp_path: Path, repository: Path
) -> None:
    for folder, longer in (("a", "3000000"), ("b", "4000000")):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "longer.patch"
        file.write_text(PATCH.replace("3000000", longer))
        build_kernel(BuildRequest(f"git:{repository}", patches=(file,), name=folder), home, Silent())
    run, results = measured("mine:a", store, tmp_path)
    document = json.loads(run.resolved)
    document["study"]["factors"].append({"name": "kernel", "levels": ["mine:a", "mine:b"]})
    run = replace(run, resolved=json.dumps(document))
    with pytest.raises(RequestError, match=r"two patches are called longer\.patch"):
        reproducer(run, results, home)
    shared = shared_study(run, home)
    assert list(shared.built) == ["mine:a"]
    assert "Others cannot build mine:b: two patches" in shared.remarks[1]


def test_what_cannot_be_contained_is_said(home: Home, store: Store, tmp_path: Path, repository: Path) -> None:
    build_kernel(BuildRequest(str(repository), name="uncommitted"), home, Silent())
    config = tmp_path / "own.config"
    config.write_text("CONFIG_NUMA=y\n")
    build_kernel(BuildRequest(f"git:{repository}", str(config), name="configured"), home, Silent())
    for kernel, message in {
        "mine:uncommitted": "not one source for ever",
        "mine:configured": "own.config, a file",
        "mine:gone": "built kernel 'gone' not found",
        "path:/boot/vmlinuz": "a file of this machine",
    }.items():
        with pytest.raises(RequestError, match=message):
            reproducer(*measured(kernel, store, tmp_path), home)
    build_kernel(BuildRequest(f"git:{repository}", name="configured"), home, Silent())
    run, results = measured("mine:configured", store, tmp_path)
    before = replace(run, environment={"mine:configured": {"kernel package": f"/built/{'0' * 64}/vmlinuz"}})
    with pytest.raises(RequestError, match="another kernel by now"):
        reproducer(before, results, home)
