"""Transfer: whether what a guest answered holds on the machine itself."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from ajuste.model.base import BaseModel
from ajuste.model.metric import Direction, Scale
from ajuste.model.verdict import Word

TransferAgreement = Literal["same", "opposite", "different", "undecided"]
"""*same*: both say the same for certain. *opposite*: both see an effect, in opposite directions. *different*: one sees
an effect, the other none that matters. *undecided*: at least one of them does not know.
"""

SizeAgreement = Literal["alike", "larger on the host", "smaller on the host"]


class TransferSide(BaseModel):
    """What one run says, as in ``Finding``."""

    model_config = ConfigDict(frozen=True)
    verdict: Word
    estimate: float | None
    low: float | None
    high: float | None
    blocks: int


class TransferRow(BaseModel):
    """One question: ``configuration`` against the baseline on ``metric``. ``size`` compares the effects where both runs
    see one in the same direction: *alike* where their intervals overlap.
    """

    model_config = ConfigDict(frozen=True)
    configuration: str
    metric: str
    unit: str
    direction: Direction
    scale: Scale
    deciding: bool
    guest: TransferSide
    host: TransferSide
    agreement: TransferAgreement
    size: SizeAgreement | None = None


class TransferRun(BaseModel):
    """``clock`` is ``virtual`` or ``wall``; ``digest`` that of all that was measured."""

    model_config = ConfigDict(frozen=True)
    run: str
    study: str
    clock: str
    digest: str
    level: float


class Transfer(BaseModel):
    """``answer`` in a sentence or two. ``only_guest`` and ``only_host`` are questions that the other run did not ask,
    ``notes`` sentences to know.
    """

    model_config = ConfigDict(frozen=True)
    schema_version: int = 1
    answer: str
    guest: TransferRun
    host: TransferRun
    rows: tuple[TransferRow, ...]
    only_guest: tuple[str, ...] = ()
    only_host: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
