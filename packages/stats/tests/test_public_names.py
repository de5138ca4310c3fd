"""The public names: each is documented, loads by itself, and needs nothing but NumPy and SciPy."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import ajuste_stats

PACKAGE = Path(inspect.getfile(ajuste_stats)).parent
MODULES = sorted(
    ".".join(("ajuste_stats", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py"
)
CALLABLES = [name for name in ajuste_stats.__all__ if inspect.isfunction(getattr(ajuste_stats, name))]
CLASSES = [name for name in ajuste_stats.__all__ if inspect.isclass(getattr(ajuste_stats, name))]


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The functions and classes that a module defines for others, with the methods of classes."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{module.__name__}.{name}", value


def test_all_names_are_there_and_no_others_are_listed() -> None:
    listed = {name for names in ajuste_stats._HOMES.values() for name in names}
    assert listed == set(ajuste_stats.__all__)
    assert len(ajuste_stats.__all__) == len(set(ajuste_stats.__all__))
    assert set(dir(ajuste_stats)) == {*ajuste_stats.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ajuste_stats.nothing  # noqa: B018


def test_no_public_name_is_hidden_by_a_module_of_that_name() -> None:
    for module in MODULES:
        import_module(module)
    for home, names in ajuste_stats._HOMES.items():
        for name in names:
            assert getattr(ajuste_stats, name) is getattr(import_module(f"ajuste_stats.{home}"), name)


def test_the_version_is_that_of_the_distribution() -> None:
    assert ajuste_stats.__version__ == version("ajuste-stats")


@pytest.mark.parametrize("module", MODULES)
def test_everything_that_others_may_use_is_documented(module: str) -> None:
    loaded = import_module(module)
    assert loaded.__doc__
    assert [name for name, value in public(loaded) if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("name", CALLABLES)
def test_the_docstring_of_a_function_names_every_argument(name: str) -> None:
    function = getattr(ajuste_stats, name)
    text = inspect.getdoc(function)
    assert text is not None
    assert text.split("\n")[0].endswith((".", ",", ":")) or "\n" in text
    arguments = inspect.signature(function).parameters
    unnamed = [argument for argument in arguments if not re.search(rf"``{argument}``", text)]
    inherited = "Other arguments are those of ``compare``." in text
    assert not inherited or set(unnamed) <= set(inspect.signature(ajuste_stats.compare).parameters)
    assert inherited or unnamed == []


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstrings_of_a_class_name_every_field_and_property(name: str) -> None:
    described = getattr(ajuste_stats, name)
    if typing.is_protocol(described) if hasattr(typing, "is_protocol") else getattr(described, "_is_protocol", False):
        return
    text = inspect.getdoc(described) or ""
    fields = getattr(described, "__dataclass_fields__", {})
    assert [field for field in fields if not re.search(rf"``[^`]*\b{field}\b[^`]*``", text)] == []
    members = [
        (member, value)
        for member, value in vars(described).items()
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    assert [member for member, value in members if not inspect.getdoc(value)] == []


def test_it_needs_nothing_but_numpy_and_scipy() -> None:
    script = (
        f"import sys; import {', '.join(MODULES)}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    plain = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            "import sys, numpy, scipy.special; print(*{n.partition('.')[0] for n in sys.modules})",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split()) - set(plain.stdout.split()) - sys.stdlib_module_names
    assert loaded == {"ajuste_stats"}


def test_the_words_load_no_library() -> None:
    script = "import sys; import ajuste_stats.terms; print('numpy' in sys.modules or 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_special_functions_load_when_something_is_computed() -> None:
    """Loading them takes longer than all modules here, and a plan of an experiment computes nothing with them."""
    script = f"import sys; import {', '.join(MODULES)}; print('scipy.special' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
