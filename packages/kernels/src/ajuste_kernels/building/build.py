"""Building: from sources, options and patches to a kernel that boots; what was built before is not built again."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from ajuste.kernel.builder import BuildWatcher
from ajuste.kernel.spec import (
    BUILT,
    KernelToBuild,
    PackagedKernel,
    check_name,
    parse_source,
    parse_spec,
    read_options,
    specs_to_build,
)
from ajuste.machine.cache import BUILT as BUILT_HERE
from ajuste.machine.cache import OBJECTS, make_room
from ajuste.machine.files import file_sha256, locked, make_directory, read_kept
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.model.wording import Say
from ajuste_guest.kernel.cache import keeping_in, put_in_place, require_space, write_record
from ajuste_guest.kernel.candidate import read_release
from ajuste_guest.kernel.config import parse_config
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.schedulers import OwnScheduler, read_schedulers, require_loadable
from ajuste_guest.kernel.toolchain import compiler
from ajuste_kernels.building.built import (
    PROVENANCE,
    BuiltKernel,
    Provenance,
    SourceOrigin,
    UsedFile,
    digest_texts,
    give_name,
    kept_by,
    patch_file,
    read_built,
    read_version,
)
from ajuste_kernels.building.configuration import (
    OptionChange,
    Options,
    OptionsConflict,
    Start,
    configure,
    fallen,
    missed,
    read_start,
    read_symbols,
    require_known,
    require_settable,
    turn_to,
    written,
)
from ajuste_kernels.building.make import (
    Edits,
    Workspace,
    jobs_here,
    require_tools,
    require_tools_for,
    run_make,
    workspace,
)
from ajuste_kernels.building.patch import PatchFile, read_patches, try_patches
from ajuste_kernels.building.schedulers import (
    Llvm,
    Programs,
    build_schedulers,
    keep_schedulers,
    require_llvm,
    source_schedulers,
)
from ajuste_kernels.building.sources import cached_source, open_source
from ajuste_kernels.kconfig import explain

_FIRST_BYTES: Final = 4_000_000_000
_AGAIN_BYTES: Final = 500_000_000
# Debian's 6.1 with `lab`: objects that were compiled for each option that is set. An estimate for the display only.
_OBJECTS_PER_OPTION: Final = 2.1
_IMAGE: Final = "arch/x86/boot/bzImage"
_LONGEST_NAME: Final = 80


@dataclass(frozen=True)
class BuildRequest:
    """A request in a person's words: ``source`` is ``debian:6.1``, a directory or ``git:DIR@REVISION``; ``config`` is
    ``lab``, ``lab-ext``, ``distro`` or a file; ``settings`` are ``NUMA=n`` and the like; ``schedulers`` are programs of
    BPF schedulers that it is to be kept with, beside those of its sources.
    """

    source: str
    config: str = "lab"
    settings: tuple[str, ...] = ()
    patches: tuple[Path, ...] = ()
    name: str | None = None
    refresh: bool = False
    schedulers: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _Recipe:
    # All that decides what kernel it becomes.
    origin: SourceOrigin
    version: str
    config: str
    start: Start
    settings: Options
    patches: tuple[PatchFile, ...]
    edits: Edits
    notes: tuple[str, ...]
    compiler: str
    given_schedulers: tuple[OwnScheduler, ...] = ()
    schedulers: tuple[str, ...] = ()
    llvm: Llvm | None = None

    @property
    def sources(self) -> str:
        marks = [
            f"{path} {edit.mark if edit.content is not None else '-'}" for path, edit in sorted(self.edits.items())
        ]
        return digest_texts([self.origin.digest, *marks])

    @property
    def key(self) -> str:
        settings = [f"{name}={value}" for name, value in sorted(self.settings.items())]
        return digest_texts(
            [self.sources, self.compiler, self.start.kind, self.start.text, *settings, *self._given_names]
        )

    def content_key(self, tree: Workspace) -> str:
        config = (tree.objects / ".config").read_text(encoding="utf-8")
        return digest_texts([self.sources, self.compiler, config, *self._given_names])

    @property
    def _given_names(self) -> list[str]:
        return sorted(f"{scheduler.name} {scheduler.sha256}" for scheduler in self.given_schedulers)


def build_kernel(request: BuildRequest, home: Home, watcher: BuildWatcher) -> BuiltKernel:
    """Build the kernel that ``request`` asks for, under its name. Raises as ``build_kernels``."""
    return build_kernels([request], home, watcher)[0]


def build_kernels(requests: Sequence[BuildRequest], home: Home, watcher: BuildWatcher) -> list[BuiltKernel]:
    """Build the kernels that ``requests`` ask for, under their names.

    Sources, patches and option names of all are checked before the first is built. Raises RequestError for what cannot
    be built as requested, RunError where building fails; then no kernel has changed, and compiled objects are kept.
    """
    for name in filter(None, (request.name for request in requests)):
        check_name(name)
    with keeping_in(kept_by(home), "kernels"):
        require_tools()
        recipes = [_recipe(request, home, watcher.say) for request in requests]
        built = [_asked_before(recipe, home) or _build(recipe, home, watcher) for recipe in recipes]
        names = _names(requests, recipes)
        return [give_name(kernel, name, home) for kernel, name in zip(built, names, strict=True)]


def check_request(request: BuildRequest, home: Home) -> str:
    """Return the version of the kernel that ``request`` asks for, such as ``6.1.192``, or of a package that is not here
    the requested one. Fetches and builds nothing. Raises RequestError for invalid sources, patches and option names.
    """
    source = parse_source(request.source)
    settings = dict(read_options(request.settings))
    patches = read_patches(request.patches)
    if isinstance(source, PackagedKernel) and cached_source(source, home) is None:
        require_settable(settings)
        return source.version
    origin = open_source(request.source, home, lambda _: None)
    version = read_version(origin)
    edits, _ = try_patches(patches, origin)
    if settings:
        require_known(settings, read_symbols(origin, edits), origin)
    return version


def _recipe(request: BuildRequest, home: Home, say: Say) -> _Recipe:
    settings = dict(read_options(request.settings, "--set"))
    patches = read_patches(request.patches)
    if isinstance(parse_source(request.source), PackagedKernel):
        require_settable(settings)  # before the sources are downloaded
    origin = open_source(request.source, home, say, refresh=request.refresh)
    version = read_version(origin)
    edits, notes = try_patches(patches, origin)
    start = read_start(request.config, version, home, say)
    given_schedulers = read_schedulers(request.schedulers)
    recipe = _Recipe(
        origin, version, request.config, start, settings, patches, edits, tuple(notes), compiler(), given_schedulers
    )
    if settings and not _asked_before(recipe, home):
        require_known(settings, read_symbols(origin, edits), origin)
    if not (schedulers := source_schedulers(request.config, origin)):
        return recipe
    if twice := next((scheduler for scheduler in given_schedulers if scheduler.name in schedulers), None):
        raise RequestError(
            f"--scheduler {twice.file}: the sources already have {twice.name}; expected another name",
            hint="rename the file",
        )
    llvm = require_llvm()
    return replace(recipe, schedulers=schedulers, llvm=llvm, compiler=f"{recipe.compiler}; {llvm.words}")


def _names(requests: Sequence[BuildRequest], recipes: Sequence[_Recipe]) -> list[str]:
    owners: dict[str, str] = {}
    names = []
    for request, recipe in zip(requests, recipes, strict=True):
        name = request.name or default_name(
            recipe.version, recipe.config, recipe.settings, [patch.path.name for patch in recipe.patches]
        )
        if owners.setdefault(name, recipe.key) != recipe.key:
            name = f"{name[: _LONGEST_NAME - 9]}-{recipe.key[:8]}"
        names.append(name)
    return names


def default_name(version: str, config: str, settings: Options, patches: Sequence[str]) -> str:
    """Return what a kernel is called that nobody gave a name, such as ``6.1.192-lab-no-numa-my-patch``."""
    words = [version, (Path(config).name.lstrip(".") or "config").removesuffix(".config")]
    for option, value in settings.items():
        plain = option.lower().replace("_", "-")
        words.append({"n": f"no-{plain}", "y": plain}.get(value, f"{plain}-{value.strip(chr(34))}"))
    words += [Path(patch).stem for patch in patches]
    text = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._+-") else "-" for letter in "-".join(words)
    )
    return text[:_LONGEST_NAME]


def _asked_before(recipe: _Recipe, home: Home) -> BuiltKernel | None:
    try:
        key = read_kept(kept_by(home) / "requests" / recipe.key).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return read_built(key, home)


def _remember(recipe: _Recipe, kernel: BuiltKernel, home: Home) -> BuiltKernel:
    folder = kept_by(home) / "requests"
    make_directory(folder)
    (folder / recipe.key).write_text(kernel.key + "\n", encoding="ascii")
    return kernel


def _build(recipe: _Recipe, home: Home, watcher: BuildWatcher) -> BuiltKernel:
    with workspace(recipe.origin, home, watcher.say) as tree:
        # Another process may just have built it.
        if kernel := _asked_before(recipe, home):
            return kernel
        require_space(tree.directory, _FIRST_BYTES if tree.empty else _AGAIN_BYTES, "the objects of a kernel")
        watcher.say(f"preparing {recipe.origin.title}")
        tree.update(recipe.origin, recipe.edits)
        with tree.making(watcher.say):
            watcher.say("configuring")
            options, notes = _configured(recipe, tree, home)
            require_loadable(recipe.given_schedulers, options)
            key = recipe.content_key(tree)
            if kernel := read_built(key, home):
                return _remember(recipe, kernel, home)
            began = time.monotonic()
            compiled = _compile(tree, home, options, watcher)
            programs: Programs = {scheduler.name: (scheduler.file, "strip") for scheduler in recipe.given_schedulers}
            if recipe.llvm is not None:
                watcher.say("building schedulers")
                programs = {**build_schedulers(tree, home, recipe.schedulers, options, recipe.llvm), **programs}
            provenance = _provenance(recipe, tree, notes, time.monotonic() - began, compiled)
            watcher.say("keeping the kernel")
            return _remember(recipe, _collect(tree, home, key, provenance, options, programs, recipe.patches), home)


def _configured(recipe: _Recipe, tree: Workspace, home: Home) -> tuple[dict[str, str], list[str]]:
    options = configure(tree, home, recipe.start, recipe.settings)
    if lost := missed(recipe.settings, options):
        raise _not_so(lost, recipe.settings, options, tree)
    require_tools_for(options)
    fell = fallen(recipe.start, recipe.settings, options, read_symbols(recipe.origin, recipe.edits))
    return options, [f"{name} is {value}, unlike in {recipe.config}" for name, value in fell.items()]


def _not_so(lost: Options, settings: Options, options: Options, tree: Workspace) -> OptionsConflict:
    requested = parse_config(written({**options, **settings}))
    causes = explain(tree.source, requested, {name: settings[name].strip('"') for name in lost})
    words = ", ".join(
        f"{name}={settings[name]} conflicts with other options: it is {value}" for name, value in lost.items()
    )
    return OptionsConflict(words, hint="\n".join(cause.hint() for cause in causes.values()), of_candidate=True)


def _compile(tree: Workspace, home: Home, options: Options, watcher: BuildWatcher) -> int:
    count = 0

    def watch(compiled: int) -> None:
        nonlocal count
        count = compiled
        watcher.compiled(compiled)

    change = turn_to(tree, options)
    watcher.compiling(_expected(tree, options, change))
    # Where nearly all is compiled, the objects themselves are kept, and asking ccache in vain would take long.
    run_make(tree, home, ["bzImage", *_modules(options)], jobs=jobs_here(), watch=watch, cached=tree.complete)
    tree.set_complete(True)
    return count


def _expected(tree: Workspace, options: Options, change: OptionChange) -> int | None:
    # None: nobody but make knows what changed sources compile.
    if tree.complete:
        return None
    if change.wide:
        return change.affected
    missing = round(_OBJECTS_PER_OPTION * sum(value in "ym" for value in options.values())) - tree.object_count()
    return missing if missing > 0 else None


def _modules(options: Options) -> tuple[str, ...]:
    return ("modules",) if options.get("MODULES") == "y" else ()


def _provenance(recipe: _Recipe, tree: Workspace, notes: list[str], seconds: float, compiled: int) -> Provenance:
    return Provenance(
        source=recipe.origin.title,
        source_digest=recipe.origin.digest,
        config=recipe.config,
        settings=dict(recipe.settings),
        patches=tuple(
            UsedFile(name=patch.path.name, sha256=hashlib.sha256(patch.content).hexdigest()) for patch in recipe.patches
        ),
        schedulers=tuple(
            UsedFile(name=scheduler.name, sha256=scheduler.sha256) for scheduler in recipe.given_schedulers
        ),
        notes=(*recipe.notes, *notes),
        compiler=recipe.compiler,
        workspace=tree.directory.name,
        seconds=round(seconds, 3),
        compiled=compiled,
    )


def _collect(
    tree: Workspace,
    home: Home,
    key: str,
    provenance: Provenance,
    options: Options,
    schedulers: Programs,
    patches: Sequence[PatchFile],
) -> BuiltKernel:
    root = kept_by(home)
    make_directory(root)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=root) as name:
        entry = Path(name) / "kernel"
        entry.mkdir()
        shutil.copyfile(tree.objects / _IMAGE, entry / "vmlinuz")
        shutil.copyfile(tree.objects / ".config", entry / "config")
        shutil.copyfile(tree.objects / "System.map", entry / "System.map")
        if options.get("DEBUG_INFO_BTF") == "y":
            shutil.copyfile(tree.objects / "vmlinux", entry / "vmlinux")
        release = read_release(entry / "vmlinuz")
        modules = None
        if _modules(options):
            run_make(tree, home, ["modules_install", f"INSTALL_MOD_PATH={entry}", "INSTALL_MOD_STRIP=1"])
            modules = Path("lib/modules") / release
            for link in ("build", "source"):
                (entry / modules / link).unlink(missing_ok=True)
        if schedulers:
            keep_schedulers(schedulers, entry / "schedulers")
        for number, patch in enumerate(patches):
            file = patch_file(entry, number)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(patch.content)
        image = KernelImage(
            spec=f"{BUILT}:",
            release=release,
            vmlinuz=Path("vmlinuz"),
            modules=modules,
            config=Path("config"),
            schedulers=Path("schedulers") if schedulers else None,
            sha256=file_sha256(entry / "vmlinuz"),
        )
        (entry / PROVENANCE).write_text(provenance.model_dump_json(indent=2) + "\n", encoding="utf-8")
        write_record(entry, image)
        with locked(root / ".lock"):
            put_in_place(entry, root / key, aside=Path(name) / "damaged")
    built = read_built(key, home)
    if built is None:
        raise RunError(f"cannot read back the kernel stored in {root / key}")
    make_room(BUILT_HERE, home)
    make_room(OBJECTS, home)
    return built


# Kernels that specifications ask to build: checked together, then built once each, and by name from then on.


# The minor version that stands for the newest of a major one, until it is fetched.
_NEWEST: Final = 99


@cache  # A request asks several times, and reading a source takes seconds.
def version_to_build(spec: KernelToBuild, home: Home) -> KernelVersion:
    """Return the version that the kernel will have. Fetches and builds nothing. Raises RequestError for invalid
    sources, patches and option names.
    """
    version = check_request(_request(spec), home)
    return KernelVersion.parse(f"{version}.{_NEWEST}" if version.isdigit() else version)


def build_specified(texts: Iterable[str], home: Home, watcher: BuildWatcher) -> dict[str, BuiltKernel]:
    """Return the kernels to be built among the specifications ``texts``, by their text. All ``texts`` are checked, and
    the other kernels fetched, before the first is built. Raises RequestError or RunError.
    """
    specs = {text: parse_spec(text) for text in dict.fromkeys(texts)}
    wanted = specs_to_build(specs)
    if not wanted:
        return {}
    for spec in wanted.values():
        version_to_build(spec, home)
    others = [text for text in specs if text not in wanted]
    for text in sorted(others, key=lambda text: isinstance(specs[text], PackagedKernel)):  # Downloads come last.
        fetch_kernel(text, home, say=watcher.say)
    requests = dict.fromkeys(map(_request, wanted.values()))
    built = dict(zip(requests, build_kernels(list(requests), home, watcher), strict=True))
    return {text: built[_request(spec)] for text, spec in wanted.items()}


def require_different(built: dict[str, BuiltKernel]) -> None:
    """Raise RequestError where two specifications give the same kernel."""
    first: dict[str, str] = {}
    for text, kernel in built.items():
        if (other := first.setdefault(kernel.key, text)) != text:
            raise RequestError(
                f"{other} and {text} give the same kernel; there is nothing to compare",
                hint="check the options with ajuste kernel diff, or leave one of them out",
            )


def _request(spec: KernelToBuild) -> BuildRequest:
    return BuildRequest(str(spec.source), spec.config, spec.settings, spec.patches)
