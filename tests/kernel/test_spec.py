"""Names of kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.kernel.spec import (
    KernelFile,
    KernelToBuild,
    PackagedKernel,
    kernel_sources,
    parse_source,
    parse_spec,
    parse_study_spec,
)
from ajuste.model.error import RequestError
from ajuste.model.wording import split_at

FLAVOURS = {"cloud": "cloud-amd64", "generic": "amd64", "rt": "rt-amd64"}
VERSIONS = st.sampled_from(["5", "6", "7", "5.10", "6.1", "6.12", "6.18", "7.0", "7.12"]) | st.builds(
    "{}.{}".format, st.sampled_from(["5.10", "6.1", "6.12", "6.17", "7.2"]), st.integers(0, 999)
)


@given(VERSIONS, st.sampled_from(["", "/cloud", "/generic", "/rt"]))
def test_a_version_and_a_flavour(version: str, flavour: str) -> None:
    spec = parse_spec(f"debian:{version}{flavour}")
    assert spec == PackagedKernel(source="debian", version=version, flavour=flavour[1:] or "cloud")
    assert parse_spec(str(spec)) == spec


@given(st.sampled_from(["5.10.0-46", "6.1.0-0.deb11.52", "6.12.94+deb13", "7.3.4+deb13"]), st.sampled_from([*FLAVOURS]))
def test_a_release_has_its_flavour_in_it(release: str, flavour: str) -> None:
    text = f"debian:{release}-{FLAVOURS[flavour]}"
    spec = parse_spec(text)
    assert isinstance(spec, PackagedKernel)
    assert (spec.release, spec.flavour, spec.exact, str(spec)) == (text[7:], flavour, True, text)


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(NAMES.filter(lambda t: ",modules=" not in t and t == t.strip()))
def test_a_path_is_taken_as_it_is(name: str) -> None:
    assert parse_spec(f"path:{name}") == KernelFile(vmlinuz=Path(name))
    assert parse_spec(f"path:{name},modules=out/lib") == KernelFile(vmlinuz=Path(name), modules=Path("out/lib"))


@given(st.text() | st.text().map("debian:{}".format) | st.text("0123456789./-+acdlmortu6").map("debian:{}".format))
def test_any_other_text_is_a_wrong_request_and_never_a_crash(text: str) -> None:
    try:
        spec = parse_spec(text)
    except RequestError:
        return
    assert parse_spec(str(spec)) == spec


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
SOURCES = st.sampled_from(["debian:6.1", "debian:7", "./linux", "git:~/linux@v6.1", "a+b,c\\d", "x=y"])
OPTIONS = st.tuples(
    st.from_regex(r"[A-Z0-9_]{1,12}", fullmatch=True).filter(lambda name: not name.startswith("CONFIG_")),
    st.sampled_from(["y", "n", "m", "0x1f", "-3", '""', '"n"', '" a"', '"a+b,c"', '"=+="']),
)
PATCHES = st.sampled_from(["fix.patch", "../a+b.patch", "A=b.patch", "deb13", "a b,c", "\\+", "/x/y=z"]) | WORDS.map(
    lambda text: f"x/{text.replace('/', '')}."
)


@given(SOURCES, st.lists(OPTIONS, max_size=4, unique_by=lambda option: option[0]), st.lists(PATCHES, max_size=3))
def test_a_kernel_to_be_built_is_read_as_it_is_written(
    source: str, options: list[tuple[str, str]], patches: list[str]
) -> None:
    named = [Path(patch.strip()) for patch in patches]
    spec = KernelToBuild(source=parse_source(source), options=tuple(options), patches=tuple(named))
    assert parse_spec(str(spec)) == spec
    assert split_at(",", f"{spec},debian:6.1") == [str(spec), "debian:6.1"]


@given(st.text(st.sampled_from("ab+,=\\.:/ 6deb13NUMA_yn\"'")).map("build:debian:6.1{}".format))
def test_any_text_after_the_source_is_a_kernel_to_be_built_or_a_wrong_request(text: str) -> None:
    try:
        spec = parse_spec(text)
    except RequestError:
        return
    assert parse_spec(str(spec)) == spec


def test_parts_with_the_name_of_an_option_before_an_equals_sign_are_options_and_others_patches() -> None:
    spec = parse_spec("build:debian:6.1+CONFIG_NUMA=n+my.patch+HZ=100+./A=b+a/b=c+TEXT=plain")
    assert isinstance(spec, KernelToBuild)
    assert spec.options == (("NUMA", "n"), ("HZ", "100"), ("TEXT", '"plain"'))
    assert spec.patches == (Path("my.patch"), Path("A=b"), Path("a/b=c"))
    assert str(spec) == "build:debian:6.1+NUMA=n+HZ=100+TEXT=plain+my.patch+./A=b+a/b=c"


def test_a_study_file_builds_only_packaged_sources_with_plain_options() -> None:
    assert parse_study_spec("build:debian:6.1+NUMA=n+HZ=100") == parse_spec("build:debian:6.1+NUMA=n+HZ=100")
    assert parse_study_spec("mine:base") == parse_spec("mine:base")
    for text, refused in (
        ("build:./linux+NUMA=n", "the source ./linux"),
        ("build:git:linux", "the source git:linux"),
        ("build:debian:6.1+fix.patch", "the patch fix.patch"),
        # Make expands it where the kernel is built.
        ("build:debian:6.1+LOCALVERSION=$(shell touch run)", "the text LOCALVERSION=$(shell touch run)"),
    ):
        with pytest.raises(RequestError, match=re.escape(f"{refused} is not allowed in a study file")) as caught:
            parse_study_spec(text)
        assert "on the command line" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("5.10", "is not a kernel", "debian:5.10"),
        ("./bzImage", "is not a kernel", "path:./bzImage"),
        ("debain:5.10", "unknown kernel source", "debian:5.10"),
        ("ubuntu:5.10", "expected one of debian, mine, build, path", "debian:5.10"),
        ("debian:5.11", "kernel 5.11 not found in debian; expected one of 5.10, 6.1", "debian:5.10"),
        ("debian:6.13.1", "kernel 6.13.1 not found", "debian:6.12"),
        ("debian:4", "kernel 4 not found", "debian:5.10"),
        ("debian:6.1/rtt", "flavour 'rtt' not found in debian; expected one of cloud, generic, rt", "debian:6.1/rt"),
        ("debian:6.1/", "flavour '' not found", None),
        ("debian:", "'' is not a kernel version", "ajuste kernel list"),
        ("debian:6.01", "'6.01' is not a kernel version", None),
        ("debian:6.1.0-5-cloud-amd64/rt", "flavour rt conflicts with the release's flavour; expected cloud", None),
        ("path:", "lacks a file", None),
        ("path:vmlinuz,modules=", "lacks the modules directory", None),
        ("", "is not a kernel", None),
        ("buidl:debian:6.1", "unknown kernel source 'buidl'", "build:debian:6.1"),
        ("build:", "nothing before or after a +", None),
        ("build:debian:6.1+", "nothing before or after a +", "remove the +"),
        ("build:debian:6.1++NUMA=n", "nothing before or after a +", None),
        ("build:debian:6.1+NUMA=", "NUMA has no value; expected y, m, n, a number", "NUMA=n"),
        ("build:debian:6.1+NUMA=n+CONFIG_NUMA=y", "NUMA is given twice, as n and y", "remove one of NUMA=n"),
        ('build:debian:6.1+TEXT=a"b', "found a quotation mark", None),
        ("build:debian:5.11+NUMA=n", "kernel 5.11 not found", "debian:5.10"),
        ("build:debian:6.1/rt", "debian:6.1/rt is a kernel package; expected a source", "debian:6.1"),
        ("build:debian:6.12.94+deb13-cloud-amd64", "+deb13-cloud-amd64 belongs to a package version", "debian:6.12.94"),
        ("build:debian:6.12.94+deb13", "+deb13 belongs to a package version", "./deb13"),
        ("build:git:", "names no source", None),
        ("build:linux+a\0b", "NUL character", None),
    ],
)
def test_a_wrong_spec_says_what_would_be_right(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        parse_spec(text)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_minor_is_no_prefix_of_a_longer_one() -> None:
    spec = parse_spec("debian:6.1")
    assert isinstance(spec, PackagedKernel)
    assert spec.names("6.1.0-56-cloud-amd64", "6.1.192", "cloud")
    assert not spec.names("6.12.94+deb13-cloud-amd64", "6.12.94", "cloud")
    assert not spec.names("6.1.0-56-rt-amd64", "6.1.192", "rt")


def test_series_do_not_overlap_and_their_suites_are_read() -> None:
    for source in kernel_sources().values():
        suites = {suite for repository in source.repositories for suite in repository.suites}
        assert source.default_flavour in source.flavours
        for series in source.series:
            assert suites.issuperset(series.suites)
        for minor in range(300):
            version = f"{5 + minor // 100}.{minor % 100}"
            assert sum(series.may_have(version) for series in source.series) <= 1, version
