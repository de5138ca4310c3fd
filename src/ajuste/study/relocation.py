"""The same study elsewhere: one for a guest on this machine, or one for this machine in a guest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from ajuste.model.configuration import KERNEL_FACTOR
from ajuste.model.error import RequestError
from ajuste.study.job import DiskTable
from ajuste.study.schema import FactorTable, Study, TargetTable
from ajuste.study.settings import KERNEL_ARGUMENTS, names_set

Where = Literal["vm", "host"]


def relocated(study: Study, where: Where, disk: str = "") -> Study:
    """``study`` with a target of that kind; as it is if it has one.

    On this machine the kernel, clock and size of the guest mean nothing, and neither do the guest's own devices: a file
    system is made on a loop device instead, and fixed settings of the device are left out. The workload has its
    parameters for this machine, and a study of a disk has ``disk``, by the kernel's name for it. Raises RequestError
    where the study cannot be carried out without them.
    """
    if study.target.kind == where:
        return study
    if where == "vm":
        return _in_guest(study)
    if study.disk is not None and not disk:
        raise _impossible(study, f"it is about the guest's disk {study.disk.name}")
    return _on_host(_on_disk(study, study.disk, disk) if study.disk is not None else study)


def _in_guest(study: Study) -> Study:
    return study.model_copy(update={"target": TargetTable(kind="vm", clock="wall")})


def _on_disk(study: Study, own: DiskTable, name: str) -> Study:
    """``study`` of the disk ``name`` instead of its ``own``."""

    def renamed(text: str) -> str:
        return text.replace(f"[{own.name}]", f"[{name}]")

    def moved(values: Mapping[str, str]) -> dict[str, str]:
        return {key: f"/dev/{name}" if value == own.device else value for key, value in values.items()}

    factors = tuple(
        factor.model_copy(
            update={
                "name": renamed(factor.name),
                "settings": {
                    level: {renamed(key): value for key, value in table.items()}
                    for level, table in factor.settings.items()
                },
            }
        )
        for factor in study.factors
    )
    job = study.workload
    workload = job.model_copy(
        update={"parameters": moved(job.parameters), "host_parameters": moved(job.host_parameters)}
    )
    disk = own.model_copy(update={"device": f"/dev/{name}"})
    return study.model_copy(update={"factors": factors, "workload": workload, "disk": disk})


def _on_host(study: Study) -> Study:
    device = PurePosixPath(study.scratch.device).name if study.scratch and study.scratch.device else ""
    kept = tuple(factor for factor in study.factors if not _fixes(factor, device))
    for factor in kept:
        if {KERNEL_FACTOR, KERNEL_ARGUMENTS} & set(names_set(factor)):
            raise _impossible(study, f"it varies the {factor.name} by booting guests")
        if device and any(f"[{device}]" in name for name in names_set(factor)):
            raise _impossible(study, f"it varies a setting of the guest's disk {device}")
    if device and any(key.startswith(f"{device}.") for own in study.workload.samplers for key in own.keys):
        raise _impossible(study, f"it reads figures of the guest's disk {device}")
    scratch = study.scratch.model_copy(update={"device": None}) if study.scratch else None
    target = TargetTable(kind="host", clock="wall")
    parameters = {**study.workload.parameters, **study.workload.host_parameters}
    workload = study.workload.model_copy(update={"parameters": parameters})
    return study.model_copy(update={"factors": kept, "scratch": scratch, "target": target, "workload": workload})


def _fixes(factor: FactorTable, device: str) -> bool:
    """Whether it has one level only, for something of ``device``."""
    return bool(device) and len(factor.levels) == 1 and f"[{device}]" in factor.name


def _impossible(study: Study, why: str) -> RequestError:
    return RequestError(
        f"{study.name} cannot be carried out on this machine: {why}", hint="leave out --target; it runs in a guest"
    )
