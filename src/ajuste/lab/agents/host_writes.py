"""What a client may do to this machine itself: nothing, unless a person named the tunables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.study.schema import Study
from ajuste.study.settings import canonical, names_set

_COMMANDS: Final = ("command", "setup", "prepare", "cleanup")


def require_host_allowed(study: Study, allowed: Collection[str], known: Catalogue) -> None:
    """Raises RequestError for a study of this machine that writes anything but what is ``allowed``, or that runs
    anything but workloads of the catalogue.
    """
    if study.target.kind != "host":
        return
    if not allowed:
        raise RequestError(
            "this study runs on this machine, and this session may only use guests",
            hint='set target.kind = "vm" with a kernel, or ask for ajuste mcp --allow-host NAME,…',
        )
    names = {canonical(name, known) for factor in study.factors for name in names_set(factor)}
    if beyond := sorted(name for name in names if name not in allowed):
        raise RequestError(
            f"this session may not change {', '.join(beyond)[:200]} of this machine; allowed: {', '.join(allowed)}",
            hint="measure it in a guest, or ask the person to allow it",
        )
    table = study.workload
    own = [name for name in _COMMANDS if getattr(table, name) is not None]
    own += ["variant"] if table.variants else []
    own += ["service"] if table.services else []
    own += ["background"] if any(load.kind is None for load in table.background) else []
    own += ["as_root"] if table.as_root else []
    own += ["scratch"] if study.scratch else []
    own += ["disk"] if study.disk else []
    if own:
        raise RequestError(
            f"on this machine this session may only run workloads of the catalogue; the study has {', '.join(own)}",
            hint="use a workload of the catalogue, or measure in a guest",
        )
