"""Files of several sources: what belongs together, what does not, and what is never paired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.measurements import Values
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Results
from ajuste_analyse.files import read_files
from ajuste_analyse.verdicts import UNPAIRED, TableQuestion, analyse_table

HEAD = "configuration,command,block,position,seed,attempt,warm_up,status,reason,elapsed [s]\n"


def rows(configuration: str, first: float, blocks: int = 6) -> str:
    """Ajuste's CSV of a run of one command, without its head."""
    design = (f"{configuration},x,{block},0,{block},0,no,ok,,{first + block / 100}\n" for block in range(blocks))
    return "".join(design)


def hyperfine(*commands: tuple[str, float]) -> str:
    results = [{"command": name, "times": [first + place / 100 for place in range(5)]} for name, first in commands]
    return json.dumps({"results": results})


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes files, named with their folders."""
    monkeypatch.chdir(tmp_path)

    def put(**files: str) -> None:
        for name, text in files.items():
            path = Path(name.replace("__", "/").replace("_json", ".json").replace("_csv", ".csv"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return put


def analysed(*files: str, names: tuple[str, ...] = ()) -> Results:
    return analyse_table(read_files([Path(file) for file in files], names), TableQuestion())


def test_two_runs_in_two_files_are_not_paired(at: Any) -> None:
    at(before_csv=HEAD + rows("old", 1.0), after_csv=HEAD + rows("new", 1.1))
    analysis = analysed("before.csv", "after.csv")
    elsewhere = ELSEWHERE.of(analysis)
    assert elsewhere is not None
    assert (elsewhere.paired, analysis.blocks) == ("none", 0)
    assert UNPAIRED in analysis.notes


def test_two_runs_in_one_file_are_not_paired(at: Any) -> None:
    at(both_csv=HEAD + rows("old", 1.0) + rows("new", 1.1))
    analysis = analysed("both.csv")
    elsewhere = ELSEWHERE.of(analysis)
    assert elsewhere is not None
    assert (elsewhere.paired, analysis.blocks) == ("none", 0)
    assert UNPAIRED in analysis.notes


def test_one_command_in_two_files_is_two_configurations(at: Any) -> None:
    at(before_csv=HEAD + rows("true", 1.0), after_csv=HEAD + rows("true", 1.1))
    assert read_files([Path("before.csv"), Path("after.csv")]).configurations == ("before: true", "after: true")
    at(a_json=hyperfine(("one", 1.0), ("two", 2.0)), b_json=hyperfine(("one", 1.1), ("three", 2.0)))
    table = read_files([Path("a.json"), Path("b.json")])
    assert table.configurations == ("a: one", "two", "b: one", "three")


def test_a_directory_or_a_pattern_is_a_group_of_files(at: Any) -> None:
    for place in range(3):
        at(**{f"before__{place}_json": hyperfine(("job", 1.0)), f"after__{place}_json": hyperfine(("job", 1.1))})
    folders = read_files([Path("before/"), Path("after/")])
    patterns = read_files([Path("before/*.json"), Path("after/*.json")])
    assert folders == patterns
    assert folders.configurations == ("before", "after")
    sample = folders.samples["before", "time"]
    assert isinstance(sample, Values)
    assert len(sample.values) == 15


def test_files_of_one_name_are_a_group_too(at: Any) -> None:
    at(a_csv=HEAD + rows("true", 1.0), b_csv=HEAD + rows("true", 1.1))
    table = read_files([Path("a.csv"), Path("b.csv")], ["both", "both"])
    assert table.configurations == ("true",)
    sample = table.samples["true", "elapsed"]
    assert isinstance(sample, Values)
    assert len(set(sample.blocks)) == 12, "those of two runs are no common blocks"


def test_ajustes_own_json_is_read(at: Any) -> None:
    point = {"position": 0, "seed": 1, "status": "ok"}
    trials = [
        {**point, "configuration": name, "block": block, "metrics": {"elapsed": first + block / 100}}
        for block in range(6)
        for name, first in (("old", 1.0), ("new", 1.1))
    ]
    trials.append({**trials[0], "warm_up": True})
    metric = {"name": "elapsed", "title": "Elapsed time", "unit": "s", "direction": "lower"}
    document = {"schema_version": 1, "run": "r", "digest": "d", "metrics": [metric], "trials": trials}
    at(run_json=json.dumps(document | {"tally": {"trials": 20}}))
    analysis = analysed("run.json")
    assert [(verdict.configuration, verdict.verdict, verdict.blocks) for verdict in analysis.verdicts] == [
        ("new", "worsens", 6)
    ]
    assert "run.json: left out, because Ajuste marked them: warm-up trials (1)." in analysis.notes
    assert "run.json has some trials of very many only: 7 are not in it." in analysis.notes
    slots = [{"slot": {**trial, "metrics": None}, "attempt": 0, **trial} for trial in trials]
    at(trials_json=json.dumps(slots))
    assert analysed("trials.json").verdicts[0].estimate == analysis.verdicts[0].estimate


def test_ajustes_own_json_names_its_baseline_and_the_metrics_that_decide(at: Any) -> None:
    point = {"position": 0, "seed": 1, "status": "ok"}
    trials = [
        {**point, "configuration": name, "block": block, "metrics": {"elapsed": first + block / 100, "faults": 1.0}}
        for block in range(6)
        for name, first in (("new", 1.1), ("old", 1.0))
    ]
    metrics = [{"name": name, "title": name, "unit": "s", "direction": "lower"} for name in ("faults", "elapsed")]
    verdicts = [{"metric": "faults", "deciding": False}, {"metric": "elapsed", "deciding": True}]
    configurations = [{"name": "old", "baseline": True}, {"name": "new"}]
    document = {"schema_version": 1, "run": "r", "digest": "d", "metrics": metrics, "trials": trials}
    at(run_json=json.dumps(document | {"configurations": configurations, "verdicts": verdicts}))
    deciding = [verdict for verdict in analysed("run.json").verdicts if verdict.deciding]
    assert [(verdict.configuration, verdict.metric, verdict.verdict) for verdict in deciding] == [
        ("new", "elapsed", "worsens")
    ]


def test_an_export_has_no_values(at: Any) -> None:
    at(export_json=json.dumps({"format": "shell", "configuration": "a", "evidence": ["b"], "settings": []}))
    with pytest.raises(RequestError, match="it has no measured values") as refused:
        read_files([Path("export.json")])
    assert refused.value.hint == "use ajuste report RUN --json"


@pytest.mark.parametrize("broken", [{"metrics": [{"title": 3}]}, {"metrics": 3}, {"trials": [3]}, {"tally": 3}])
def test_a_document_that_is_not_as_ajuste_writes_it_is_an_error(at: Any, broken: dict[str, Any]) -> None:
    at(run_json=json.dumps({"schema_version": 1, "run": "r", "digest": "d", "metrics": [], "trials": []} | broken))
    with pytest.raises(RequestError, match=r"run\.json"):
        read_files([Path("run.json")])
