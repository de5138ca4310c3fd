"""Builds as units: each layout of a program's code was measured by itself, and their means are compared.

What a layout costs is the same in all trials of a build, so trials of one build say nothing of the next (Mytkowicz,
Diwan, Hauswirth and Sweeney 2009, "Producing wrong data without doing anything obviously wrong!", ASPLOS XIV;
Curtsinger and Berger 2013, "Stabilizer: statistically sound performance evaluation", ASPLOS XVIII).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ajuste.analysis.history import histories
from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.surface.surfaces import Promise
from ajuste.analysis.verdict import judge
from ajuste.model.measurements import Gathering
from ajuste.model.results import Results
from ajuste.model.trial import Configuration
from ajuste.model.wording import count_of


def of_layouts(found: Sequence[Results], *, confidence: float, limit: float) -> Results:
    """One result of all layouts, each of which ``found`` has; its blocks are layouts. ``limit`` is a share of the
    baseline.
    """
    last = found[-1]
    clean = _means(found)
    configurations = [Configuration(name=c.name, levels=c.levels, baseline=c.baseline) for c in last.configurations]
    names = {verdict.metric for verdict in last.verdicts if verdict.deciding}
    deciding = [metric for metric in last.metrics if metric.name in names]
    promise = Promise(confidence, limit, order_matters=False)
    return last.model_copy(
        update={
            "verdicts": judge(
                configurations,
                clean,
                deciding,
                confidence=confidence,
                smallest_effect=limit,
                order_matters=False,
                limited=True,
            ),
            "histories": histories(last.factors, configurations, clean, deciding, promise),
            "blocks": len(found),
            "stopped_because": f"measured {count_of(len(found), 'layout')}",
            "run": "",
            "digest": hashlib.sha256("".join(one.digest for one in found).encode()).hexdigest(),
        }
    )


def _means(found: Sequence[Results]) -> Clean:
    """Each configuration's means by layout, as if they were trials of a block."""
    cells = [(layout, own) for layout, results in enumerate(found) for own in results.configurations if own.metrics]
    count = len(cells)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=[layout for layout, _ in cells],
        position=list(range(count)),
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{name: summary.mean for name, summary in own.metrics.items()} for _, own in cells],
        configuration=[own.name for _, own in cells],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return clean_trials(gathering.measurements())
