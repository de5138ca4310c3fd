from __future__ import annotations

from ajuste.target.agreement import MOST_RUNS, until_two_agree


def runs(*results: str) -> tuple[str, bool, int]:
    """The result, whether two agreed, and how many runs were left."""
    rest = list(results)
    result, agreed = until_two_agree(lambda: rest.pop(0), lambda text: None if text == "failed" else text)
    return result, agreed, len(rest)


def test_two_runs_are_enough_where_they_agree() -> None:
    assert runs("a", "a", "b") == ("a", True, 1)


def test_a_disturbed_run_is_left_out() -> None:
    assert runs("x", "a", "a") == ("a", True, 0)
    assert runs("a", "x", "y", "a", "a") == ("a", True, 1)


def test_a_failure_is_not_repeated() -> None:
    assert runs("failed", "a") == ("failed", True, 1)
    assert runs("a", "failed", "a") == ("failed", True, 1)


def test_it_ends_without_agreement() -> None:
    results = [str(number) for number in range(MOST_RUNS + 3)]
    assert runs(*results) == (results[MOST_RUNS - 1], False, 3)
