"""From where this machine gets its packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from ajuste.kernel.apt import machine_mirrors, origins

from ajuste.kernel.source import kernel_sources

DEBIAN = kernel_sources()["debian"]


def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: str, format_: str = "list") -> None:
    """An apt that has ``sources`` and never fetched a list."""
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / f"own.{format_}").write_text(sources)
    (tmp_path / "lists").mkdir()
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\nDir::State::lists "{tmp_path}/lists";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))


@pytest.mark.parametrize(
    ("format_", "sources"),
    [
        ("list", "deb http://mirror.example.org/debian/ bookworm main contrib\n"),
        ("sources", "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: bookworm\nComponents: main\n"),
    ],
)
def test_the_machines_mirror_serves_all_suites_of_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, sources: str
) -> None:
    configure(tmp_path, monkeypatch, sources, format_)
    found = {origin.suite: origin.uri for origin in origins(DEBIAN, machine_mirrors(DEBIAN))}
    assert found["bookworm"] == found["bullseye"] == found["sid"] == "http://mirror.example.org/debian"
    # It says nothing of the security archive.
    assert found["bookworm-security"] == DEBIAN.repositories[1].uri


def test_archives_of_others_with_the_same_suite_names_are_no_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, "deb http://packages.example.org/tools bookworm main\n")
    assert machine_mirrors(DEBIAN) == {}


def test_a_machine_without_sources_uses_the_catalogues_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, "")
    assert {o.uri for o in origins(DEBIAN, machine_mirrors(DEBIAN))} == {r.uri for r in DEBIAN.repositories}
