"""A profile taken apart: its lines as the factors of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ajuste.study.command_line.study import AS_IT_IS, profile_levels
from ajuste.study.factors import names_set
from ajuste.study.profile import Placed, PlacedSetting, profile_notes
from ajuste.study.schema import FactorTable, Study


def ablation_document(document: Mapping[str, Any], placed: Placed) -> dict[str, Any]:
    """Return the study ``document`` of a command line with the lines of a profile as what is varied."""
    profile_levels(placed)
    fixed = [table for table in document["factor"] if len(table.get("levels", ())) == 1]
    what = document["workload"].get("kind") or "the command"
    return {
        **document,
        "title": _title(placed, what),
        "question": _question(placed, what),
        "notes": list(profile_notes([placed])),
        "factor": [*fixed, *line_tables(placed)],
        "design": {**document["design"], "combine": "ablation"},
    }


def ablation_study(study: Study, placed: Placed) -> Study:
    """Return ``study`` with the lines of a profile as what is varied.

    What was varied is at its baseline, as far as the profile does not set it.
    """
    sets = profile_levels(placed)
    fixed: list[FactorTable] = []
    for factor in study.factors:
        if not set(names_set(factor)) & set(sets):
            level = factor.baseline_level
            settings = {level: factor.settings[level]} if factor.settings else {}
            fixed.append(factor.model_copy(update={"levels": (level,), "settings": settings}))
    lines = [FactorTable.model_validate(table) for table in line_tables(placed)]
    design = study.design.model_copy(update={"combine": "ablation", "allocation": None})
    analysis = study.analysis.model_copy(update={"prediction": None, "three_sigma": False})
    what = study.title or study.name
    return study.model_copy(
        update={
            "name": f"{study.name[:72]}-ablate",
            "title": _title(placed, what),
            "question": _question(placed, what),
            "notes": profile_notes([placed]),
            "factors": (*fixed, *lines),
            "design": design,
            "analysis": analysis,
        }
    )


def line_tables(placed: Placed) -> list[dict[str, Any]]:
    """Return a factor for each line, off or on."""
    tables: list[dict[str, Any]] = []
    for name, setting in zip(line_names(placed.settings), placed.settings, strict=True):
        levels = dict.fromkeys(setting.levels.values())
        level = next(iter(levels)) if len(levels) == 1 else setting.line.value
        tables.append({"name": name, "settings": {AS_IT_IS: {}, level: dict(setting.levels)}})
    return tables


def line_names(settings: Sequence[PlacedSetting]) -> list[str]:
    """Return names by what the lines set; with the devices where two of several sections set the same."""
    lines = [setting.line for setting in settings]
    count = Counter(line.name for line in lines)
    return [line.name if count[line.name] == 1 else f"{line.name} ({line.devices})" for line in lines]


def _title(placed: Placed, what: str) -> str:
    return f"{what}: the lines of {placed.profile.name}"


def _question(placed: Placed, what: str) -> str:
    return f"Which lines of the profile {placed.profile.name} matter for {what}, and what does each do?"
