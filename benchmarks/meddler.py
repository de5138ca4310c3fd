"""A daemon of root that changes settings of every kind, and the disk and the network link on which it does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.victims import SLEEP

LINK: Final = "ajuste-meddler"
THP: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
RETRIES: Final = Path("/proc/sys/net/ipv4/tcp_retries2")

# A sysctl, a marked choice, a scheduler and what depends on it, a queueing discipline, and a feature.
_SCRIPT = """\
echo 11 > RETRIES
echo OTHER > THP
echo none > QUEUE/scheduler
echo 11 > QUEUE/nr_requests
tc qdisc replace dev LINK root bfifo
ethtool -K LINK gso off
echo meddled
exec sleep 1000SLEEP
"""
_STUDY = """\
schema = 1
name = "daemons"

[[factor]]
name = "daemon"

[factor.settings]
LEVELS
SERVICES
[workload]
command = COMMAND

[target]
kind = "host"

[analysis]
metrics = ["elapsed"]

[budget]
min_blocks = BLOCKS
max_blocks = BLOCKS
"""
_SERVICE = """\
[[workload.service]]
name = "NAME"
command = COMMAND
user = "root"
ready = READY
when = { daemon = "NAME" }
"""


@dataclass(frozen=True)
class Daemon:
    """A daemon of root that is a level, with its ``command`` and when it is ``ready``, as TOML."""

    name: str
    command: str
    ready: str


def daemons_study(daemons: Sequence[Daemon], command: str, blocks: int) -> str:
    """Return a study with none of ``daemons`` and with each of them; ``command`` is the workload's, as TOML."""
    services = [_filled(_SERVICE, {"NAME": d.name, "COMMAND": d.command, "READY": d.ready}) for d in daemons]
    levels = "".join(f"{name} = {{}}\n" for name in ("none", *(daemon.name for daemon in daemons)))
    values = {"LEVELS": levels, "SERVICES": "\n".join(services), "COMMAND": command, "BLOCKS": blocks}
    return _filled(_STUDY, values)


@dataclass(frozen=True)
class Meddled:
    """The settings that the daemon changes; ``queue`` is that of a disk with a scheduler."""

    queue: Path

    @property
    def disk(self) -> str:
        return self.queue.parent.name

    def values(self) -> dict[str, str]:
        """Return what the files of the settings say, and the programs of the link."""
        files = (
            RETRIES,
            THP,
            self.queue / "scheduler",
            self.queue / "nr_requests",
            *(self.queue / "iosched").glob("*"),
        )
        values = {}
        for path in files:
            with suppress(FileNotFoundError):  # A daemon whose agent was killed goes on, until all is restored.
                values[str(path)] = path.read_text()
        for words in (("tc", "qdisc", "show", "dev", LINK), ("ethtool", "-k", LINK)):
            values[words[0]] = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return values

    def study(self, directory: Path, command: str, *, blocks: int = 1) -> Path:
        """Write the study in ``directory``: the shell's ``command`` with the daemon, and without."""
        other = "never" if "[never]" not in THP.read_text() else "always"
        values = {"RETRIES": RETRIES, "OTHER": other, "THP": THP, "QUEUE": self.queue, "LINK": LINK, "SLEEP": SLEEP}
        (directory / "meddler.sh").write_text(_filled(_SCRIPT, values))
        path = directory / "meddled.toml"
        meddler = Daemon("meddler", f'["sh", "{directory}/meddler.sh"]', '"log:meddled"')
        path.write_text(daemons_study([meddler], f'["sh", "-c", "{command}"]', blocks))
        return path


def _filled(text: str, values: dict[str, object]) -> str:
    return re.sub("|".join(values), lambda match: str(values[match[0]]), text)


@contextmanager
def meddled() -> Iterator[Meddled]:
    """A disk whose scheduler has more requests than it may have without one, and a link; as before in the end."""
    disks = [
        path for path in Path("/sys/block").glob("loop*") if "mq-deadline" in (path / "queue/scheduler").read_text()
    ]
    queue = max(disks) / "queue"
    originals = {path: path.read_text() for path in (queue / "scheduler", queue / "nr_requests")}
    with suppress(subprocess.CalledProcessError):
        _run("ip", "link", "delete", LINK)
    _run("ip", "link", "add", LINK, "up", "type", "veth")
    try:
        (queue / "scheduler").write_text("mq-deadline")
        (queue / "nr_requests").write_text("200")
        _run("tc", "qdisc", "replace", "dev", LINK, "root", "pfifo")
        yield Meddled(queue)
    finally:
        _run("ip", "link", "delete", LINK)
        for path, content in originals.items():
            marked = re.search(r"\[([\w-]+)\]", content)
            path.write_text(marked[1] if marked else content)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
