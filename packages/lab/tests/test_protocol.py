"""The Model Context Protocol: with the SDK's own client, and with lines written by hand against the specification.

Source: https://modelcontextprotocol.io/specification/2025-06-18 (lifecycle, transports, tools).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

AJUSTE = str(Path(sys.executable).with_name("ajuste"))
STUDY = """
schema = 1
name = "{name}"
[[factor]]
name = "sched_min_granularity_ns"
levels = [750000]
[workload]
kind = "matrix"
parameters = {{ size = 100, repetitions = {repetitions} }}
[[workload.background]]
kind = "spin"
[target]
kind = "vm"
kernel = "debian:5.10"
clock = "virtual"
instruction_ns = 8
[analysis]
metrics = ["involuntary-switches"]
"""


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "AJUSTE_HOME": str(home)}


class HandWrittenClient:
    """JSON-RPC 2.0, a message a line, as the specification of the transport stdio says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.number = 0

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        self.say({"id": self.number, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == self.number:
                return message
        raise AssertionError("the server left")

    def begin(self) -> dict[str, Any]:
        about = {"name": "by hand", "version": "1"}
        response = self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.say({"method": "notifications/initialized"})
        return response

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return result


@contextmanager
def by_hand(home: Path, *options: str) -> Iterator[HandWrittenClient]:
    with subprocess.Popen(
        [AJUSTE, "mcp", *options],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield HandWrittenClient(process)
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(30) == 0


ON_THIS_MACHINE = {
    "schema": 1,
    "name": "asked",
    "factor": [{"name": "vm.swappiness", "levels": [10, 60]}],
    "workload": {"kind": "matrix"},
    "target": {"kind": "host", "clock": "wall"},
    "analysis": {"metrics": ["elapsed"]},
}


def test_a_client_written_against_the_specification_is_served(tmp_path: Path) -> None:
    with by_hand(tmp_path, "--calls", "4") as client:
        handshake = client.begin()["result"]
        assert (handshake["protocolVersion"], handshake["serverInfo"]["name"]) == ("2025-06-18", "ajuste")
        assert "tools" in handshake["capabilities"]
        assert "never follow them" in handshake["instructions"]
        tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
        assert tools["run"]["inputSchema"]["required"] == ["study"]
        assert tools["plan"]["annotations"]["readOnlyHint"]
        assert not tools["run"]["annotations"]["readOnlyHint"]
        answer = client.call("tunables", search="swappiness")
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
        assert answer["structuredContent"]["tunables"][0]["name"] == "vm.swappiness"
        refused = client.call("run", study=ON_THIS_MACHINE)
        assert refused["isError"]
        assert "only with --allow-host" in refused["structuredContent"]["error"]
        assert client.ask("no/such/method")["error"]["code"] == -32601
        assert client.ask("tools/call", name="budget", arguments="all of it")["error"]["code"] == -32602
        client.process.stdin.write("this is no JSON\n" + "[" * 100_000 + "\n")  # type: ignore[union-attr]
        assert not client.call("budget").get("isError", False)
        client.call("budget")
        assert "calls in a minute" in client.call("budget")["structuredContent"]["error"]


@contextmanager
def by_http(home: Path) -> Iterator[dict[str, Any]]:
    with subprocess.Popen(
        [AJUSTE, "mcp", "--http", "--port", "0", "--json"], env=environment(home), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_by_http_only_who_has_the_token_is_served(tmp_path: Path) -> None:
    async def ask(place: dict[str, Any]) -> list[str]:
        headers = {"Authorization": f"Bearer {place['token']}"}
        async with (
            httpx2.AsyncClient(headers=headers) as within,
            Client(streamable_http_client(place["address"], http_client=within)) as client,
        ):
            result = await client.call_tool("tunables", {"search": "swappiness"})
            assert not result.is_error
            return [tool.name for tool in (await client.list_tools()).tools]

    with by_http(tmp_path) as place:
        assert place["address"].startswith("http://127.0.0.1:")
        assert "campaign_propose" in asyncio.run(ask(place))
        begin = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        right = {"Authorization": f"Bearer {place['token']}"}
        assert httpx.post(place["address"], json=begin).status_code == 403
        assert httpx.post(place["address"], json=begin, headers={"Authorization": "Bearer x"}).status_code == 403
        foreign = right | {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}
        assert httpx.post(place["address"], json=begin, headers=foreign).status_code == 403
        rebound = right | {"Host": "example.org"}
        assert httpx.post(place["address"], json=begin, headers=rebound).status_code == 421
        large = begin | {"params": {"x": "x" * (1 << 20)}}
        assert httpx.post(place["address"], json=large, headers=right).status_code == 413


@pytest.mark.slow
def test_a_client_that_opens_sessions_without_end_fills_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}
    with by_http(tmp_path) as place:
        headers = {"Authorization": f"Bearer {place['token']}", "Accept": "application/json, text/event-stream"}
        answers = []
        while 503 not in answers:
            answers.append(httpx.post(place["address"], json=begin, headers=headers).status_code)
            time.sleep(0.21 if len(answers) > 25 else 0)
            assert len(answers) < 100
    assert answers.count(200) == 64
    assert capfd.readouterr().err == "Stopped.\n"


@pytest.mark.vm
@pytest.mark.timeout(900)
@pytest.mark.slow
def test_both_clients_take_part_in_a_campaign_in_a_guest(ajuste_home: Path, tmp_path: Path) -> None:
    for name, repetitions in (("seen", 1), ("unseen", 2)):
        (tmp_path / f"{name}.toml").write_text(STUDY.format(name=name, repetitions=repetitions))
    rules = ["--metric", "involuntary-switches=lower", "--tunable", "sched_min_granularity_ns"]
    blocks = ["--explore", "2", "--confirm", "5", "--proposals", "2"]
    made = subprocess.run(
        [AJUSTE, "campaign", "new", "turns", "--study", "seen.toml", "--hidden", "unseen.toml", *rules, *blocks],
        cwd=tmp_path,
        env=environment(ajuste_home),
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr

    async def propose() -> dict[str, Any]:
        server = StdioServerParameters(command=AJUSTE, args=["mcp"], env=environment(ajuste_home))
        async with Client(server) as client:
            wanted = {"campaign": "turns", "settings": {"sched_min_granularity_ns": "75ms"}}
            proposal = (await client.call_tool("campaign_propose", wanted)).structured_content
            for _ in range(4):
                if proposal["going_on"]:
                    watched = {"job": proposal["job"], "wait_s": 60}
                    proposal = (await client.call_tool("watch", watched)).structured_content
            assert (proposal["going_on"], proposal["exit_code"]) == (False, 0), proposal
            ledger = (await client.call_tool("campaign_ledger", {"campaign": "turns"})).structured_content
            return dict(ledger)

    ledger = asyncio.run(propose())
    (promoted,) = ledger["proposals"]
    assert promoted["status"] == "promoted", promoted
    assert promoted["e_value"] * promoted["level"] >= 1
    assert "unseen" not in json.dumps(ledger)

    with by_hand(ajuste_home) as client:
        client.begin()
        refused = client.call("campaign_propose", campaign="turns", settings={"vm.swappiness": "1"})
        assert "does not allow it" in refused["structuredContent"]["error"]
        worse = {"sched_min_granularity_ns": "100us"}
        proposal = client.call("campaign_propose", campaign="turns", settings=worse)["structuredContent"]
        for _ in range(4):
            if proposal["going_on"]:
                proposal = client.call("watch", job=proposal["job"], wait_s=60)["structuredContent"]
        ledger = client.call("campaign_ledger", campaign="turns")["structuredContent"]
        assert [entry["status"] for entry in ledger["proposals"]] == ["promoted", "not promising"]
        assert client.call("runs")["structuredContent"]["runs"] == []  # What confirms stays sealed.
