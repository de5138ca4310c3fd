"""Hand-ins of a class: honest ones, measured in this process, and what a clever student makes of them with Ajuste's own
library. All digests and checksums of a planted hand-in are computed anew: as a file it is valid.
"""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ajuste.catalogue.loader import catalogue
from ajuste.design.blocks import block
from ajuste.executor.stream import read_trial
from ajuste.kernel.spec import parse_study_spec
from ajuste.machine.home import Home, ajuste_version
from ajuste.model.explanation import Recorded
from ajuste.model.results import Results
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.outputs.trial_status import trial as read_trial_again
from ajuste.run.experiment import measured, prepare
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Run, Store
from ajuste.study.commands import plan_for, trial_reading
from ajuste.study.overrides import with_factor_levels, with_parameters
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_course.figures import outcomes_of, right_answer, run_outcome
from ajuste_course.hand_in import HandIn, write_hand_in
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet, read_sheet
from ajuste_course.student import drawn
from ajuste_course.study import student_study
from ajuste_course.workbook import Answer, Workbook, now, read_prediction
from ajuste_share.bundle import BundledRun, write_bundle
from ajuste_share.sharing import StoredRun

LIGHT = Path(__file__).with_name("light.toml")
"""A sheet with two configurations in three blocks, which takes a few seconds."""
STEP = "levels"
METRIC = "involuntary-switches"


@dataclass(frozen=True)
class Work:
    """The work of a student on a sheet: the workbook, and for each measured step its run with the trials."""

    workbook: Workbook
    runs: Mapping[str, tuple[Run, tuple[Trial, ...]]]

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self.runs[STEP][1]

    @property
    def resolved(self) -> ResolvedStudy:
        return ResolvedStudy.model_validate_json(self.runs[STEP][0].resolved)

    def with_workbook(self, **changes: Any) -> Work:
        return replace(self, workbook=self.workbook.model_copy(update=changes))

    def with_trials(self, trials: Iterable[Trial]) -> Work:
        return self.with_run(self.runs[STEP][0], trials)

    def with_run(self, run: Run, trials: Iterable[Trial]) -> Work:
        return Work(self.workbook, {**self.runs, STEP: (run, tuple(trials))})


@dataclass
class Classroom:
    """Measures what students do of ``sheet``, in a home of its own."""

    sheet: Sheet
    home: Home
    works: dict[str, Work] = field(default_factory=dict)

    @property
    def options(self) -> RunOptions:
        return RunOptions(self.home)

    def predicted(self, student: str, *, direction: Any = "falls", size: str = "50%") -> Workbook:
        """A workbook with all predictions."""
        sheet = self.sheet
        workbook = Workbook(
            sheet=sheet.name, version=sheet.version, digest=sheet.digest, student=student, language=sheet.language
        )
        for step in sheet.kind(PredictStep):
            why = f"the turns become longer, thinks {student}"
            workbook = workbook.with_prediction(sheet, step.name, read_prediction(direction, size, why))
        return workbook

    def honest(self, student: str, **prediction: Any) -> Work:
        """Measure all steps, and answer all questions right; the texts are the student's own."""
        workbook = self.predicted(student, **prediction)
        runs = {}
        for step in self.sheet.kind(MeasureStep):
            study = student_study(self.sheet, step, student, workbook.seed(self.sheet, step.name), catalogue())
            runs[step.name] = self.measured(study)
            workbook = workbook.with_run(step.name, runs[step.name][0].id)
        return self.answered(Work(workbook, runs))

    def once(self, student: str) -> Work:
        """The honest work of a student, measured once."""
        if student not in self.works:
            self.works[student] = self.honest(student)
        return self.works[student]

    def measured(self, study: Study) -> tuple[Run, tuple[Trial, ...]]:
        """A study's run, with its trials."""
        with measured(study, catalogue(), self.options, named="ajuste course measure", quiet=True) as measurement:
            assert measurement.run.stopped != "failed", measurement.run.stopped_because
            run = measurement.store.find_run(measurement.run.id)
            return run, tuple(measurement.store.trials(run))

    def answered(self, work: Work) -> Work:
        """The work with the answers that follow from its own figures."""
        with TemporaryDirectory() as directory, Store(f"sqlite:///{directory}/store") as store:
            runs = {step: run_outcome(put(store, run, trials), store) for step, (run, trials) in work.runs.items()}
            outcomes = outcomes_of(self.sheet, work.workbook, runs)
            answers = {}
            for step in self.sheet.kind(AskStep):
                right = right_answer(self.sheet, step, work.workbook.student, outcomes)
                value = f"A turn ends in a tick of the timer, says {work.workbook.student}" if right is None else right
                answers[step.name] = Answer(value=value, answered=now())
        return work.with_workbook(answers=answers)

    def study(self, student: str, seed: int, step: str = STEP) -> Study:
        wanted = self.sheet.find(step)
        assert isinstance(wanted, MeasureStep)
        return student_study(self.sheet, wanted, student, seed, catalogue())

    def relabelled(self, run: Run, study: Study) -> tuple[Run, ResolvedStudy]:
        """A run that says it is of another study: its name, seed, document and fingerprint."""
        experiment = prepare(study, catalogue(), self.options)
        resolved = experiment.resolved
        return replace(
            run,
            study=study.name,
            seed=study.design.seed,
            resolved=resolved.model_dump_json(),
            fingerprint=experiment.fingerprint,
        ), resolved


def classroom(home: Home, file: Path = LIGHT) -> Classroom:
    return Classroom(read_sheet(file), home)


def put(store: Store, run: Run, trials: Sequence[Trial]) -> Run:
    """Put a run that ended into a store: all its checksums are new."""
    adopted = store.adopt(
        replace(run, stopped="", stopped_because="", base=""), kernel="debian:5.10", workload="matrix"
    )
    store.add_trials(adopted, list(trials))
    store.stop_run(adopted, run.stopped, run.stopped_because)
    return store.find_run(run.id)


def hand_in(work: Work, file: Path) -> Path:
    """Write a hand-in of a work, honest or not, by the command's own function."""
    with TemporaryDirectory() as directory, Store(f"sqlite:///{directory}/store") as store:
        for run, trials in work.runs.values():
            put(store, run, trials)
        write_hand_in(file, work.workbook, store, ajuste_version())
    return file


@dataclass(frozen=True)
class _Edited:
    # A run whose results are not those of its trials.
    stored: StoredRun
    edit: Callable[[Results], Results]

    @property
    def head(self) -> BundledRun:
        return self.stored.head

    @property
    def trials(self) -> Iterable[Trial]:
        return self.stored.trials

    @property
    def recorded(self) -> Iterable[Recorded]:
        return self.stored.recorded

    @property
    def results(self) -> Results:
        return self.edit(self.stored.results)


def hand_in_with_results(work: Work, file: Path, edit: Callable[[Results], Results]) -> Path:
    """Write a hand-in whose results were edited, and nothing else."""
    with TemporaryDirectory() as directory, Store(f"sqlite:///{directory}/store") as store:
        edited = [_Edited(StoredRun(put(store, run, trials), store), edit) for run, trials in work.runs.values()]
        bundle = Path(directory) / "runs.ajuste"
        write_bundle(bundle, edited, len(edited))
        write_members(file, work.workbook, bundle.read_bytes())
    return file


def write_members(file: Path, workbook: Workbook, runs: bytes, digest: str = "") -> HandIn:
    """Write a hand-in of its two members, with the digests that they need, or another ``digest`` of the runs."""
    digest = digest or (hashlib.sha256(runs).hexdigest() if runs else "")
    head = HandIn(workbook=workbook, made=now(), ajuste=ajuste_version(), runs=digest)
    head = head.model_copy(update={"digest": head.computed})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hand-in.json", head.model_dump_json())
        if runs:
            archive.writestr("runs.ajuste", runs)
    return head


def with_event(trial: Trial, kind: str, role: str, **changes: Any) -> Trial:
    """Change an event of a trial as the guest would have sent it; its figures stay."""
    lines = []
    for line in trial.events.splitlines():
        event = json.loads(line)
        if event["event"] == kind and event.get("role", role) == role:
            event |= changes
        lines.append(json.dumps(event, separators=(",", ":")))
    return trial.model_copy(update={"events": "\n".join(lines) + "\n"})


def consistent(trial: Trial, resolved: ResolvedStudy) -> Trial:
    """Compute the figures of a trial from its events, as Ajuste does."""
    plan = plan_for(resolved, trial.slot, trial.attempt)
    stream = read_trial(trial.events.encode(), plan)
    observation = Observation(lines=stream.lines, events=stream.events, console=trial.console)
    reading = trial_reading(resolved, trial.slot.configuration)
    again = read_trial_again(trial.slot, trial.attempt, plan, observation, reading, started=trial.started)
    return again.model_copy(update={"host_seconds": trial.host_seconds})


def moved(trial: Trial, slot: Slot) -> Trial:
    """Say that a trial was in another slot, with the identity that its events must have there."""
    identity = f"b{slot.block}p{slot.position}a{trial.attempt}"
    events = trial.events.replace(
        f'"id":"b{trial.slot.block}p{trial.slot.position}a{trial.attempt}"', f'"id":"{identity}"'
    )
    return trial.model_copy(update={"slot": slot, "events": events})


def shuffled_noise(trials: Sequence[Trial], share: float, generator: random.Random) -> list[Trial]:
    """Change the switches of every trial of the second level by a share and some noise, in events and figures."""
    changed = []
    for trial in trials:
        value = round(trial.metrics[METRIC] * share) + generator.choice((0, 0, 1))
        changed.append(with_event(trial, "exited", "workload", involuntary_switches=value))
    return changed


# The cheats. Each takes an honest class and writes one file.


def other_number(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The friend's file with the own number."""
    return hand_in(room.once(friend).with_workbook(student=student), file)


def renamed_run(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The friend's trials in a run with the own study: its name, levels, program and seed."""
    theirs, workbook = room.once(friend), room.predicted(student)
    seed = workbook.seed(room.sheet, STEP)
    run, resolved = room.relabelled(theirs.runs[STEP][0], room.study(student, seed))
    names = dict(zip(theirs.resolved.names, resolved.names, strict=True))
    trials = []
    for trial in theirs.trials:
        name = names[trial.slot.configuration]
        value = name.rpartition("=")[2]
        slot = trial.slot.model_copy(update={"configuration": name})
        renamed = with_event(trial.model_copy(update={"slot": slot}), "written", "", asked=value, after=value)
        trials.append(consistent(renamed, resolved))
    return hand_in(room.answered(Work(workbook.with_run(STEP, run.id), {STEP: (run, tuple(trials))})), file)


def same_values(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The trials of somebody with the same values, in a run with the own name and seed."""
    workbook = room.predicted(student)
    seed = workbook.seed(room.sheet, STEP)
    # What the friend measures: the same study with another name and seed.
    local = room.study(student, seed)
    friends, trials = room.measured(local.with_choices(seed=room.predicted(friend).seed(room.sheet, STEP)))
    run, _ = room.relabelled(friends, local)
    return hand_in(room.answered(Work(workbook.with_run(STEP, run.id), {STEP: (run, trials)})), file)


def changed_metric(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """A figure is changed, and not in the events."""
    work = room.once(student)
    first, *rest = work.trials
    changed = first.model_copy(update={"metrics": {**first.metrics, METRIC: first.metrics[METRIC] + 3}})
    return hand_in(room.answered(work.with_trials([changed, *rest])), file)


def changed_events(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The figures of all trials are changed in events and metrics alike."""
    work = room.once(student)
    changed = shuffled_noise(work.trials, 1.2, random.Random(student))
    return hand_in(room.answered(work.with_trials(consistent(trial, work.resolved) for trial in changed)), file)


def changed_outlier(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """A trial is changed, in events and metrics alike."""
    work = room.once(student)
    first, *rest = work.trials
    value = round(first.metrics[METRIC] * 2)
    changed = consistent(with_event(first, "exited", "workload", involuntary_switches=value), work.resolved)
    return hand_in(room.answered(work.with_trials([changed, *rest])), file)


def swapped(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The trials of the two configurations are swapped in each block, with what was written of the setting."""
    work = room.once(student)
    by_block: dict[int, list[Trial]] = {}
    for trial in work.trials:
        by_block.setdefault(trial.slot.block, []).append(trial)
    trials = []
    for first, second in by_block.values():
        for trial, slot in ((first, second.slot), (second, first.slot)):
            value = slot.configuration.rpartition("=")[2]
            trials.append(
                consistent(with_event(moved(trial, slot), "written", "", asked=value, after=value), work.resolved)
            )
    return hand_in(room.answered(work.with_trials(sorted(trials, key=lambda t: (t.slot.block, t.slot.position)))), file)


def other_levels(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """Measured with levels that are not the student's, under the own name and seed."""
    workbook = room.predicted(student)
    local = room.study(student, workbook.seed(room.sheet, STEP))
    study = with_factor_levels(local, ["sched_min_granularity_ns=750us,50ms"], catalogue(), parse_study_spec)
    run, trials = room.measured(study)
    work = Work(workbook.with_run(STEP, run.id), {STEP: (run, trials)})
    return hand_in(work.with_workbook(answers=room.once(friend).workbook.answers), file)


def hidden_levels(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """Measured with another level, which the run and the events do not show."""
    workbook = room.predicted(student)
    local = room.study(student, workbook.seed(room.sheet, STEP))
    study = with_factor_levels(local, ["sched_min_granularity_ns=750us,50ms"], catalogue(), parse_study_spec)
    return hand_in(_grafted(room, workbook, local, study), file)


def other_program(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The trials are genuine, of a job of another size, in a run that says it is the own one."""
    workbook = room.predicted(student)
    local = room.study(student, workbook.seed(room.sheet, STEP))
    (size,) = drawn(room.sheet, student)["size"]
    study = with_parameters(local, {"size": str(int(size) + 8)}, catalogue())
    return hand_in(_grafted(room, workbook, local, study), file)


def _grafted(room: Classroom, workbook: Workbook, local: Study, other: Study) -> Work:
    # The trials of `other` in the run of `local`, with its seed and names.
    foreign, trials = room.measured(other)
    run, resolved = room.relabelled(foreign, local)
    names = dict(zip(ResolvedStudy.model_validate_json(foreign.resolved).names, resolved.names, strict=True))
    slots = {
        (slot.block, slot.configuration): slot
        for number in {trial.slot.block for trial in trials}
        for slot in block(number, resolved.names, local.design.seed)
    }
    grafts = []
    for trial in trials:
        slot = slots[trial.slot.block, names[trial.slot.configuration]]
        value = slot.configuration.rpartition("=")[2]
        graft = with_event(moved(trial, slot), "written", "", asked=value, after=value)
        size = resolved.study.workload.parameters["size"]
        words = json.loads(next(line for line in trial.events.splitlines() if '"stdout"' in line))["text"].split()
        text = " ".join(f"size={size}" if word.startswith("size=") else word for word in words) + "\n"
        lines = [
            json.dumps({**json.loads(line), "text": text}, separators=(",", ":")) if '"stdout"' in line else line
            for line in graft.events.splitlines()
        ]
        graft = graft.model_copy(update={"events": "\n".join(lines) + "\n"})
        grafts.append(consistent(graft, resolved))
    grafts.sort(key=lambda trial: (trial.slot.block, trial.slot.position))
    return room.answered(Work(workbook.with_run(STEP, run.id), {STEP: (run, tuple(grafts))}))


def late_prediction(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The prediction was edited after measuring."""
    work = room.once(student)
    edited = read_prediction("falls", "72%", work.workbook.predictions["switches"].why)
    return hand_in(work.with_workbook(predictions={**work.workbook.predictions, "switches": edited}), file)


def late_prediction_and_seed(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The prediction was edited, and the seed of the run was changed to the one that it gives."""
    work = room.once(student)
    edited = read_prediction("falls", "72%", work.workbook.predictions["switches"].why)
    work = work.with_workbook(predictions={**work.workbook.predictions, "switches": edited})
    seed = work.workbook.seed(room.sheet, STEP)
    run, _ = room.relabelled(work.runs[STEP][0], room.study(student, seed))
    return hand_in(work.with_run(run, work.trials), file)


def foreign_seed(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The own study, measured with the seed of another student."""
    workbook = room.predicted(student)
    run, trials = room.measured(room.study(student, room.predicted(friend).seed(room.sheet, STEP)))
    return hand_in(room.answered(Work(workbook.with_run(STEP, run.id), {STEP: (run, trials)})), file)


def friends_run(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """A friend's run in the student's workbook."""
    theirs = room.once(friend)
    workbook = room.predicted(student).with_run(STEP, theirs.workbook.runs[STEP])
    return hand_in(Work(workbook.model_copy(update={"answers": theirs.workbook.answers}), theirs.runs), file)


def chosen_trials(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """A trial that does not suit is said to have failed."""
    work = room.once(student)
    *rest, last = work.trials
    lost = last.model_copy(update={"status": "failed", "reason": "the guest hung", "metrics": {}})
    return hand_in(room.answered(work.with_trials([*rest, lost])), file)


def hidden_trial(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """A trial that does not suit is said to have failed, with events that are cut."""
    work = room.once(student)
    *rest, last = work.trials
    events = "".join(last.events.splitlines(keepends=True)[:2])
    lost = last.model_copy(update={"status": "failed", "reason": "the guest hung", "metrics": {}, "events": events})
    return hand_in(room.answered(work.with_trials([*rest, lost])), file)


def other_machine(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """Changed figures, in a run that says it was measured with another QEMU."""
    work = room.once(student)
    changed = [consistent(trial, work.resolved) for trial in shuffled_noise(work.trials, 1.2, random.Random(student))]
    run = replace(work.runs[STEP][0], fingerprint="0" * 64)
    return hand_in(room.answered(work.with_run(run, changed)), file)


def fewer_blocks(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The last block is left out."""
    work = room.once(student)
    last = max(trial.slot.block for trial in work.trials)
    return hand_in(room.answered(work.with_trials(t for t in work.trials if t.slot.block < last)), file)


def edited_results(room: Classroom, student: str, friend: str, file: Path) -> Path:
    """The results in the file are not those of its trials."""
    return hand_in_with_results(
        room.once(student), file, lambda results: results.model_copy(update={"answer": "Use more.", "blocks": 30})
    )


Cheat = Callable[[Classroom, str, str, Path], Path]

CHEATS: Mapping[str, tuple[Cheat, str]] = {
    "other-number": (other_number, "not this student's"),
    "renamed-run": (renamed_run, "not the one of this study and its seed"),
    "same-values": (same_values, "not the one of this study and its seed"),
    "changed-metric": (changed_metric, "figures were changed"),
    "changed-events": (changed_events, "measured again differ"),
    "changed-outlier": (changed_outlier, "measured again differ"),
    "swapped": (swapped, "measured again differ"),
    "other-levels": (other_levels, "differs from this student's in factor"),
    "hidden-levels": (hidden_levels, "measured again differ"),
    "other-program": (other_program, "measured again differ"),
    "late-prediction": (late_prediction, "prediction was changed after measuring"),
    "late-prediction-and-seed": (late_prediction_and_seed, "not the one of this study and its seed"),
    "foreign-seed": (foreign_seed, "the figures are somebody else's"),
    "friends-run": (friends_run, "not this student's"),
    "chosen-trials": (chosen_trials, "it is failed, by what the guest sent ok"),
    "fewer-blocks": (fewer_blocks, "some were left out"),
}
"""Cheats that must not be accepted, and words of the reason."""

DOUBTS: Mapping[str, tuple[Cheat, str]] = {
    "hidden-trial": (hidden_trial, "trials that failed do not count"),
    "other-machine": (other_machine, "measured again differ"),
    "edited-results": (edited_results, "do not follow from its trials"),
}
"""Doubts that may be no fault of a student: a person has to look, and words of the remark."""
