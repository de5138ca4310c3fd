"""Variables and functions in values."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_profiles.tuned import CannotCompute, MachineFacts, Refused, expand, unknown

FACTS = MachineFacts((0, 1, 2, 3), cpuinfo="vendor_id\t: GenuineIntel\n", virtual=True)
BARE = MachineFacts((0,), cpuinfo=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${size}M", "64M"),
        (r"\${size}", "${size}"),
        ("${other}", "${other}"),
        ("${f:virt_check:guest:metal}", "guest"),
        ("${f:cpulist_invert:1-2}", "0,3"),
        ("${f:cpulist2hex:0,4}", "00000011"),
        ("${f:cpulist2hex_invert:0}", "0000000e"),
        ("${f:cpulist_unpack:0-2,^1}", "0,2"),
        ("${f:cpulist_pack:0,1,2,7}", "0-2,7"),
        ("${f:cpulist_online:2-9}", "2,3"),
        ("${f:hex2cpulist:0x5}", "0,2"),
        ("${f:kb2s:8}", "16"),
        ("${f:s2kb:8}", "4"),
        ("${f:strip: a }", "a"),
        ("${f:regex_search_ternary:abc:b:yes:no}", "yes"),
        ("${f:strip:a\\:b}", "a:b"),
        ("${f:strip:${f:kb2s:${f:s2kb:${size}}}}!", "64!"),
        ("${f:cpuinfo_check:Intel:blue:AMD:red:none}", "blue"),
        (r"\${f:kb2s:8}", "${f:kb2s:8}"),
    ],
)
def test_what_is_known_is_put_in(text: str, expected: str) -> None:
    assert expand(text, {"size": "64"}, FACTS) == expected


@pytest.mark.parametrize("text", ["${f:exec:rm:-rf:/}", "${f:calc_isolated_cores:1}", "${f:cpuinfo_check:a:b}"])
def test_what_would_run_something_or_needs_the_machine_is_not_computed(text: str) -> None:
    with pytest.raises(CannotCompute):
        expand(text, {}, BARE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${f:assertion:CPUs are given:1:2}", "CPUs are given"),
        ("${f:assertion_non_equal:CPUs are given:1:1}", "CPUs are given"),
        ("${f:kb2s:many}", "kb2s"),
        ("${f:regex_search_ternary:a:(:b:c}", "regex_search_ternary"),
        ("${f:nothing:1}", "no function 'nothing'"),
        ("${f:kb2s}", "takes 1 argument"),
        ("${f:kb2s:1", "without a closing"),
    ],
)
def test_wrong_calls_and_assertions_are_refused(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        expand(text, {}, FACTS)


def test_an_assertion_that_holds_leaves_its_call_as_it_is() -> None:
    assert expand("${f:assertion:fine:1:1}", {}, FACTS) == "${f:assertion:fine:1:1}"


def test_a_name_that_nothing_was_put_in_for_is_told() -> None:
    assert unknown("a ${b} c") == "b"
    assert unknown(r"a \${b} ${f:strip:x}") is None


@given(st.text(alphabet="${}f:\\ab1,"), st.dictionaries(st.sampled_from(["a", "b"]), st.text(alphabet="${}ab:f\\")))
def test_any_text_is_expanded_or_refused(text: str, variables: dict[str, str]) -> None:
    with contextlib.suppress(CannotCompute, Refused):
        assert isinstance(expand(text, variables, FACTS), str)
