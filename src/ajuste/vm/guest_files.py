"""What a guest is given of this machine."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class GuestFiles(BaseModel):
    """``programs`` are absolute paths on this machine; the guest has them, with the libraries they need, at the same
    paths. ``study_files`` (name relative to ``/study`` → file of this machine) keep their execute permission.
    ``modules`` are names of kernel modules that are loaded, with those they need, before anything else is done; a name
    may be followed by parameters: ``null_blk memory_backed=1 gb=1``. ``own_modules`` are modules of Ajuste's own, built
    for the very kernel, as files ``NAME.ko`` of this machine; they are loaded after those.
    ``schedulers`` are names of BPF schedulers (sched_ext) that were built with the kernel.

    ``packages`` names the Debian package of a program (file name → package) for the error about a missing one.
    """

    model_config = ConfigDict(frozen=True)
    programs: tuple[Path, ...] = ()
    study_files: dict[str, Path] = Field(default_factory=dict)
    modules: tuple[str, ...] = ()
    own_modules: tuple[Path, ...] = ()
    schedulers: tuple[str, ...] = ()
    packages: dict[str, str] = Field(default_factory=dict)
