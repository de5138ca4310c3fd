"""Kill an experiment on this machine in every way, at random moments, and look at what is left.

``python -m benchmarks.kills --kills 500`` needs root. Ten tunables are changed in every trial of a study. The agent,
its guardian and the orchestrator, with ``--command live`` also the watch of a live experiment, are killed (SIGKILL),
each alone and together; then nothing may be left changed, no
journal may be lost or left, no process may live on, and the study, taken up again and again, must end with exactly the
trials that it was to have. The orchestrator is a process forked from this one, so that it need not load Python anew.

With ``--command servers`` a live experiment changes settings of a running Redis and a running PostgreSQL.

With ``--command daemons`` the study compares a daemon of root that changes settings of every kind with none, and it is
these that must be as they were.

With ``--faults`` the home, but for the store, is on a small disk that becomes full, read-only or fails at random
moments before the kills, and that works again after them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ajuste.catalogue.loader import catalogue
from ajuste.cli.edge import exit_code
from ajuste.cli.main import application
from ajuste.cli.restore import restore
from ajuste.executor.host.journals import journal_scope, journals_in
from ajuste.machine.files import locked
from ajuste.machine.home import Home
from ajuste.model.error import RunError
from ajuste.report.progress import Progress
from ajuste.run.experiment import conduct, prepare
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Store
from ajuste.study.read import read_study
from benchmarks.bad_disk import KINDS, BadDisk, bad_disk
from benchmarks.kill_tally import NOBODY, PARTS, Outcome, Tally, subsets, table
from benchmarks.meddler import meddled
from benchmarks.servers import servers
from benchmarks.victims import (
    LONGEST_SECONDS,
    SLEEP,
    child_named,
    ended,
    exit_of,
    holder_named,
    machine_free,
    survivors,
)

TESTS_LOCK = Path("/run/lock/ajuste-tests")
"""Whoever changes settings of this machine in a test holds it."""

TURN_SECONDS = 0.3
SPAN_SECONDS = {"compare": 0.8, "daemons": 2.0, "live": 6.0, "servers": 6.0}
"""A kill falls somewhere within this after the agent has begun."""
MOST_REFUSED = 600
"""Times in a row that an experiment may be refused: somebody else may have the machine."""

CHANGES = {
    "vm.dirty_expire_centisecs": ("3100", "1500"),
    "vm.dirty_writeback_centisecs": ("510", "490"),
    "vm.dirty_background_ratio": ("9", "11"),
    "vm.dirty_ratio": ("19", "21"),
    "vm.dirtytime_expire_seconds": ("43100", "43300"),
    "vm.vfs_cache_pressure": ("90", "110"),
    "vm.swappiness": ("50", "70"),
    "vm.page-cluster": ("2", "4"),
    "vm.stat_interval": ("2", "3"),
    "vm.extfrag_threshold": ("400", "600"),
}
BLOCKS = 6
CONFIGURATIONS = {"compare": 4, "daemons": 2}
LIVE = (
    *("live", "--one-at-a-time", "--slice", "2s", "--washout", "0", "--for", "8s", "--accept-risk", "--quiet"),
    *("--metric", "dirty,B,lower=proc:meminfo.Dirty"),
)
SYSCTLS = tuple(word for name, levels in CHANGES.items() for word in ("--set", f"{name}={','.join(levels)}"))


def study_text() -> str:
    """Two factors, each of which sets five tunables at once."""
    names = list(CHANGES)
    lines = ['schema = 1\nname = "killed"\n']
    for factor, tunables in (("first", names[:5]), ("second", names[5:])):
        lines.append(f'[[factor]]\nname = "{factor}"\n')
        for level in (0, 1):
            lines.append(f"[factor.settings.level-{level}]\n")
            lines += [f'"{name}" = {CHANGES[name][level]}\n' for name in tunables]
    lines.append(f'[workload]\ncommand = ["sh", "-c", "sleep {SLEEP} & wait"]\n[target]\nkind = "host"\n')
    lines.append(f'[analysis]\nmetrics = ["elapsed"]\n[budget]\nmin_blocks = {BLOCKS}\nmax_blocks = {BLOCKS}\n')
    return "".join(lines)


def values() -> dict[str, str]:
    """Return the values of the tunables, and of those that the kernel changes along with them, from their files."""
    coupled = ("vm.dirty_bytes", "vm.dirty_background_bytes")
    return {name: Path("/proc/sys", name.replace(".", "/")).read_text() for name in (*CHANGES, *coupled)}


@dataclass(frozen=True)
class Place:
    """Directories of the killed studies."""

    root: Path
    study: Path
    ajuste_home: Path
    """``AJUSTE_HOME``."""
    command: str = "compare"
    varied: tuple[str, ...] = SYSCTLS
    """The words of `ajuste live` that say what varies."""

    @property
    def is_live(self) -> bool:
        return self.command in ("live", "servers")

    @property
    def home(self) -> Home:
        # The store's own faults are looked for in tests/store: on a disk that loses data its study cannot go on.
        store = f"sqlite:///{self.root / 'store.sqlite'}"
        return Home(self.ajuste_home / "data", self.ajuste_home / "cache", self.ajuste_home / "state", store)

    def begin(self, work: Callable[[], object]) -> int:
        """Do ``work`` in a process of its own, as a command would; returns its number."""
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            log = os.open(self.root / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.environ |= {"AJUSTE_HOME": str(self.ajuste_home), "AJUSTE_STORE": self.home.store_url}
            os._exit(exit_code(work))
        finally:
            os._exit(70)

    def carry_out(self, seed: int) -> None:
        """Do what `ajuste run` does, without its report; or a whole `ajuste live`."""
        if self.is_live:
            words = [*LIVE, *self.varied, "--name", f"killed-{seed}"]
            if code := application(words)(words, standalone_mode=False):
                raise RunError(f"exit code {code}")
            return
        known = catalogue()
        study = read_study(self.study, known).with_choices(seed=seed)
        means = RunOptions(self.home)
        with Store(self.home.store_url) as store:
            watcher = Progress(min_blocks=BLOCKS, max_blocks=BLOCKS, max_seconds=60, metric=None, quiet=True)
            conduct(prepare(study, known, means), store, watcher, means, named=str(self.study))

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Whatever goes wrong in this very program, the machine is as it was; journals are kept if that fails."""
        try:
            yield
        except BaseException:
            self.restored()
            raise

    def restored(self) -> int:
        """The exit code of `ajuste restore`, once nobody else has the machine."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while (code := exit_of(self.begin(lambda: restore(None)))) == 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        return code


class Killer:
    """Takes studies to their ends with kills on the way, and counts. A ``disk`` is spoiled before most of the kills."""

    def __init__(
        self,
        place: Place,
        generator: random.Random,
        disk: BadDisk | None = None,
        values: Callable[[], dict[str, str]] = values,
    ) -> None:
        self.place = place
        self.values = values
        self.generator = generator
        self.disk = disk
        self.subsets = subsets(place.command)
        self.outcome = Outcome({" + ".join(parts): Tally() for parts in self.subsets})
        if disk is not None:
            self.outcome.tallies[NOBODY] = Tally()
        self._queue: list[tuple[str, ...]] = []
        self._spoiled: str | None = None

    def one_study(self, seed: int, most: int) -> None:
        """Kill at most ``most`` times, until the study has come to its end."""
        with machine_free():
            before, kills, refused = self.values(), 0, 0
        while True:
            orchestrator = self.place.begin(lambda: self.place.carry_out(seed))
            parts = self._next_parts() if kills < most else ()
            killed = self._kill(orchestrator, parts)
            code = exit_of(orchestrator)
            if not killed and not self._spoiled:
                if code == 0 or (code == 1 and self.place.is_live):  # On a busy machine slices may fail.
                    break
                refused += 1
                if code != 2 or refused > MOST_REFUSED:
                    raise RuntimeError(f"the study ended with {code}; see {self.place.root / 'log'}")
                time.sleep(0.5)
                continue
            kills += bool(killed)
            self._look(parts if killed else (), killed, code, before)
        self._count_trials()

    def _next_parts(self) -> tuple[str, ...]:
        if not self._queue:
            self._queue = list(self.subsets)
            self.generator.shuffle(self._queue)
        return self._queue[-1]

    def _kill(self, orchestrator: int, parts: Sequence[str]) -> dict[str, int]:
        """Kill these parts at a random moment. Nobody is killed if the study ended before."""
        if not parts:
            return {}
        moment = self.generator.uniform(0, SPAN_SECONDS[self.place.command])
        spoils = self.generator.uniform(-moment / 4, moment) if self.disk is not None else float("inf")
        pids: dict[str, int] = {"orchestrator": orchestrator}
        began = None
        while not ended(orchestrator):
            for part in ("agent", "guardian"):
                if part not in pids and (pid := holder_named(f"ajuste-{part}")):
                    pids[part] = pid
                    began = began or time.monotonic()
            if "watch" in PARTS[self.place.command] and ended(pids.get("watch", 0)):  # Each slice has its own.
                pids.pop("watch", None)
                if pid := child_named("ajuste-watch", pids.get("agent")):
                    pids["watch"] = pid
            if self.disk is not None and began is not None and time.monotonic() > began + spoils and not self._spoiled:
                kind = self.generator.choice(KINDS)
                self._spoiled = kind
                self.disk.spoil(kind)
            if began is not None and time.monotonic() > began + moment and all(part in pids for part in parts):
                victims = [(part, pids[part]) for part in parts]
                if any(ended(pid) for _, pid in victims):
                    return {}
                self.generator.shuffle(victims)
                for _, pid in victims:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                self._queue.pop()
                return pids
            time.sleep(0.002)
        return {}

    def _look(self, parts: Sequence[str], pids: dict[str, int], code: int, before: dict[str, str]) -> None:
        what = " + ".join(parts) or NOBODY
        spoiled, self._spoiled = self._spoiled, None
        tally = self.outcome.tallies[what]
        tally.kills += bool(parts)
        tally.faults += bool(spoiled)
        about = f"{what}, {spoiled} disk" if spoiled else what
        expected = {-signal.SIGKILL} if "orchestrator" in parts else {0, 1} if {"agent", "watch"} & {*parts} else {0}
        if code not in expected | ({1} if spoiled and "orchestrator" not in parts else set()):
            tally.wrong_ends += 1
            self.outcome.notes.append(f"{about}: the orchestrator ended with {code}")
        with machine_free():
            left = [j for j in journals_in(journal_scope(self.place.home.journals)) if j.stands_in_the_way]
            changed = self._differing(before)
        tally.caught_changed += bool(changed)
        tally.journals_lost += bool(changed and not left)
        if self.disk is not None and spoiled:
            # What is on a disk that does not work is put back all the same; only the journal may have to stay.
            if left:
                self.place.restored()
                self._count_differing(tally, before, f"{about}, before it works again")
            self.disk.mend()
            left = [j for j in journals_in(journal_scope(self.place.home.journals)) if j.stands_in_the_way]
        if left:
            tally.restored_by_hand += 1
            refused = exit_of(self.place.begin(lambda: self.place.carry_out(0)))
            restored = self.place.restored()
            if (refused, restored) != (2, 0):
                tally.wrong_ends += 1
                self.outcome.notes.append(f"{about}: refused with {refused}, restored with {restored}")
        self._count_differing(tally, before, about)
        tally.journals_left += len(list(self.place.home.journals.iterdir())) if self.place.home.journals.exists() else 0
        tally.processes_left += len(survivors(pids))

    def _count_differing(self, tally: Tally, before: dict[str, str], about: str) -> None:
        differing = self._differing(before)
        tally.values_left += len(differing)
        if differing:
            changes = ", ".join(f"{name} is {now}, was {was}" for name, (was, now) in differing.items())
            self.outcome.notes.append(f"{about}: {changes}")

    def _differing(self, before: dict[str, str]) -> dict[str, tuple[str, str]]:
        now = self.values()
        both = {name: (before.get(name, "").strip(), now.get(name, "").strip()) for name in before | now}
        return {name: (was, is_now) for name, (was, is_now) in both.items() if was != is_now}

    def _count_trials(self) -> None:
        with Store(self.place.home.store_url) as store:
            trials = store.trials(store.runs()[0])
        if self.place.is_live:  # Its blocks depend on the time that was left.
            slots = Counter((t.slot.block, t.slot.position) for t in trials if t.status == "ok")
            self.outcome.studies += 1
            self.outcome.trials += len(trials)
            self.outcome.trials_doubled += sum(n > 1 for n in slots.values())
            return
        configurations = CONFIGURATIONS[self.place.command]
        clean = Counter((t.slot.block, t.slot.position) for t in trials if t.status == "ok")
        tries = Counter((t.slot.block, t.slot.position, t.attempt) for t in trials)
        wanted = {(block, position) for block in range(BLOCKS) for position in range(configurations)}
        seen = {(t.slot.block, t.slot.position) for t in trials}
        self.outcome.studies += 1
        self.outcome.trials += len(trials)
        self.outcome.trials_lost += len(wanted - seen)
        self.outcome.trials_doubled += len(seen - wanted) + sum(n > 1 for n in (*clean.values(), *tries.values()))


def kill(
    kills: int, seed: int, say: Callable[[str], None], *, command: str = "compare", faults: bool = False
) -> Outcome:
    """Kill so many times. Every tunable is as it was in the end, or the outcome says so."""
    generator = random.Random(seed)
    catalogue()
    root = Path(tempfile.mkdtemp(prefix="ajuste-kills-"))
    with ExitStack() as stack:
        disk = stack.enter_context(bad_disk(root)) if faults else None
        place = Place(root, root / "killed.toml", disk.place if disk is not None else root, command)
        if command == "daemons":
            settings = stack.enter_context(meddled())
            place = replace(place, study=settings.study(root, f"sleep {SLEEP} & wait", blocks=BLOCKS))
            killer = Killer(place, generator, disk, settings.values)
        elif command == "servers":
            running = stack.enter_context(servers())
            killer = Killer(replace(place, varied=tuple(running.words())), generator, disk, running.values)
        else:
            place.study.write_text(study_text())
            killer = Killer(place, generator, disk)
        try:
            while killer.outcome.kills < kills:
                with locked(TESTS_LOCK), place.put_back():
                    killer.one_study(killer.outcome.studies + 1, kills - killer.outcome.kills)
                say(f"{killer.outcome.kills} kills, {killer.outcome.studies} studies")
                # Others who change settings of this machine get their turn.
                time.sleep(TURN_SECONDS)
        except KeyboardInterrupt:
            say("interrupted; this is what was found until then")
    shutil.rmtree(root)
    return killer.outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--command", choices=PARTS, default="compare", help="what is killed (default: compare)")
    parser.add_argument("--faults", action="store_true", help="spoil the disk with the home before most of the kills")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if os.geteuid() != 0:
        parser.error("changing settings needs root")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    outcome = kill(chosen.kills, chosen.seed, say, command=chosen.command, faults=chosen.faults)
    print(json.dumps(asdict(outcome) | {"clean": outcome.clean}, indent=2) if chosen.json else table(outcome))
    return 0 if outcome.clean else 1


if __name__ == "__main__":
    sys.exit(main())
