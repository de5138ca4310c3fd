"""A referee: the sealed evaluator as the command by which an optimiser scores its candidate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_study_spec
from ajuste.machine.files import file_sha256, make_directory, remove_file, remove_tree, replace_file
from ajuste.machine.home import Home
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError, RunError
from ajuste.outputs.trial_status import why_lost
from ajuste.store.location import exclusive
from ajuste.study.read import read_study
from ajuste_lab.campaign.candidates import Candidates
from ajuste_lab.campaign.evaluator import Evaluator, SealedBench
from ajuste_lab.campaign.kept import STUDY, KeptCampaign, campaign_directory, new_campaign
from ajuste_lab.campaign.model import CANDIDATE, Campaign, RefereeAnswer, Refereed
from ajuste_lab.campaign.parts import check_campaign, proposed_study
from ajuste_lab.campaign.promotion import incumbents, referee_answer

_FILE: Final = "study.toml"


def one_referee(home: Home, name: str) -> AbstractContextManager[None]:
    """Lock the referee for a candidate. Raises RequestError during another one."""
    make_directory(home.state)
    return exclusive(home.state / f"referee-{name}.lock", f"the referee of the campaign {name}")


def refereed_campaign(
    home: Home, wanted: Campaign, study: str, copied: Sequence[str], known: Catalogue, bench: SealedBench
) -> KeptCampaign:
    """Return the campaign of the ``wanted`` name, or begin it with the current candidate. ``study`` is the text of its
    study file; the files ``copied`` belong to the command, and the campaign keeps copies of them. Raises RequestError
    if it began with other options, RunError if the candidate cannot be measured.
    """
    directory = campaign_directory(home, wanted.name)
    if (directory / "campaign.json").exists():
        stored = KeptCampaign(directory)
        if _rules(stored.campaign) != _rules(wanted) or (directory / STUDY / _FILE).read_text("utf-8") != study:
            raise RequestError(
                f"the campaign {wanted.name} began with other options or another command",
                hint="choose another name to begin a new one",
            )
        return stored
    try:
        return _new_referee(home, wanted, study, copied, known, bench)
    except BaseException:
        if not (directory / "campaign.json").exists():
            remove_tree(directory)
        raise


def _rules(campaign: Campaign) -> Campaign:
    # Everything a person chose, without what followed when the campaign began.
    refereed = campaign.refereed
    chosen = Refereed(path=refereed.path, start="", trusted=refereed.trusted) if refereed else None
    decided = {"study": "", "study_sha256": "", "created": "", "sealed_sha256": "", "refereed": chosen}
    return campaign.model_copy(update=decided)


def _new_referee(
    home: Home, wanted: Campaign, text: str, copied: Sequence[str], known: Catalogue, bench: SealedBench
) -> KeptCampaign:
    assert wanted.refereed is not None
    place = campaign_directory(home, wanted.name) / STUDY
    remove_tree(place)
    make_directory(place)
    for name in copied:
        make_directory((place / name).parent)
        with open_given(Path(name)) as content:
            replace_file(place / name, content.read(), mode=0o777 if os.access(name, os.X_OK) else 0o666)
    replace_file(place / _FILE, text.encode(), on_disk=True)
    start = Candidates(place).take(Path(wanted.refereed.path))
    files = {str(PurePosixPath(name)): file_sha256(place / name) for name in copied}
    refereed = wanted.refereed.model_copy(update={"start": start, "files": files})
    campaign = wanted.model_copy(update={"study": str(place / _FILE), "refereed": refereed})
    study = read_study(place / _FILE, known, parse_kernel=parse_study_spec)
    check_campaign(campaign, (study,), known)
    once = proposed_study(study, campaign, {}, known, command="--candidate", blocks=1)
    tried = bench.measured(once, place / "tried.sqlite").trials
    for file in place.glob("tried.sqlite*"):
        remove_file(file)
    if not any(trial.status == "ok" for trial in tried):
        raise _unmeasured(next(map(why_lost, tried), "no trial ended"))
    return new_campaign(home, campaign, (), known)


def judge_candidate(stored: KeptCampaign, known: Catalogue, bench: SealedBench) -> RefereeAnswer:
    """Judge the current candidate, once for each content. Raises RunError if it cannot be measured."""
    assert stored.campaign.refereed is not None
    evaluator, candidates = Evaluator(stored, known, bench), Candidates(stored.directory / STUDY)
    candidate = candidates.take(Path(stored.campaign.refereed.path))
    standing = evaluator.standing()
    candidates.keep_only({*incumbents(standing), candidate})
    if (answer := referee_answer(standing, candidate)) is not None:
        return answer
    record = evaluator.propose({CANDIDATE: candidate})
    answer = referee_answer(evaluator.standing(), candidate)
    if answer is None:
        raise _unmeasured(record.reason)
    return answer


def _unmeasured(reason: str) -> RunError:
    return RunError(
        f"the candidate could not be measured: {reason}",
        hint="run the command yourself; it must end in time, succeed and print what --score matches",
    )
