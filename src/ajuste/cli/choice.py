"""The study that a command line chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ajuste.catalogue.loader import Catalogue
from ajuste.commas import between_commas
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import Place, RequestError
from ajuste.study.builtin import find_study
from ajuste.study.job import DiskTable
from ajuste.study.omission import without_levels
from ajuste.study.parameters import with_parameters
from ajuste.study.read import read_study
from ajuste.study.relocation import Where, relocated
from ajuste.study.schema import Study


def chosen_study(
    name: str,
    catalogue: Catalogue,
    kernel: str | None,
    seed: int | None,
    target: Where | None = None,
    parameter: Sequence[str] | None = None,
    disk: Callable[[DiskTable], str] | None = None,
    without: Sequence[str] | None = None,
) -> Study:
    """The study of that name or file, with the choices of the command line. ``disk`` gives the name of one on this
    machine to a study that is about a disk. Raises RequestError.
    """
    kernels = None if kernel is None else _kernels(kernel)
    study = read_study(find_study(name), catalogue, parse_kernel=parse_spec)
    study = without_levels(study, without or ())
    if kernel is not None and any(factor.kernels for factor in study.factors):
        raise RequestError(f"--kernel {kernel}: the kernel is a factor of {name}; change its levels in the study")
    if target is not None:
        study = relocated(study, target, disk(study.disk) if target == "host" and disk and study.disk else "")
        if target == "vm" and not (kernel or study.kernels):
            raise RequestError("--target vm: which kernel is to be booted?", hint="--kernel debian:6.12, for example")
    if kernel is not None and study.target.kind == "host":
        raise RequestError(f"--kernel {kernel}: this machine has one kernel, the running one", hint="--target vm")
    study = study.with_choices(kernel=kernels, seed=seed)
    return with_parameters(study, dict(_named(text) for text in parameter), catalogue) if parameter else study


def require_disk_wanted(study: Study, disk: str | None) -> None:
    """Raises RequestError for a ``--disk`` that means nothing."""
    if disk is not None and (study.disk is None or study.target.kind != "host"):
        why = "the study is about no disk" if study.disk is None else "the guest has a disk of its own"
        raise RequestError(f"--disk {disk}: {why}", hint=None if study.disk is None else "--target host")


def _kernels(text: str) -> tuple[str, ...]:
    specs = between_commas(text, "kernel", hint="expected KERNEL or KERNEL,KERNEL", place=Place(f"--kernel {text}"))
    for spec in specs:
        parse_spec(spec)
    if len(set(specs)) < len(specs):
        raise RequestError(f"--kernel {text}: the same kernel is named twice; expected different ones")
    return specs


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise RequestError("expected NAME=VALUE, such as mode=pipes", place=Place(f"--parameter {text}"))
    return name.strip(), value.strip()
