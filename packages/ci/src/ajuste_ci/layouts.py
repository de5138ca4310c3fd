"""Builds as units: each layout of a program's code was measured by itself, and their means are compared.

The cost of a layout is the same in all trials of a build, so trials of one build do not predict the next (Mytkowicz,
Diwan, Hauswirth and Sweeney 2009, "Producing wrong data without doing anything obviously wrong!", ASPLOS XIV;
Curtsinger and Berger 2013, "Stabilizer: statistically sound performance evaluation", ASPLOS XVIII).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.verdict import judge
from ajuste.model.measurements import Gathering
from ajuste.model.results import Results
from ajuste.model.trial import Configuration
from ajuste.model.wording import count_of
from ajuste_ci.versions.histories import histories


def of_layouts(results: Sequence[Results], *, confidence: float, limit: float) -> Results:
    """Return one result of ``results``, one per layout, as its blocks; ``limit`` is a share of the baseline."""
    last = results[-1]
    clean = _average_layouts(results)
    configurations = [
        Configuration(name=c.name, levels=c.levels, baseline=c.baseline, against=c.against) for c in last.configurations
    ]
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
            "blocks": len(results),
            "stopped_because": f"measured {count_of(len(results), 'layout')}",
            "run": "",
            "digest": hashlib.sha256("".join(layout.digest for layout in results).encode()).hexdigest(),
        }
    )


def _average_layouts(results: Sequence[Results]) -> Clean:
    cells = [
        (number, measured)
        for number, layout in enumerate(results)
        for measured in layout.configurations
        if measured.metrics
    ]
    count = len(cells)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=[number for number, _ in cells],
        position=list(range(count)),
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{name: summary.mean for name, summary in measured.metrics.items()} for _, measured in cells],
        configuration=[measured.name for _, measured in cells],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return clean_trials(gathering.measurements())
