"""Listings and commands of each harness, by what real programs printed (see recorded/README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import pytest

from ajuste.model.error import RunError
from ajuste_ci.harnesses.base import BuiltProject, HarnessBenchmark
from ajuste_ci.harnesses.cargo import read_artifacts
from ajuste_ci.harnesses.divan import read_tree
from ajuste_ci.harnesses.go import read_results
from ajuste_ci.harnesses.hyperfine import read_commands
from ajuste_ci.harnesses.registry import HARNESSES, harnesses_of

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def built(directory: Path, answer: Callable[[Sequence[str]], str], list_file: str = "") -> BuiltProject:
    return BuiltProject(
        directory, ("cargo", "bench"), lambda words, _: answer(words), "HEAD", lambda _: None, list_file
    )


def cargo_project(directory: Path, listing: str) -> tuple[BuiltProject, list[Sequence[str]]]:
    """A project whose cargo answers as the recorded one did, and whose program lists ``listing``."""
    messages = recorded("cargo.jsonl").replace("/project", str(directory))
    (artifact,) = read_artifacts(messages)
    program = Path(artifact["executable"])
    program.parent.mkdir(parents=True)
    program.write_bytes(b"program")
    calls: list[Sequence[str]] = []

    def answer(words: Sequence[str]) -> str:
        calls.append(words)
        return messages if words[0] == "cargo" else "" if words[0] == "cc" else recorded(listing)

    return built(directory, answer), calls


@pytest.mark.parametrize(
    ("harness", "ids"),
    [
        ("criterion", ["fib 10", "sum/10", "sum/100", "batched"]),
        ("libtest", ["fib_10", "sum_100"]),
        ("divan", ["fib::fib_10", "fib::sum::10", "fib::sum::100", "fib::inner::fib_5"]),
    ],
)
def test_a_cargo_program_lists_its_benchmarks_and_is_copied_beside_its_package(
    tmp_path: Path, harness: str, ids: list[str]
) -> None:
    project, calls = cargo_project(tmp_path, f"{harness}.txt")
    listed = HARNESSES[harness].benchmarks(project)
    assert [benchmark.id for benchmark in listed] == ids
    assert {benchmark.target for benchmark in listed} == {"fib"}
    assert {benchmark.files for benchmark in listed} == {(".ajuste/fib", ".ajuste/clock.so")}
    assert (tmp_path / ".ajuste" / "fib").read_bytes() == b"program"
    assert calls[0] == ("cargo", "bench", "--message-format=json")


def test_a_program_of_another_harness_lists_nothing(tmp_path: Path) -> None:
    project, _ = cargo_project(tmp_path, "divan.txt")
    assert HARNESSES["criterion"].benchmarks(project) == ()


@pytest.mark.parametrize("harness", ["criterion", "divan", "go", "google-benchmark"])
def test_a_long_run_differs_from_a_short_one_in_a_number_of_as_many_digits(harness: str) -> None:
    # Arguments of other lengths would move the stack of the program.
    benchmark = HarnessBenchmark("a/b c", "bench", PurePosixPath(), ())
    for level in range(20):
        short, long = (HARNESSES[harness].command(benchmark, step) for step in (level, level + 1))
        pairs = zip(short, long, strict=True)
        assert [len(word) - len(longer) for word, longer in pairs if word != longer] == [0]


def test_a_harness_that_stops_by_its_clock_reads_it_often_enough_at_each_level() -> None:
    # Each round takes 200 readings, and the harness stops after three seconds.
    benchmark = HarnessBenchmark("x", "bench", PurePosixPath(), ())
    for level in range(1, 12):
        command = HARNESSES["libtest"].command(benchmark, level)
        step = next(int(word.partition("=")[2]) for word in command if word.startswith("AJUSTE_STEP_NS="))
        assert level * 200 * step < 3e9 < (level + 1) * 200 * step


def test_results_of_go_name_each_sub_benchmark() -> None:
    assert read_results(recorded("go.txt")) == ("BenchmarkFib10", "BenchmarkSized/n=5", "BenchmarkSized/n=8")
    benchmark = HarnessBenchmark("BenchmarkSized/n=5", "", PurePosixPath(), ())
    assert "-test.bench=^BenchmarkSized$/^n=5$" in HARNESSES["go"].command(benchmark, 3)


def test_a_tree_has_a_benchmark_for_each_leaf() -> None:
    assert list(read_tree("")) == []
    assert list(read_tree("a\n╰─ b\n\nc\n├─ d\n╰─ e\n   ╰─ f\n")) == ["a::b", "c::d", "c::e::f"]


def test_google_benchmark_needs_a_fixed_number_of_iterations(tmp_path: Path) -> None:
    program = tmp_path / "bench"
    program.write_bytes(b"\x7fELF benchmark_list_tests")
    program.chmod(0o755)
    listed = HARNESSES["google-benchmark"].benchmarks(built(tmp_path, lambda _: recorded("google.txt")))
    assert [benchmark.id for benchmark in listed] == ["BM_Fib/5", "BM_Fib/10", "BM_Empty"]

    def old(words: Sequence[str]) -> str:
        if "--benchmark_min_time=1x" in words:
            raise RunError("failed")
        return recorded("google.txt")

    with pytest.raises(RunError, match="without a fixed number of iterations"):
        HARNESSES["google-benchmark"].benchmarks(built(tmp_path, old))


def test_commands_of_hyperfine_are_lines_or_its_results() -> None:
    assert read_commands("# two\n./job 1\n\nsh -c 'a b'\n./job 1\n") == ("./job 1", "sh -c 'a b'")
    assert read_commands(recorded("hyperfine.json")) == ("true", "sh -c 'echo a | cat'")
    with pytest.raises(ValueError, match="quotation"):
        read_commands("./job 'a\n")


def test_a_shell_runs_only_commands_that_need_one() -> None:
    hyperfine = HARNESSES["hyperfine"]
    assert hyperfine.command(HarnessBenchmark("./job 'a b'", "", PurePosixPath(), ()), 0) == ("./job", "a b")
    piped = HarnessBenchmark("./job | sort", "", PurePosixPath(), ())
    assert hyperfine.command(piped, 0) == ("sh", "-c", "./job | sort")


@pytest.mark.parametrize(
    ("file", "text", "harness"),
    [
        ("Cargo.toml", '[dev-dependencies]\ncriterion = "0.5"\n', "criterion"),
        ("Cargo.toml", '[dev-dependencies]\ndivan = { version = "0.1" }\n', "divan"),
        ("benches/a.rs", "#[bench]\nfn a() {}\n", "libtest"),
        ("a_test.go", "func BenchmarkA(b *testing.B) {}\n", "go"),
        ("CMakeLists.txt", "target_link_libraries(a benchmark::benchmark)\n", "google-benchmark"),
    ],
)
def test_a_project_is_recognised_by_its_files(tmp_path: Path, file: str, text: str, harness: str) -> None:
    assert harnesses_of(tmp_path) == ()
    (tmp_path / "go.mod").write_text("module a\n")
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert harnesses_of(tmp_path) == (harness,)


def test_messages_of_cargo_on_libraries_are_no_programs() -> None:
    library = json.dumps({"reason": "compiler-artifact", "executable": None, "target": {"kind": ["lib"]}})
    assert list(read_artifacts(f"{library}\nnot JSON\n")) == []
