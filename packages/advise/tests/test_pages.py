"""Advice on the lab page. Truth: what a person, a viewer, and a hostile form can send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ajuste_lab")

from starlette.testclient import TestClient

from ajuste.machine.home import Home
from ajuste_lab.access import viewer_token
from ajuste_lab.application import application
from ajuste_lab.jobs import Jobs
from ajuste_lab.service import LabService

TOKEN = "t" * 32
OWN = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}
ASKED = {"workload": "linpack reps_to=2", "kernel": "debian:6.12", "guest_cpus": "2", "minutes": "3"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AJUSTE_STORE", raising=False)
    return Home(tmp_path / "home" / "data", tmp_path / "home" / "cache", tmp_path / "home" / "state")


@pytest.fixture
def stranger(home: Home) -> Iterator[TestClient]:
    # Jobs do not run Ajuste here: each prints the words that it was given.
    service = LabService(home)
    service.jobs = Jobs(home, ("sh", "-c", 'printf "%s\\n" "1/4 look" "$@" >&2', "ajuste"))
    with TestClient(
        application(service, token=TOKEN, port=8642), base_url="http://127.0.0.1:8642", follow_redirects=False
    ) as client:
        yield client


@pytest.fixture
def person(stranger: TestClient) -> TestClient:
    assert stranger.get(f"/?token={TOKEN}").status_code in (200, 303)
    return stranger


def test_only_who_has_the_token_asks(stranger: TestClient) -> None:
    for token in ("", "wrong", viewer_token(TOKEN)):
        stranger.cookies.clear()
        if token:
            stranger.get(f"/?token={token}")
        assert stranger.get("/advise").status_code == 403
        assert stranger.post("/advise", data=ASKED, headers=OWN).status_code == 403


def test_the_form_becomes_the_words_of_the_command_in_a_guest(person: TestClient) -> None:
    assert 'href="/advise"' in person.get("/advise").text
    started = person.post("/advise", data=ASKED, headers=OWN)
    assert started.status_code == 303
    page = started.headers["location"]
    text = person.get(page).text
    while "Measuring" in text:
        text = person.get(page).text
    assert "--kernel=debian:6.12" in text
    assert "--max-time=3m" in text
    assert "linpack reps_to=2" in person.get("/advise").text


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"workload": ""}, "expected a command"),
        ({"workload": "true -- false"}, "expected a command"),
        ({"workload": "'"}, "No closing quotation"),
        ({"minutes": "0"}, "expected 1 to 60"),
        ({"minutes": "9999"}, "expected 1 to 60"),
        ({"minutes": "x"}, "expected 1 to 60"),
    ],
)
def test_what_is_wrong_is_named_at_the_form_and_nothing_starts(
    person: TestClient, wrong: dict[str, str], expected: str
) -> None:
    refused = person.post("/advise", data=ASKED | wrong, headers=OWN)
    assert (refused.status_code, expected in refused.text) == (400, True)
    assert ">Answers</h2>" not in refused.text


def test_a_form_names_no_place_but_a_guest_and_no_other_option(person: TestClient, home: Home) -> None:
    hostile = {"kernel": "", "background": "--as-root", "metric": "<b>x</b>", "workload": "true --accept-risk"}
    started = person.post("/advise", data=ASKED | hostile, headers=OWN)
    (job,) = Jobs(home).all()
    while job.alive:
        pass
    words = (job.directory / "said").read_text().splitlines()
    place = words.index("--")
    assert "--vm" in words[:place]
    assert "--background=--as-root" in words[:place]
    assert words[place + 1 :] == ["true", "--accept-risk"]
    assert "<b>x</b>" not in person.get(started.headers["location"]).text
