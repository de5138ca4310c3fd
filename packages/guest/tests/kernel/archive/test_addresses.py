"""The addresses from which this machine gets its packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.kernel.spec import kernel_sources
from ajuste.model.error import RequestError
from ajuste_guest.kernel.archive.archive import Addresses, find_addresses

DEBIAN = kernel_sources()["debian"]
ARCHIVE, SECURITY = DEBIAN.repositories


def configure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: str = "", format_: str = "list", settings: str = ""
) -> None:
    """An apt that has ``sources`` and never fetched a list."""
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / f"own.{format_}").write_text(sources)
    (tmp_path / "lists").mkdir()
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\nDir::State::lists "{tmp_path}/lists";\n'
        f'Dir::Etc::parts "/dev/null";\nDir::Etc::main "/dev/null";\n{settings}'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))


def addresses(**environment: str) -> Addresses:
    return find_addresses(DEBIAN, environment)


def uris(addresses: Addresses) -> set[str]:
    return set(addresses.suites.values())


@pytest.mark.parametrize(
    ("format_", "sources"),
    [
        ("list", "deb http://mirror.example.org/debian/ bookworm main contrib\n"),
        ("sources", "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: bookworm\nComponents: main\n"),
    ],
)
def test_the_mirror_of_apt_serves_all_suites_of_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, sources: str
) -> None:
    configure(tmp_path, monkeypatch, sources, format_)
    suites = addresses().suites
    assert suites["bookworm"] == suites["bullseye"] == suites["sid"] == "http://mirror.example.org/debian"
    # It says nothing of the security archive.
    assert suites["bookworm-security"] == SECURITY.uri


def test_archives_of_others_with_the_same_suite_names_are_no_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, "deb http://packages.example.org/tools bookworm main\n")
    assert uris(addresses()) == {ARCHIVE.uri, SECURITY.uri}


@pytest.mark.parametrize(
    ("line", "uri"),
    [
        ("deb copy:/srv/debian bookworm main", "file:/srv/debian"),
        ("deb file:/srv/debian bookworm main", "file:/srv/debian"),
        ("deb mirror+file:/etc/apt/debian-mirrors bookworm main", ARCHIVE.uri),
        ("deb cdrom:[Debian GNU/Linux]/ bookworm main", ARCHIVE.uri),
    ],
)
def test_a_mirror_on_a_disk_is_read_and_what_only_apt_can_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, uri: str
) -> None:
    configure(tmp_path, monkeypatch, f"{line}\n")
    assert addresses().suites["bookworm"] == uri


def test_a_machine_without_sources_uses_the_catalogues_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch)
    assert uris(addresses()) == {ARCHIVE.uri, SECURITY.uri}
    assert all(uri.startswith("https://") for uri in uris(addresses()))


def test_a_machine_without_apt_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert addresses() == Addresses(suites=addresses().suites, proxies={}, expires=True)
    assert uris(addresses()) == {ARCHIVE.uri, SECURITY.uri}


def test_settings_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"deb http://mirror.example.org/debian {suite} main\n" for suite in ("bookworm", "bookworm-security")]
    configure(tmp_path, monkeypatch, "".join(lines))
    suites = addresses(AJUSTE_MIRROR="https://other.example.org/debian/").suites
    assert suites["bookworm"] == suites["sid"] == "https://other.example.org/debian"
    assert suites["bookworm-security"] == "http://mirror.example.org/debian"
    both = addresses(AJUSTE_MIRROR="https://a.example.org/d", AJUSTE_SECURITY_MIRROR="file:///srv/security")
    assert uris(both) == {"https://a.example.org/d", "file:///srv/security"}


@pytest.mark.parametrize("text", ["deb.debian.org/debian", "ftp://example.org", "https://", "/srv/debian", "http:x"])
def test_a_setting_that_is_no_address_is_a_wrong_request(text: str) -> None:
    with pytest.raises(RequestError, match=r"AJUSTE_MIRROR = .* is not a mirror; expected an address") as caught:
        addresses(AJUSTE_MIRROR=text)
    assert "https://" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("settings", "proxies"),
    [
        ("", {}),
        (
            'Acquire::http::Proxy "http://proxy.example.org:3128";',
            {"http": "http://proxy.example.org:3128", "https": "http://proxy.example.org:3128"},
        ),
        (
            'Acquire::http::Proxy "http://proxy.example.org:3128"; Acquire::https::Proxy "DIRECT";',
            {"http": "http://proxy.example.org:3128"},
        ),
    ],
)
def test_the_proxies_of_apt_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, proxies: dict[str, str]
) -> None:
    configure(tmp_path, monkeypatch, settings=settings)
    assert addresses().proxies == proxies


@pytest.mark.parametrize(("settings", "expires"), [("", True), ('Acquire::Check-Valid-Until "false";', False)])
def test_whether_suites_expire_is_as_apt_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, expires: bool
) -> None:
    configure(tmp_path, monkeypatch, settings=settings)
    assert addresses().expires is expires
