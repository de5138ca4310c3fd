r"""Kernel specs: how a person names a kernel, ``debian:5.10``, ``mine:NAME`` or ``build:debian:6.1+NUMA=n``.

A kernel to be built is ``build:SOURCE`` and parts after ``+``: ``NAME=VALUE`` with a name of Kconfig is an option,
``config=lab-ext`` is the configuration that options are added to, any other part is the file of a patch. A ``\`` before
``+``, ``,`` or ``\`` takes that character as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.capability import Asked, Kind
from ajuste.model.error import AjusteError, Place, RequestError, did_you_mean, nearest_names
from ajuste.model.kernel import KernelVersion
from ajuste.model.wording import split_at

# Where kernels, QEMU and packages come from, as data: ``catalogue/kernels/*.toml``.


T = TypeVar("T", bound=BaseModel)

FORMS = (
    "debian:5.10, debian:6.1/rt, debian:6.12.94, debian:7, mine:NAME, build:debian:6.1+NUMA=n or "
    "path:VMLINUZ,modules=DIR"
)

SOURCE_FORMS = "debian:6.1, a directory, or git:DIR@REVISION"

BUILT = "mine"
"""Kernels that were built here (``ajuste kernel build``)."""

TO_BUILD = "build"
"""Kernels that are built when they are needed."""

_NUMBER = r"(?:0|[1-9][0-9]{0,3})"
_VERSION = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,2}}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")

CONFIGS = ("lab", "lab-ext", "distro")
"""Configurations by name; a file is none of a specification."""

WITH_SCHEDULERS = "lab-ext"
"""The one that is built with the BPF schedulers of its sources."""

_CONFIG = "config="
_RELEASE = re.compile(rf"{_NUMBER}\.{_NUMBER}[+~.\-0-9a-zA-Z]*")
_OPTION = re.compile(r"[A-Za-z0-9_]+")
_VALUE = re.compile(r"[ymn]|-?\d+|0x[0-9a-fA-F]+|\"[^\"\\\n]*\"")

# What follows the + in the version of a package, such as 6.12.94+deb13-cloud-amd64.
_OF_A_PACKAGE = re.compile(r"deb\d+(?:u\d+)?(?:-[a-z0-9-]+)?")


class Flavour(ClosedModel):
    """A way in which a distribution configures its kernels. ``suffix`` ends their release."""

    suffix: str
    title: str


class Repository(ClosedModel):
    """An archive with several suites. ``setting`` is the environment variable that names another mirror of it,
    ``known_by`` are suites by which the mirror that a machine's apt has is recognised.
    """

    name: str
    uri: str
    setting: str
    suites: tuple[str, ...] = Field(min_length=1)
    known_by: tuple[str, ...] = ()


class KernelSeries(ClosedModel):
    """Kernels ``since`` ≤ major.minor < ``before``, which are packaged and scheduled alike.

    ``parts``: for each package that is needed, the names it may have, best first. ``granularity`` is the file of the
    scheduler's granularity.
    """

    name: str
    since: str
    before: str | None = None
    suites: tuple[str, ...] = Field(min_length=1)
    scheduler: Literal["CFS", "EEVDF"]
    granularity: str
    parts: tuple[tuple[str, ...], ...] = Field(min_length=1)

    def holds_for(self, version: KernelVersion) -> bool:
        if version < KernelVersion.parse(self.since):
            return False
        return self.before is None or version < KernelVersion.parse(self.before)

    def may_have(self, version: str) -> bool:
        """Return whether a kernel of ``version`` can be in it: ``7``, ``6.12``, ``6.12.94`` or a release."""
        if not version.isdigit():
            return self.holds_for(KernelVersion.parse(version))
        first = KernelVersion.parse(self.since).major
        if self.before is None:
            return int(version) >= first
        end = KernelVersion.parse(self.before)
        return first <= int(version) <= (end.major if end.minor else end.major - 1)


class KernelSource(ClosedModel):
    """A distribution whose kernels can be fetched. ``origin`` is what its release files have as Origin, ``keyring`` the
    file of the catalogue with the keys that sign them, ``keyrings`` where a machine may have newer ones.
    """

    name: str
    title: str
    origin: str
    default_flavour: str
    keyring: str
    keyrings: tuple[Path, ...]
    flavours: dict[str, Flavour]
    repositories: tuple[Repository, ...]
    series: tuple[KernelSeries, ...]

    def find_series(self, version: KernelVersion) -> KernelSeries | None:
        return next((s for s in self.series if s.holds_for(version)), None)

    def find_flavour(self, release: str) -> str | None:
        """Return the name of the flavour of a release such as ``5.10.0-46-cloud-amd64``."""
        by_length = sorted(self.flavours.items(), key=lambda item: -len(item[1].suffix))
        return next((name for name, flavour in by_length if release.endswith("-" + flavour.suffix)), None)

    def series_names(self) -> str:
        return ", ".join(s.name for s in self.series)


class QemuSource(ClosedModel):
    """Packages of QEMU. ``suites`` by the code name of the machine's own distribution, or ``other``, whose programs
    require glibc ``oldest_libc``.
    """

    source: str
    minimum: str
    package: str
    companions: tuple[str, ...]
    oldest_libc: str
    suites: dict[str, tuple[str, ...]]


class ReleaseTable(ClosedModel):
    """A release whose packages guests can have: its ``suites``, and the ``base`` of a new system beside what is
    essential.
    """

    suites: tuple[str, ...] = Field(min_length=1)
    base: tuple[str, ...]


class PackageSource(ClosedModel):
    """A source of packages of guests, by the code name of the release."""

    source: str
    default: str
    releases: dict[str, ReleaseTable]


def _tables() -> list[Traversable]:
    folder = files("ajuste.catalogue") / "kernels"
    return sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)


def _load(model: type[T], table: object, file: Traversable) -> T:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise AjusteError(first["msg"], place=Place(file.name, field=field)) from error


@cache
def kernel_sources() -> dict[str, KernelSource]:
    """Return all sources by name. Raises AjusteError that names the file and the field of a mistake."""
    sources = [
        _load(KernelSource, table, file)
        for file in _tables()
        if "series" in (table := tomllib.loads(file.read_text(encoding="utf-8")))
    ]
    return {source.name: source for source in sources}


@cache
def qemu_source() -> QemuSource:
    """Return where sources of QEMU come from."""
    file = next(f for f in _tables() if f.name == "qemu.toml")
    return _load(QemuSource, tomllib.loads(file.read_text(encoding="utf-8"))["qemu"], file)


@cache
def package_source() -> PackageSource:
    """Return where packages of guests come from."""
    file = next(f for f in _tables() if f.name == "releases.toml")
    return _load(PackageSource, tomllib.loads(file.read_text(encoding="utf-8"))["packages"], file)


class PackagedKernel(BaseModel):
    """A kernel of a distribution. ``version`` is ``7`` (the newest of it), ``6.1`` (likewise) or ``6.12.94``; or else
    ``release`` is exactly what ``uname -r`` says. ``flavour`` is a name in the catalogue.
    """

    source: str
    version: str = ""
    release: str = ""
    flavour: str

    def __str__(self) -> str:
        if self.release:
            return f"{self.source}:{self.release}"
        default = kernel_sources()[self.source].default_flavour
        return f"{self.source}:{self.version}" + ("" if self.flavour == default else f"/{self.flavour}")

    @property
    def exact(self) -> bool:
        """Return whether it names one kernel for ever, and not the newest of a series."""
        return bool(self.release) or self.version.count(".") == 2

    def names(self, release: str, upstream: str, flavour: str) -> bool:
        """Return whether the kernel of that release, upstream version (``6.12.94``) and flavour is meant."""
        if self.release:
            return release == self.release
        return flavour == self.flavour and (upstream + ".").startswith(self.version + ".")


class KernelFile(BaseModel):
    """A kernel of one's own, as a file; ``modules`` is its ``lib/modules/RELEASE`` or a directory above that."""

    vmlinuz: Path
    modules: Path | None = None

    def __str__(self) -> str:
        return f"path:{self.vmlinuz}" + (f",modules={self.modules}" if self.modules else "")


class OwnKernel(BaseModel):
    """A kernel that was built here, by its name."""

    name: str

    def __str__(self) -> str:
        return f"{BUILT}:{self.name}"


class SourceTree(BaseModel):
    """Sources of one's own: a directory, or ``git:DIR@REVISION``."""

    text: str

    def __str__(self) -> str:
        return self.text


class KernelToBuild(BaseModel):
    """A kernel that is built from ``source`` with ``options`` (a name without ``CONFIG_`` and a value as in a
    ``.config``) beside those of ``config``, and ``patches``, in their order.
    """

    source: PackagedKernel | SourceTree
    config: str = CONFIGS[0]
    options: tuple[tuple[str, str], ...] = ()
    patches: tuple[Path, ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the options as they are typed."""
        return tuple(f"{name}={_plain(value)}" for name, value in self.options)

    def __str__(self) -> str:
        config = () if self.config == CONFIGS[0] else (f"{_CONFIG}{self.config}",)
        parts = (str(self.source), *config, *self.settings, *map(_patch_text, self.patches))
        return f"{TO_BUILD}:" + "+".join(re.sub(r"([\\+,])", r"\\\1", part) for part in parts)


KernelSpec = PackagedKernel | KernelFile | OwnKernel | KernelToBuild


def check_name(name: str) -> str:
    """Return ``name`` if a built kernel can have it. Raises RequestError."""
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} is not a kernel name; expected letters, digits and . _ + -, starting with a letter or digit"
        )
    return name


def parse_spec(text: str) -> KernelSpec:
    """Parse a spec without disk or network. Raises RequestError that gives a valid one."""
    kind, colon, rest = text.strip().partition(":")
    if kind == "path" and colon:
        return _kernel_file(text, rest)
    if kind == BUILT and colon:
        return OwnKernel(name=check_name(rest))
    if kind == TO_BUILD and colon:
        return _to_build(text, rest)
    sources = kernel_sources()
    if colon and kind in sources:
        return _packaged(text, sources[kind], rest)
    if not colon:
        hint = f"write path:{kind} for a file" if "/" in kind else "list kernels with ajuste kernel list"
        if _VERSION.match(kind):
            hint = f"did you mean debian:{kind}?"
        raise RequestError(f"{text!r} is not a kernel; expected {FORMS}", hint=hint)
    kinds = [*sources, BUILT, TO_BUILD, "path"]
    near = did_you_mean(f"{word}:{rest}" for word in nearest_names(kind, kinds))
    raise RequestError(
        f"unknown kernel source {kind!r}; expected one of {', '.join(kinds)}",
        hint=near or f"write {FORMS}",
    )


def is_to_build(text: str) -> bool:
    """Return whether ``text`` names a kernel by how it is to be built: ``build:…``."""
    return text.startswith(f"{TO_BUILD}:")


def specs_to_build(texts: Iterable[str]) -> dict[str, KernelToBuild]:
    """Return those of ``texts`` that are kernels to be built. Raises RequestError as ``parse_spec``."""
    specs = {text: parse_spec(text) for text in texts}
    return {text: spec for text, spec in specs.items() if isinstance(spec, KernelToBuild)}


def kernel_kind(text: str) -> Kind:
    """Return what ``text`` names, for the table of capabilities. Building runs the Makefiles of the sources, which also
    expand the texts among the options. Raises RequestError as ``parse_spec``.
    """
    match spec := parse_spec(text):
        case PackagedKernel():
            return "kernel package"
        case OwnKernel():
            return "built kernel"
        case KernelFile():
            return "kernel file"
        case KernelToBuild():
            return "kernel source" if _runs_here(spec) else "kernel build"


def _runs_here(spec: KernelToBuild) -> str:
    # What of a kernel to build is code that nobody vouches for.
    texts = [setting for setting, (_, value) in zip(spec.settings, spec.options, strict=True) if value[0] == '"']
    foreign = [
        *([f"the source {spec.source}"] if isinstance(spec.source, SourceTree) else ()),
        *(f"the patch {patch}" for patch in spec.patches),
        *(f"the text {setting}" for setting in texts),
    ]
    return next(iter(foreign), "")


def parse_study_spec(text: str, rights: Asked = Asked("study file")) -> KernelSpec:  # noqa: B008
    """Parse a spec of a study file, which may be a stranger's. Raises RequestError for sources, patches and texts."""
    spec = parse_spec(text)
    if isinstance(spec, KernelToBuild) and (code := _runs_here(spec)) and not rights.may("kernel source"):
        raise RequestError(
            f"{text!r}: {code} is not allowed in a study file without --build, because building runs it on this "
            "machine; expected build:debian:VERSION+NAME=VALUE, with y, m, n or a number as VALUE",
            hint="give this kernel on the command line, with --kernel; or read the file, then add --build",
        )
    return spec


def parse_source(text: str) -> PackagedKernel | SourceTree:
    """Parse the name of a kernel's sources without disk or network. Raises RequestError."""
    text = text.strip()
    kind, colon, rest = text.partition(":")
    if not text or "\0" in text or (kind == "git" and colon and not rest):
        raise RequestError(f"{text!r} names no source; expected {SOURCE_FORMS}")
    source = kernel_sources().get(kind) if colon else None
    if source is None:
        return SourceTree(text=text)
    wanted = _packaged(text, source, rest)
    if wanted.release or wanted.flavour != source.default_flavour:
        raise RequestError(
            f"{text} is a kernel package; expected a source such as {source.name}:{wanted.version or '6.12.94'}",
            hint=f"name the source by its version, such as {source.name}:{wanted.version or '6.12'}",
        )
    return wanted


def read_options(texts: Sequence[str], option: str = "") -> tuple[tuple[str, str], ...]:
    """Parse ``NUMA=n`` and the like into names and values, each name once; errors name the command line's ``option``.
    Raises RequestError.
    """
    options: dict[str, str] = {}
    for text in texts:
        place = Place(f"{option} {text}") if option else None
        name, equals, value = text.partition("=")
        name, value = re.sub(r"^(?:CONFIG_)+", "", name.strip()), value.strip()
        if not equals or not _OPTION.fullmatch(name):
            raise RequestError(f"found {text!r}; expected OPTION=VALUE, such as NUMA=n or HZ_1000=y", place=place)
        if not value:
            raise RequestError(
                f"{name} has no value; expected y, m, n, a number or a text",
                hint=f"write {name}=n to turn it off, or {name}='\"\"' for an empty text",
                place=place,
            )
        if not _VALUE.fullmatch(value):
            value = f'"{value}"'
        if not _VALUE.fullmatch(value) or not value.isprintable():
            raise RequestError("found a quotation mark, a backslash or a line break; expected plain text", place=place)
        if name in options:
            raise RequestError(
                f"{name} is given twice, as {options[name]} and {value}; expected one value",
                hint=f"remove one of {name}={options[name]} and {name}={value}",
                place=place,
            )
        options[name] = value
    return tuple(options.items())


def _plain(value: str) -> str:
    # Quotation marks go where the value is read as the same text without.
    text = value.strip('"')
    return value if not text or text != text.strip() or _VALUE.fullmatch(text) else text


def _to_build(text: str, rest: str) -> KernelToBuild:
    if "\0" in rest:
        raise RequestError(f"{text!r} has a NUL character; expected text without it")
    parts = [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL).strip() for part in split_at("+", rest)]
    if not all(parts):
        raise RequestError(
            f"{text!r} has nothing before or after a +; expected build:SOURCE+NAME=VALUE or build:SOURCE+PATCH",
            hint="remove the +, or write \\+ for a + within a name",
        )
    source = parse_source(parts[0])
    configs = [part.removeprefix(_CONFIG) for part in parts[1:] if part.startswith(_CONFIG)]
    if len(configs) > 1 or not set(configs) <= {*CONFIGS}:
        raise RequestError(f"{text!r}: config={','.join(configs)} not found; expected one of {', '.join(CONFIGS)}")
    others = [part for part in parts[1:] if not part.startswith(_CONFIG)]
    options = [part for part in others if _is_option(part)]
    patches = [part for part in others if not _is_option(part)]
    for part in patches:
        if isinstance(source, PackagedKernel) and _OF_A_PACKAGE.fullmatch(part):
            raise RequestError(
                f"{text!r}: +{part} belongs to a package version; expected an option or a patch after each +",
                hint=f"give the version alone, build:{source}, or write a patch of that name as ./{part}",
            )
    try:
        read = read_options(options)
    except RequestError as failure:
        raise RequestError(f"{text!r}: {failure.message}", hint=failure.hint) from None
    return KernelToBuild(source=source, config=(configs or CONFIGS)[0], options=read, patches=tuple(map(Path, patches)))


def _is_option(part: str) -> bool:
    name, equals, _ = part.partition("=")
    return bool(equals) and _OPTION.fullmatch(name.strip()) is not None


def _patch_text(path: Path) -> str:
    # A file's name that is not taken for anything else.
    text = str(path)
    return f"./{text}" if _is_option(text) or _OF_A_PACKAGE.fullmatch(text) else text


def _kernel_file(text: str, rest: str) -> KernelFile:
    vmlinuz, comma, modules = rest.partition(",modules=")
    if not vmlinuz:
        raise RequestError(f"{text!r} lacks a file; expected path:VMLINUZ or path:VMLINUZ,modules=DIR")
    if comma and not modules:
        raise RequestError(f"{text!r} lacks the modules directory; expected path:VMLINUZ,modules=DIR")
    if "\0" in rest:
        raise RequestError(f"{text!r} has a NUL character; expected a path without it")
    return KernelFile(vmlinuz=Path(vmlinuz), modules=Path(modules) if modules else None)


def _packaged(text: str, source: KernelSource, rest: str) -> PackagedKernel:
    version, slash, flavour = rest.partition("/")
    if slash and flavour not in source.flavours:
        near = nearest_names(flavour, source.flavours, likeness=50)
        raise RequestError(
            f"{text!r}: flavour {flavour!r} not found in {source.name}; expected one of {', '.join(source.flavours)}",
            hint=did_you_mean(f"{source.name}:{version}/{similar}" for similar in near),
        )
    if _VERSION.fullmatch(version):
        _check_series(text, source, version)
        return PackagedKernel(source=source.name, version=version, flavour=flavour or source.default_flavour)
    named = source.find_flavour(version)
    if named and _RELEASE.fullmatch(version):
        if slash and flavour != named:
            raise RequestError(f"{text!r}: flavour {flavour} conflicts with the release's flavour; expected {named}")
        _check_series(text, source, version)
        return PackagedKernel(source=source.name, release=version, flavour=named)
    raise RequestError(
        f"{text!r}: {version!r} is not a kernel version; expected a version such as {source.name}:5.10, "
        f"{source.name}:6.12.94 or {source.name}:7",
        hint="list kernels with ajuste kernel list",
    )


def _check_series(text: str, source: KernelSource, version: str) -> None:
    # Refuse what the catalogue knows that no suite can have.
    if not any(series.may_have(version) for series in source.series):
        near = _nearest(source, version)
        raise RequestError(
            f"{text!r}: kernel {version} not found in {source.name}; expected one of {source.series_names()}",
            hint=f"try {source.name}:{near}, or list kernels with ajuste kernel list",
        )


def _nearest(source: KernelSource, version: str) -> str:
    wanted = KernelVersion.parse(version + ".0" if version.isdigit() else version)

    def distance(since: str) -> int:
        known = KernelVersion.parse(since)
        return abs((known.major - wanted.major) * 20 + known.minor - wanted.minor)

    return min((s.since for s in source.series), key=distance)
