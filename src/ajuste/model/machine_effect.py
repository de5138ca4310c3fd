"""Effects by machine, where a run was measured on several: whether one answer is right for all of them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ajuste.model.metric import Scale
from ajuste.model.verdict import Word

Agreement = Literal["alike", "differ", "depends", "unknown"]
"""*alike*: no difference is seen. *differ*: how large the effect is depends on the machine. *depends*: so does what the
verdict would be. *unknown*: too few blocks on more than one machine to tell.
"""


class MachineEffect(BaseModel):
    """The effect in the ``blocks`` of one machine, as in ``Finding``. ``verdict`` is the machine's own; its interval is
    so wide that those of all machines hold together.
    """

    model_config = ConfigDict(frozen=True)
    machine: str
    blocks: int
    verdict: Word
    estimate: float | None
    low: float | None
    high: float | None


class AcrossMachines(BaseModel):
    """How a configuration's effects on a metric compare across machines. ``p_value`` is of "the same on all": None for
    a quantile, and where a machine has too few blocks. ``says`` is a sentence.
    """

    model_config = ConfigDict(frozen=True)
    configuration: str
    metric: str
    unit: str
    scale: Scale
    machines: tuple[MachineEffect, ...]
    p_value: float | None
    agreement: Agreement
    says: str
