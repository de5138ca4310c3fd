"""Experiments across reboots, on a played machine with the configuration that Debian's update-grub made."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.reboots.experiment import go_on, in_a_child, plan_of, played_study
from benchmarks.reboots.kills import RebootTally, one_study
from benchmarks.reboots.played import KERNELS, LoaderName, PlayedMachine, Rebooted

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home
from ajuste.model.boot import BOOTS, BootState
from ajuste.model.error import RequestError, RunError
from ajuste.report.document import Folded, Paragraph, Table
from ajuste.report.format import result_labels
from ajuste.run.experiment import conduct, prepare, progress_of
from ajuste.run.outcome import results_of
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_boots.files import install_units
from ajuste_boots.loader import find_program, run_tool
from ajuste_boots.model import FINDINGS, KeptBoots
from ajuste_boots.report import sections
from ajuste_boots.session import BootSession, RebootWanted, is_signed, plan_entries
from tiers import slow

pytestmark = pytest.mark.skipif(find_program("grub-editenv") is None, reason="requires grub-editenv (grub-common)")

OFF = BootState(words=("mitigations=off",))


@pytest.fixture
def machine(tmp_path: Path) -> PlayedMachine:
    (tmp_path / "home").mkdir()
    return PlayedMachine(tmp_path / "machine")


def carried_out(machine: PlayedMachine, home: Path, study: ResolvedStudy | None = None) -> str:
    """The run, after as many reboots as it takes."""
    study = study or played_study(blocks=2, rounds=2)
    for _ in range(40):
        try:
            return go_on(machine, study, home, lambda _: None)
        except Rebooted:
            machine.power_on()
            if not machine.resumes:
                with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
                    return store.runs()[0].id
    raise AssertionError("it never ended")


def test_a_study_reboots_into_its_states_and_leaves_the_machine_as_it_was(machine: PlayedMachine) -> None:
    home, before = machine.root.parent / "home", machine.files
    run = carried_out(machine, home)
    assert machine.files == before
    assert not machine.rebootable.mark
    assert not (home / "reboots/state.json").exists()
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        stored = store.find_run(run)
        boots = KeptBoots.model_validate(stored.environment[BOOTS])
        results = results_of(stored, store)
    # Two rounds of two states; three blocks in each boot, of which the first is a warm-up.
    assert sorted((boot.round, boot.state) for boot in boots.boots) == [
        (0, "default"),
        (0, "mitigations=off"),
        (1, "default"),
        (1, "mitigations=off"),
    ]
    assert all(boot.outcome == "up" and len(boot.trials) == 3 for boot in boots.boots)
    assert all(("mitigations=off" in boot.command_line) == (boot.state != "default") for boot in boots.boots)
    assert all(boot.kernel == KERNELS[0] and "panic=10" in boot.command_line for boot in boots.boots)
    # A verdict has two independent comparisons, not the four blocks that count.
    assert [verdict.blocks for verdict in results.verdicts if verdict.deciding] == [2]
    findings = FINDINGS.of(results)
    assert findings is not None
    assert {spread.boots for spread in findings.spreads} == {2}
    assert results.counted_blocks == "2 rounds of boots"
    assert all(verdict.of_rounds for verdict in results.verdicts)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide the programs of boot loaders that this machine may lack; the played machine plays what they do."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in ("bootctl", "kexec"):
        (directory / name).write_text("#!/bin/sh\nexit 1\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("loader", ["kexec", *slow("systemd-boot")])
@pytest.mark.parametrize("factor", ["boot.mitigations", "boot.kernel"])
def test_other_boot_loaders_boot_each_state_once_and_are_as_before(
    tmp_path: Path, loader: LoaderName, factor: str
) -> None:
    machine, home = PlayedMachine(tmp_path / "machine", loader=loader), tmp_path / "home"
    home.mkdir()
    before, study = machine.files, played_study(blocks=1, rounds=2, factor=factor)
    run = carried_out(machine, home, study=study)
    assert machine.files == before
    assert not machine.rebootable.mark
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        boots = KeptBoots.model_validate(store.find_run(run).environment[BOOTS])
    assert boots.loader == loader
    assert [(boot.outcome, len(boot.trials)) for boot in boots.boots] == [("up", 2)] * 4
    for boot in boots.boots:
        words = boot.command_line.split()
        assert ("mitigations=off" in words) == (boot.state == "mitigations=off")
        assert boot.kernel == (KERNELS[1] if boot.state == "6.1" else KERNELS[0])
        assert {"root=/dev/vda1", "ro", "quiet", "panic=10"} <= set(words)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "named", ["version {}\nlinux /{}/linux", "linux /{}/linux", "linux /boot/vmlinuz-{}", "linux /{}.efi"]
)
def test_an_entry_of_a_longer_name_is_another_kernel(tmp_path: Path, named: str) -> None:
    machine = PlayedMachine(tmp_path / "machine", loader="systemd-boot")
    entries = next(machine.root.rglob("loader/entries"))
    (ours := entries / f"{KERNELS[0]}.conf").write_text(named.replace("{}", KERNELS[0]) + "\noptions quiet\n")
    (entries / "0.conf").write_text(named.replace("{}", f"{KERNELS[0]}+debug") + "\noptions debug\n")
    loader = machine.rebootable.loader("systemd-boot")
    loader.prepare(plan_entries([BootState()], machine.rebootable))
    made = next(entries.glob("ajuste-*.conf")).read_text()
    assert f"{KERNELS[0]}+debug" not in made
    ours.unlink()
    with pytest.raises(RequestError, match="no entry for the kernel"):
        loader.prepare(plan_entries([BootState()], machine.rebootable))


def test_a_boot_of_another_kernel_is_never_measured(machine: PlayedMachine) -> None:
    home = machine.root.parent / "home"
    study = played_study(blocks=2, rounds=2)
    with pytest.raises(Rebooted):
        go_on(machine, study, home, lambda _: None)
    machine.power_on()
    (machine.root / "proc/sys/kernel/osrelease").write_text(f"{KERNELS[0]}+debug\n")
    with pytest.raises(RunError, match=re.escape(f"boots Linux {KERNELS[0]}+debug; expected {KERNELS[0]}")):
        go_on(machine, study, home, lambda _: None)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("loader", ["systemd-boot", "kexec"])
def test_other_boot_loaders_survive_a_power_cut_at_every_step(tmp_path: Path, loader: LoaderName) -> None:
    tally = RebootTally()
    at = [*range(1, 10), 0, *range(1, 19), 0, *range(1, 19), 0, *range(1, 10)]
    one_study(tmp_path, played_study(blocks=1, rounds=1), at, _Always(cut=True), tally, loader)
    assert tally.kills > 10
    assert tally.wrong == 0, tally


@pytest.mark.usefixtures("programs")
def test_a_boot_loader_that_this_machine_was_not_booted_by_is_refused(tmp_path: Path) -> None:
    machine = PlayedMachine(tmp_path / "machine", loader="kexec")
    with pytest.raises(RequestError, match="systemd-boot: this machine was not booted by it"):
        machine.rebootable.choose("systemd-boot")
    change(machine, "proc/sys/kernel/kexec_load_disabled", "1\n")
    with pytest.raises(RequestError, match="kexec: disabled until the next boot"):
        machine.rebootable.choose("kexec")


@pytest.mark.parametrize("way", ["kill -9", "power cut"])
def test_whatever_step_is_the_last_one_no_trial_is_lost_and_nothing_is_left(tmp_path: Path, way: str) -> None:
    tally = RebootTally()
    study = played_study(blocks=1, rounds=1)
    # In each boot one process after the other, each killed a step later, and at last one that is not.
    at = [*range(1, 10), 0, *range(1, 19), 0, *range(1, 19), 0, *range(1, 10)]
    one_study(tmp_path, study, at, _Always(cut=way == "power cut"), tally)
    assert tally.kills > 10
    assert tally.wrong == 0, tally


class _Always:
    """Stands for a draw that is always the same."""

    def __init__(self, *, cut: bool) -> None:
        self._cut = cut

    def random(self) -> float:
        return 0.0 if self._cut else 1.0


def test_a_kernel_that_does_not_come_up_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    machine = PlayedMachine(tmp_path / "machine", lambda line: "mitigations=off" not in line)
    home, before = tmp_path / "home", machine.files
    home.mkdir()
    study = played_study(blocks=1, rounds=1)

    def boot_on() -> Iterator[str]:
        for _ in range(20):
            try:
                go_on(machine, study, home, lambda _: None)
            except Rebooted:
                machine.power_on()
            else:
                return
            yield (home / "reboots/state.json").read_text()

    with pytest.raises(Exception, match="mitigations=off did not come up in 3 boots"):
        list(boot_on())
    session = BootSession.load(home / "reboots", machine.rebootable)
    assert session is not None
    assert [boot.outcome for boot in session.plan.boots if boot.state != "default"] == ["down", "down", "down"]
    session.end()
    assert machine.files == before


def test_a_kernel_that_came_up_before_is_not_given_up_after_three_power_cuts(tmp_path: Path) -> None:
    tried: list[bool] = []

    def comes_up(line: str) -> bool:
        """Return whether a boot comes up: all but the second to the sixth with mitigations=off."""
        if "mitigations=off" not in line:
            return True
        tried.append(len(tried) not in range(1, 6))
        return tried[-1]

    machine, home = PlayedMachine(tmp_path / "machine", comes_up), tmp_path / "home"
    home.mkdir()
    run = carried_out(machine, home)
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        results = results_of(store.find_run(run), store)
    findings = FINDINGS.of(results)
    assert findings is not None
    boots = findings.kept.boots
    outcomes = [boot.outcome for boot in boots if boot.state == "mitigations=off"]
    assert outcomes == ["up", "down", "down", "down", "down", "down", "up"]
    assert sum(len(boot.trials) for boot in boots) == 12
    (section,) = sections(results, result_labels(results))
    assert section.blocks[0] == Paragraph(
        "4 boots by grub, 2 blocks in each. 5 boots did not come up; their trials were repeated in another boot."
    )
    every = section.blocks[-1]
    assert isinstance(every, Folded)
    (table,) = every.blocks
    assert isinstance(table, Table)
    remarks = [row.remark for group in table.groups for row in group.rows]
    assert sorted(remarks) == [*[""] * 4, *["kernel did not come up; repeated"] * 5]


def test_a_power_cut_after_the_kernel_came_up_is_not_taken_for_a_kernel_that_does_not(machine: PlayedMachine) -> None:
    home, study = machine.root.parent / "home", played_study(blocks=1, rounds=1)
    with pytest.raises(Rebooted):
        go_on(machine, study, home, lambda _: None)
    machine.power_on()
    assert machine.rebootable.mark
    machine.power_on()  # the power was cut before anything went on
    with pytest.raises(Rebooted):
        go_on(machine, study, home, lambda _: None)
    session = BootSession.load(home / "reboots", machine.rebootable)
    assert session is not None
    assert [boot.outcome for boot in session.plan.boots] == ["cut", "asked"]


def test_the_unit_resumes_with_the_home_of_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    install_units(tmp_path, tmp_path, ("/opt/a b/ajuste", "reboots", "resume"), {"AJUSTE_HOME": '/srv/50% "x"'})
    text = (tmp_path / "etc/systemd/system/ajuste-reboots.service").read_text()
    assert 'Environment="AJUSTE_HOME=/srv/50%% \\"x\\""\n' in text
    assert 'ExecStart="/opt/a b/ajuste" reboots resume\n' in text


@pytest.mark.usefixtures("machine_lock")
def test_a_run_with_its_store_and_results_goes_on_from_boot_to_boot(machine: PlayedMachine) -> None:
    place = machine.root.parent / "home"
    home = Home(place / "data", place / "cache", place / "state")
    study = played_study(blocks=2, rounds=2).study
    plan = plan_of(played_study(blocks=2, rounds=2), machine)
    BootSession.begin(home.reboots, plan, machine.rebootable)
    for _ in range(5):
        session = BootSession.load(home.reboots, machine.rebootable)
        assert session is not None
        session.take_up()
        means = RunOptions(home, reboots=session)
        try:
            with Store(home.store_url) as store, progress_of(study, catalogue(), quiet=True) as progress:
                run = conduct(prepare(study, catalogue(), means), store, progress, means, named="played", fresh=False)
                results = results_of(run, store)
            break
        except RebootWanted:
            with pytest.raises(Rebooted):
                session.reboot()
            machine.power_on()
    assert run.stopped in ("budget", "decided")
    assert results.answer
    findings = FINDINGS.of(results)
    assert findings is not None
    assert [len(boot.trials) for boot in findings.kept.boots] == [3, 3, 3, 3]


def test_a_word_that_helps_is_exported_as_one_of_the_kernels_command_line(machine: PlayedMachine) -> None:
    home, study = machine.root.parent / "home", played_study(blocks=1, rounds=1)
    run = carried_out(machine, home, study)
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        results = results_of(store.find_run(run), store)
    name = "boot.mitigations=off"
    update = {"verdict": "improves", "estimate": 0.9, "low": 0.85, "high": 0.95, "blocks": 6}
    verdicts = tuple(verdict.model_copy(update=update) for verdict in results.verdicts)
    formats, winner = (pytest.importorskip(f"ajuste_profiles.{name}") for name in ("formats", "winner"))
    exported = winner.configuration_export(results.model_copy(update={"verdicts": verdicts}), study, (), name)
    assert exported.kernel_arguments == ("mitigations=off",)
    assert any("6 rounds of boots" in line for line in exported.evidence)
    assert "cmdline_ajuste_played=+mitigations=off\n" in formats.renderers()["tuned"](exported).files[0].text
    assert [omitted.what for omitted in formats.renderers()["shell"](exported).left_out] == ["mitigations=off"]


def test_what_others_change_in_the_boot_files_meanwhile_stays(machine: PlayedMachine) -> None:
    home, study = machine.root.parent / "home", played_study(blocks=1, rounds=1)
    with pytest.raises(Rebooted):
        go_on(machine, study, home, lambda _: None)
    block = machine.root / "boot/grub/grubenv"
    run_tool(("grub-editenv", str(block), "set", "saved_entry=mine"))
    custom = machine.root / "boot/grub/custom.cfg"
    custom.write_text(f"# mine\n{custom.read_text()}")
    session = BootSession.load(home / "reboots", machine.rebootable)
    assert session is not None
    notes = session.end()
    assert len(notes) == 2
    assert run_tool(("grub-editenv", str(block), "list")).split() == ["saved_entry=mine"]
    assert custom.read_text() == "# mine\n"


def change(machine: PlayedMachine, place: str, text: str) -> None:
    (machine.root / place).write_text(text)


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("boot/grub/grub.cfg", "menuentry 'x' {\n linux /boot/vmlinuz-1 ro\n}\n", "cannot boot once"),
        ("proc/mounts", "/dev/mapper/vg-root / ext4 rw 0 0\n", "cannot write to /dev/mapper/vg-root"),
        ("proc/mounts", "/dev/sda1 / btrfs rw 0 0\n", "cannot write to the file system"),
    ],
)
def test_a_boot_loader_that_cannot_boot_once_is_refused(
    machine: PlayedMachine, place: str, text: str, message: str
) -> None:
    change(machine, place, text)
    with pytest.raises(RequestError, match=message):
        machine.rebootable.choose("grub")


def test_a_machine_that_cannot_go_on_is_refused_before_anything_changes(machine: PlayedMachine) -> None:
    state_directory, before = machine.root / "var", machine.files
    if os.geteuid() != 0:
        with pytest.raises(RequestError, match="requires root"):
            machine.rebootable.require_able(state_directory)
        return
    machine.rebootable.require_able(state_directory)
    change(machine, "proc/mounts", "/dev/vda1 / ext4 ro 0 0\n")
    with pytest.raises(RequestError, match="read-only"):
        machine.rebootable.require_able(state_directory)
    change(machine, "proc/mounts", "tmpfs / tmpfs rw 0 0\n")
    with pytest.raises(RequestError, match="a reboot may lose"):
        machine.rebootable.require_able(state_directory)
    (machine.root / "run/systemd/system").rmdir()
    with pytest.raises(RequestError, match="systemd is not running"):
        machine.rebootable.require_able(state_directory)
    assert machine.files == before


def test_secure_boot_refuses_a_kernel_without_a_signature(machine: PlayedMachine) -> None:
    entries = plan_entries([OFF], machine.rebootable)
    loader = machine.rebootable.choose("grub")
    machine.rebootable.require_bootable(loader, entries)
    variables = machine.root / "sys/firmware/efi/efivars"
    variables.mkdir(parents=True)
    (variables / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(b"\6\0\0\0\1")
    with pytest.raises(RequestError, match="is not signed"):
        machine.rebootable.require_bootable(loader, entries)


def test_a_signature_is_seen_in_the_head_of_a_kernel(tmp_path: Path) -> None:
    # By the layout of PE32+: the fifth data directory is that of certificates.
    head = bytearray(512)
    head[0x3C:0x40] = (0x80).to_bytes(4, "little")
    head[0x80:0x84] = b"PE\0\0"
    head[0x98:0x9A] = (0x20B).to_bytes(2, "little")
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(head)
    assert not is_signed(kernel)
    certificates = 0x98 + 112 + 4 * 8
    head[certificates : certificates + 8] = (4096).to_bytes(4, "little") + (1500).to_bytes(4, "little")
    kernel.write_bytes(head)
    assert is_signed(kernel)


def test_a_child_that_is_killed_is_known_to_be(tmp_path: Path) -> None:
    assert in_a_child(lambda: os.kill(os.getpid(), signal.SIGKILL)) == -signal.SIGKILL
    assert in_a_child(lambda: None) == 0
