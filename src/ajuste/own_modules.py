"""Which kernel modules of Ajuste's own the machines of a study need, and their building before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ajuste.home import Home
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelImage
from ajuste.study.resolved import Machine, ResolvedConfiguration, ResolvedStudy
from ajuste.target.target import Say


def built_modules(
    resolved: ResolvedStudy, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[Machine, tuple[Path, ...]]:
    """The files of the modules by the machine that loads them; a machine that needs none is left out.

    Raises RequestError where one cannot be built on this machine, with how to do without, and RunError where it does
    not build.
    """
    found: dict[Machine, dict[str, Path]] = {}
    for configuration in resolved.configurations:
        for name in configuration.modules:
            of_machine = found.setdefault(configuration.machine, {})
            if name not in of_machine:
                of_machine[name] = _built(name, images[configuration.kernel], configuration, resolved, home, say)
    return {machine: tuple(files.values()) for machine, files in found.items()}


def _built(
    name: str, image: KernelImage, wanting: ResolvedConfiguration, resolved: ResolvedStudy, home: Home, say: Say
) -> Path:
    from ajuste.kernel.own_module import build_module

    try:
        return build_module(name, image, home, say)
    except AjusteError as failure:
        hints = [failure.hint, _without(wanting, resolved)]
        raise type(failure)(failure.message, hint="\n".join(filter(None, hints)) or None) from failure


def _without(wanting: ResolvedConfiguration, resolved: ResolvedStudy) -> str | None:
    """How to leave out the level that needs a module, if it is one level that does."""
    for factor in resolved.factors:
        level = wanting.configuration.levels[factor.name]
        needing = {c.configuration.levels[factor.name] for c in resolved.configurations if c.modules}
        if needing == {level} and level != factor.baseline:
            return f'or leave out what needs it: --without "{factor.name}={level}"'
    return None
