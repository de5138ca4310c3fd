"""How kernels are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.kernel.source import kernel_sources
from ajuste.kernel.spec import KernelFile, PackagedKernel, parse_spec
from ajuste.model.error import RequestError

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


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("5.10", "is not a kernel", "debian:5.10"),
        ("./bzImage", "is not a kernel", "path:./bzImage"),
        ("debain:5.10", "unknown kernel source", "debian:5.10"),
        ("ubuntu:5.10", "expected one of debian, mine, path", "debian:5.10"),
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
