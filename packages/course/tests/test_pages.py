"""Sheets on the lab page. Truth: what a browser of another site, a viewer, or a hostile sheet can send."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from packages.course.tests.cheating import LIGHT
from starlette.testclient import TestClient

from ajuste.machine.home import Home
from ajuste_course.hand_in import open_hand_in
from ajuste_course.pages import ROUTES
from ajuste_course.sheet import read_sheet, sheet_files
from ajuste_course.workbook import Shelf
from ajuste_lab.access import viewer_token
from ajuste_lab.application import application
from ajuste_lab.service import LabService

TOKEN = "t" * 32
HOSTILE = '<script>document.title = "owned"</script><img src=x onerror=alert(1)>'
OWN = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}
SHEET = "/course/light?student=1001"
PREDICTED = {"name": "switches", "direction": "falls", "size": "50%", "why": "longer turns mean fewer"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AJUSTE_STORE", raising=False)
    files = {**sheet_files(), "light": LIGHT}
    monkeypatch.setattr("ajuste_course.pages.sheet_files", lambda: files)
    return Home(tmp_path / "home" / "data", tmp_path / "home" / "cache", tmp_path / "home" / "state")


@pytest.fixture
def stranger(home: Home) -> Iterator[TestClient]:
    lab = application(LabService(home), token=TOKEN, port=8642)
    with TestClient(lab, base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        yield client


@pytest.fixture
def person(stranger: TestClient) -> TestClient:
    assert stranger.get(f"/?token={TOKEN}").status_code in (200, 303)
    return stranger


def test_every_page_needs_the_token_and_is_not_for_viewers(stranger: TestClient) -> None:
    for token in ("", "wrong", viewer_token(TOKEN)):
        stranger.cookies.clear()
        if token:
            stranger.get(f"/?token={token}")
        for route in ROUTES:
            path = route.path.replace("{sheet}", "light").replace("{step}", "data")
            if route.methods and "POST" in route.methods:
                answer = stranger.post(f"{path}?student=1001", data=PREDICTED, headers=OWN)
            else:
                answer = stranger.get(f"{path}?student=1001")
            assert answer.status_code in (401, 403), (token, path)


def test_a_form_of_another_site_does_nothing(person: TestClient, home: Home) -> None:
    assert person.get(SHEET).status_code == 200
    foreign = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert person.post("/course/light/predict?student=1001", data=PREDICTED, headers=foreign).status_code == 403
    assert Shelf(home).find(read_sheet(LIGHT), "1001").predictions == {}


def test_the_list_has_every_sheet(person: TestClient) -> None:
    text = person.get("/course").text
    assert all(f"/course/{name}" in text for name in sheet_files())


def test_a_sheet_is_worked_through_by_forms(person: TestClient, home: Home, tmp_path: Path) -> None:
    assert person.get(SHEET).status_code == 200
    answer = person.post("/course/light/predict?student=1001", data=PREDICTED, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/course/light?student=1001&language=en#step-switches",
    )
    assert person.post(
        "/course/light/answer?student=1001", data={"name": "mean", "value": "5"}, headers=OWN
    ).is_redirect
    workbook = Shelf(home).find(read_sheet(LIGHT), "1001")
    assert workbook.predictions["switches"].ratio == 0.5
    assert workbook.answers["mean"].value == 5
    file = person.get("/course/light/hand-in?student=1001")
    assert 'filename="light-1001.ajuste"' in file.headers["content-disposition"]
    (tmp_path / "light-1001.ajuste").write_bytes(file.content)
    with open_hand_in(tmp_path / "light-1001.ajuste") as opened:
        assert opened.about.workbook == workbook


def test_a_form_with_a_mistake_says_it_beside_the_step_and_changes_nothing(person: TestClient, home: Home) -> None:
    person.get(SHEET)
    for path, form in (
        ("predict", {**PREDICTED, "size": "a lot"}),
        ("predict", {**PREDICTED, "direction": "up"}),
        ("predict", {**PREDICTED, "why": "so"}),
        ("answer", {"name": "mean", "value": "many"}),
        ("answer", {"name": "verdict", "value": "9"}),
    ):
        answer = person.post(f"/course/light/{path}?student=1001", data=form, headers=OWN)
        assert (answer.status_code, 'role="alert"' in answer.text) == (400, True), form
    workbook = Shelf(home).find(read_sheet(LIGHT), "1001")
    assert (workbook.predictions, workbook.answers) == ({}, {})


@pytest.mark.parametrize(
    "path",
    [
        "/course/nothing?student=1",
        "/course/..%2f..%2fetc%2fpasswd?student=1",
        "/course/light",
        "/course/light?student=" + "9" * 65,
        "/course/light?student=1&language=xx",
        "/course/light/data/mean?student=1001",
        "/course/light/hand-in?student=unknown",
    ],
)
def test_what_is_not_there_is_refused(person: TestClient, path: str) -> None:
    person.get(SHEET)
    assert person.get(path).status_code in (400, 404)


def test_nothing_is_measured_before_its_prediction_and_only_what_is_a_study(person: TestClient) -> None:
    person.get(SHEET)
    for name in ("levels", "mean", "nothing"):
        answer = person.post("/course/light/measure?student=1001", data={"name": name}, headers=OWN)
        assert answer.status_code == 400


def test_made_data_are_a_file(person: TestClient) -> None:
    person.get("/course/statistics?student=1001")
    answer = person.get("/course/statistics/data/nothing?student=1001")
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 60


def test_html_in_a_sheet_and_in_answers_stays_text(
    person: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "light.toml"
    text = LIGHT.read_text()
    for before in ("A light sheet", "How a longer turn", "Your job multiplies", "It is equivalent", "Two settings"):
        assert before in text
        text = text.replace(before, HOSTILE.replace('"', "'") + before)
    file.write_text(text.replace('text = "Why?"', "text = '[x](javascript:alert(1)) Why?'"))
    monkeypatch.setattr("ajuste_course.pages.sheet_files", lambda: {"light": file})
    person.get(SHEET)
    person.post("/course/light/answer?student=1001", data={"name": "why", "value": HOSTILE}, headers=OWN)
    person.post("/course/light/predict?student=1001", data={**PREDICTED, "why": HOSTILE + " a b c"}, headers=OWN)
    for page in (person.get(SHEET).text, person.get("/course").text):
        assert "<img src=x" not in page
        assert "<script>document.title" not in page
        assert 'href="javascript:' not in page
    assert person.get(SHEET).text.count("&lt;img src=x") >= 6
