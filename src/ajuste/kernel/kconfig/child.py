"""The process that reads a Kconfig tree: a request on stdin, what was found on stdout, both JSON.

It is a process of its own because reading runs the source's own tests of the compiler and depends on the environment.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

from kconfiglib import (
    BOOL,
    MENU,
    STR_TO_TRI,
    TRISTATE,
    TYPE_TO_STR,
    Kconfig,
    KconfigError,
    MenuNode,
    Symbol,
    expr_value,
)

from ajuste.kernel.kconfig.reasoning import explain
from ajuste.kernel.kconfig.tree import KconfigAnswer, KconfigOption, KconfigQuestion, KconfigReading

_NEW_WORDS: Final = ((re.compile(r"^(\s+)modules\s*$"), r"\1option modules"), (re.compile(r"^\s+transitional\s*$"), ""))
"""Attributes that Kconfig has since 5.14 and 6.18, and kconfiglib 14.1 does not; for what is asked here the second
says nothing."""
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)


class KconfigTree(Kconfig):  # type: ignore[misc]
    """A Kconfig tree as the kernels of today write it, by their rules."""

    def __init__(self) -> None:
        super().__init__("Kconfig", warn=False, warn_to_stderr=False)
        self._implied: dict[Symbol, Any] = {}

    def configure(self, config: Mapping[str, str]) -> None:
        """Load a configuration, and nothing of another one."""
        self.unset_values()
        for symbol, expression in self._implied.items():
            symbol.weak_rev_dep = expression
        self._implied.clear()
        for name, value in config.items():
            symbol = self.syms.get(name)
            if symbol is None or not symbol.nodes:
                continue
            symbol.set_value(value)
            if value == "m":
                # `imply` made a module part of the image before 5.7, and kconfiglib still does so.
                self._implied[symbol] = symbol.weak_rev_dep
                symbol.weak_rev_dep = self.n

    def _open(self, filename: str, mode: str) -> Any:
        stream = super()._open(filename, mode)
        if mode != "r":
            return stream
        with stream:
            return io.StringIO("".join(map(_as_known, stream)))


def _as_known(line: str) -> str:
    for pattern, instead in _NEW_WORDS:
        if pattern.match(line):
            return pattern.sub(instead, line.rstrip("\n")) + "\n"
    return line


def main() -> None:
    """Answer the request on stdin."""
    reading = KconfigReading.model_validate_json(sys.stdin.buffer.read())
    try:
        tree = KconfigTree()
        answers = [answer(tree, asked) for asked in reading.asked]
    except (KconfigError, OSError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    sys.stdout.write("[" + ",".join(one.model_dump_json() for one in answers) + "]")


def answer(tree: KconfigTree, asked: KconfigQuestion) -> KconfigAnswer:
    """What ``tree`` says to what was asked, whatever was asked before."""
    tree.configure(asked.config)
    names = dict.fromkeys([*asked.explain, *asked.describe])
    return KconfigAnswer(
        explanations={name: explain(tree, name, wanted) for name, wanted in asked.explain.items()},
        options={name: option for name in names if (option := _option(tree, name))},
        values=_values(tree) if asked.values else {},
        defaults=_defaults(tree, asked.defaults),
    )


def _values(tree: Kconfig) -> dict[str, str]:
    """What the configuration comes to. What has no place in it, for lack of what it depends on, is left out."""
    return {
        symbol.name: str(symbol.str_value)
        for symbol in tree.unique_defined_syms
        if symbol.config_string or _is_implied(symbol)
    }


def _is_implied(symbol: Symbol) -> bool:
    """Whether an option has a place because another implies it, even if what it depends on is lacking: so says
    sym_calc_value of scripts/kconfig/symbol.c, and kconfiglib does not.
    """
    return symbol.orig_type in (BOOL, TRISTATE) and bool(expr_value(symbol.weak_rev_dep))


def _defaults(tree: Kconfig, names: tuple[str, ...]) -> dict[str, str]:
    """What each option would be if the configuration did not name it. Of a choice none has a default of its own."""
    found = {}
    for name in names:
        symbol = tree.syms.get(name)
        if symbol is None or not symbol.nodes or symbol.choice:
            continue
        kept = symbol.user_value
        symbol.unset_value()
        found[name] = str(symbol.str_value)
        if kept is not None:
            symbol.set_value(kept if isinstance(kept, str) else next(k for k, v in STR_TO_TRI.items() if v == kept))
    return found


def _option(tree: Kconfig, name: str) -> KconfigOption | None:
    symbol = tree.syms.get(name)
    if symbol is None or not symbol.nodes:
        return None
    node = next((one for one in symbol.nodes if one.prompt), symbol.nodes[0])
    help_node = next((one for one in symbol.nodes if one.help), node)
    return KconfigOption(
        name=name,
        kind=TYPE_TO_STR[symbol.orig_type] if symbol.orig_type else "bool",
        title=node.prompt[0] if node.prompt else "",
        help=_first_sentence(help_node.help or ""),
        menus=_menus(tree, node),
        file=node.filename,
        line=node.linenr,
    )


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found[1] if found else paragraph


def _menus(tree: Kconfig, node: MenuNode) -> tuple[str, ...]:
    titles: list[str] = []
    at = node.parent
    while at is not None and at is not tree.top_node:
        if at.prompt and (at.item is MENU or at.is_menuconfig):
            titles.append(at.prompt[0])
        at = at.parent
    return tuple(reversed(titles))


if __name__ == "__main__":
    main()
