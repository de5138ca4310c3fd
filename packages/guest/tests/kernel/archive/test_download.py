"""Files from a mirror that may break off, redirect, or send something else."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loopback import Server, self_signed, serving

from ajuste.model.wording import Ongoing
from ajuste_guest.kernel.archive.download import (
    Differs,
    Downloader,
    DownloadError,
    DownloadProgress,
    Gone,
    ListedFile,
    UnknownIssuer,
    Unreachable,
)

CONTENT = bytes(range(256)) * 4000
LISTED = ListedFile(len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(CONTENT)
    (root / "little").write_bytes(CONTENT[:900])
    with serving(root) as server:
        yield server


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "saved"


def save(url: str, target: Path) -> bytes:
    Downloader({}).save(url, target, LISTED)
    return target.read_bytes()


def test_a_file_as_listed_is_saved(mirror: Server, target: Path) -> None:
    assert save(f"{mirror.url}/file", target) == CONTENT


def test_what_broke_off_is_resumed(mirror: Server, target: Path) -> None:
    mirror.breaks["/file"] = [300_000, 100_000]
    assert save(f"{mirror.url}/file", target) == CONTENT
    assert [wanted for _, wanted in mirror.requests] == ["", "bytes=300000-", "bytes=400000-"]


def test_a_mirror_that_gives_no_parts_is_read_from_the_beginning(mirror: Server, target: Path) -> None:
    mirror.ranges = False
    mirror.breaks["/file"] = [300_000]
    assert save(f"{mirror.url}/file", target) == CONTENT


def test_a_mirror_that_breaks_off_again_and_again_leaves_nothing(mirror: Server, target: Path) -> None:
    mirror.breaks["/file"] = [1000] * 50
    with pytest.raises(Unreachable, match=f"{mirror.url}/file: the mirror broke off after 3000 bytes"):
        save(f"{mirror.url}/file", target)
    assert not target.exists()
    assert len(mirror.requests) == 3


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (CONTENT[:-1], f"has {len(CONTENT) - 1} bytes; expected {len(CONTENT)}"),
        (CONTENT + b"more", f"has {len(CONTENT) + 1} or more bytes; expected {len(CONTENT)}"),
        (b"x" + CONTENT[1:], "its SHA-256 differs"),
        (b"", f"has 0 bytes; expected {len(CONTENT)}"),
    ],
)
def test_another_file_than_listed_is_not_kept(mirror: Server, target: Path, sent: bytes, complaint: str) -> None:
    (mirror.root / "file").write_bytes(sent)
    with pytest.raises(Differs, match=complaint):
        save(f"{mirror.url}/file", target)
    assert not target.exists()


def test_a_file_that_differs_after_it_was_resumed_is_not_kept(mirror: Server, target: Path) -> None:
    (mirror.root / "file").write_bytes(CONTENT[:-1] + b"x")
    mirror.breaks["/file"] = [300_000]
    with pytest.raises(Differs, match="its SHA-256 differs"):
        save(f"{mirror.url}/file", target)


def test_a_whole_file_has_a_limit(mirror: Server) -> None:
    assert Downloader({}).read(f"{mirror.url}/file", len(CONTENT)) == CONTENT
    with pytest.raises(Differs, match="has more than 1000 bytes"):
        Downloader({}).read(f"{mirror.url}/file", 1000)


def test_a_mirror_that_drips_is_left(mirror: Server) -> None:
    moments = itertools.count(0.0, 600.0)
    with pytest.raises(Unreachable, match="the mirror gave 900 bytes in 600 s"):
        Downloader({}, lambda: next(moments)).read(f"{mirror.url}/little", 1000)


def test_a_whole_file_is_resumed_too(mirror: Server) -> None:
    mirror.breaks["/file"] = [300_000]
    mirror.ranges = False
    assert Downloader({}).read(f"{mirror.url}/file", len(CONTENT)) == CONTENT


@pytest.mark.parametrize(("status", "kind"), [(404, Gone), (410, Gone), (403, DownloadError), (500, DownloadError)])
def test_what_the_mirror_answers_is_told(mirror: Server, target: Path, status: int, kind: type[DownloadError]) -> None:
    mirror.statuses["/file"] = status
    with pytest.raises(DownloadError, match=f"{mirror.url}/file: the mirror answers {status} ") as caught:
        save(f"{mirror.url}/file", target)
    assert type(caught.value) is kind


def test_a_mirror_that_is_off_is_told(mirror: Server, target: Path) -> None:
    url = mirror.url
    mirror.stop()
    with pytest.raises(Unreachable, match=f"{url}/file: Connection refused$"):
        save(f"{url}/file", target)


def test_a_redirect_is_followed(mirror: Server, target: Path) -> None:
    mirror.redirects["/moved"] = f"{mirror.url}/file"
    assert save(f"{mirror.url}/moved", target) == CONTENT


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/file"])
def test_no_redirect_leads_out_of_the_web(mirror: Server, target: Path, to: str) -> None:
    mirror.redirects["/moved"] = to
    with pytest.raises(DownloadError):
        save(f"{mirror.url}/moved", target)


def test_redirects_in_a_circle_end(mirror: Server, target: Path) -> None:
    mirror.redirects["/file"] = f"{mirror.url}/file"
    with pytest.raises(DownloadError, match="mirror answers 302"):
        save(f"{mirror.url}/file", target)


def test_a_password_is_for_the_mirror_alone_and_never_shown(mirror: Server, target: Path, tmp_path: Path) -> None:
    with serving(mirror.root) as other:
        mirror.redirects["/moved"] = f"{other.url}/file"
        assert save(mirror.url.replace("//", "//me:secret@") + "/moved", target) == CONTENT
        assert mirror.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"
        assert "Authorization" not in other.headers[0]
    with pytest.raises(Gone) as caught:
        save(mirror.url.replace("//", "//me:secret@") + "/gone", tmp_path / "other")
    assert "secret" not in str(caught.value)


def test_a_mirror_on_this_disk(mirror: Server, target: Path) -> None:
    assert save((mirror.root / "file").as_uri(), target) == CONTENT
    with pytest.raises(Gone):
        Downloader({}).read((mirror.root / "gone").as_uri(), 10)


def test_a_proxy_is_asked(mirror: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy")
    mirror.redirects["http://mirror.example.org/debian/file"] = "http://mirror.example.org/file"
    with pytest.raises(Gone, match=r"http://mirror.example.org/debian/file: the mirror answers 404"):
        Downloader({"http": mirror.url}).save("http://mirror.example.org/debian/file", target, LISTED)
    assert mirror.paths() == ["http://mirror.example.org/debian/file", "http://mirror.example.org/file"]


class TestHttps:
    """Mirrors over HTTPS."""

    @pytest.fixture
    def secure(self, mirror: Server, tmp_path: Path) -> Iterator[Server]:
        """A server whose certificate is in ``tmp_path / "certificate"``."""
        with serving(mirror.root, self_signed(tmp_path)) as server:
            yield server

    def test_a_mirror_whose_certificate_is_known(
        self, secure: Server, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
        assert save(f"{secure.url}/file", target) == CONTENT

    def test_one_whose_certificate_is_not_is_refused(self, secure: Server, target: Path) -> None:
        with pytest.raises(UnknownIssuer, match="certificate verify failed"):
            save(f"{secure.url}/file", target)

    def test_a_redirect_to_plain_http_is_refused(
        self, secure: Server, mirror: Server, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
        secure.redirects["/moved"] = f"{mirror.url}/file"
        with pytest.raises(DownloadError, match=f"redirects to {mirror.url}/file, which is not HTTPS"):
            save(f"{secure.url}/moved", target)
        assert mirror.requests == []


def test_a_transfer_says_how_much_has_come_and_how_long_the_rest_takes() -> None:
    messages: list[str] = []
    now = 0.0
    transfer = DownloadProgress("fetching lists", 40_000_000, messages.append, is_read=True, clock=lambda: now)
    transfer.arrived(1_000_000)
    assert messages == [], "too soon to say anything"
    now = 1.0
    transfer.arrived(9_000_000)
    now = 6.0
    transfer.read(10_000_000)
    now = 6.1
    transfer.arrived(1_000_000)
    assert messages == [
        "fetching lists: 10.0 of 40.0 MB",
        "fetching lists: 10.0 of 40.0 MB · about 18 s left",
    ]
    assert all(isinstance(text, Ongoing) for text in messages)
