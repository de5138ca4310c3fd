"""The way from a search to a profile in force: `ajuste tune`, `ajuste export --format tuned`, `tuned-adm profile`."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from namespace import in_namespace, needs_root
from tuned_daemon import serving

STUDY = """\
schema = 1
name = "ending"
question = "How long is a connection to wait for its end?"

[[factor]]
name = "net.ipv4.tcp_fin_timeout"
levels = [60, 50, 40, 30, 20, 10]

[workload]
command = ["cat", "/proc/sys/net/ipv4/tcp_fin_timeout"]

[[workload.metric]]
name = "cost"
pattern = '^(\\d+)$'
unit = "points"
direction = "lower"

[target]
kind = "host"

[analysis]
metrics = ["cost"]
"""
PROGRAMS = Path(sys.executable).parent


@needs_root
@pytest.mark.timeout(240)
def test_what_a_search_has_found_is_put_in_force_by_tuned_and_taken_back(tmp_path: Path) -> None:
    (tmp_path / "ending.toml").write_text(STUDY)
    output = in_namespace(
        f"""
        export AJUSTE_HOME="$PWD/home" PATH={shlex.quote(str(PROGRAMS))}:"$PATH"; mkdir /run/lock
        value() {{ echo "value $(cat /proc/sys/net/ipv4/tcp_fin_timeout)"; }}
        value
        ajuste tune ending.toml --trials 30 --sampler random --quiet; value
        ajuste export ending --format tuned --output . >/dev/null
        {serving("ajuste-*")}
        tuned-adm profile $(basename ajuste-*); tuned-adm active; tuned-adm verify; value
        tuned-adm off; value
        """,
        tmp_path,
        limit_s=200,
    )
    assert "Current active profile: ajuste-ending" in output
    assert "succeeded" in output
    before, after_the_search, in_force, taken_back = map(int, re.findall(r"^value (\d+)$", output, re.MULTILINE))
    assert before == after_the_search == taken_back == 60
    assert in_force == 10, "of a cost that is the value itself the least is the best"
    (profile,) = tmp_path.glob("ajuste-*/tuned.conf")
    assert "net.ipv4.tcp_fin_timeout=10" in profile.read_text().replace(" = ", "=")
