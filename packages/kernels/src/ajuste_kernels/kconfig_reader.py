"""The process that reads a Kconfig tree: a request on stdin, values and their reasons on stdout, both JSON.

It is a process of its own because reading runs the source's own tests of the compiler and depends on the environment.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kconfiglib import (
    AND,
    BOOL,
    HEX,
    INT,
    MENU,
    NOT,
    OR,
    STR_TO_TRI,
    TRI_TO_STR,
    TRISTATE,
    TYPE_TO_STR,
    Kconfig,
    KconfigError,
    MenuNode,
    Symbol,
    expr_items,
    expr_str,
    expr_value,
    split_expr,
)

from ajuste.model.error import nearest_names
from ajuste.model.kernel import KernelVersion
from ajuste_kernels.kconfig import (
    Cause,
    KconfigAnswer,
    KconfigOption,
    KconfigQuestion,
    KconfigReading,
    OptionExplanation,
)

# Attributes that Kconfig has since 5.14 and 6.18, and kconfiglib 14.1 does not; for what is asked here the second says
# nothing.
_NEW_WORDS: Final = ((re.compile(r"^(\s+)modules\s*$"), r"\1option modules"), (re.compile(r"^\s+transitional\s*$"), ""))
# A dependency with a condition, which Kconfig has since 7.0.
_CONDITIONAL: Final = re.compile(r"(\s+depends on )([^#\n]+) if ([^#\n]+)")
_OPERAND: Final = r"(?:\w+|\"[^\"]*\"|'[^']*')"
_CONDITION: Final = re.compile(rf"({_OPERAND}\s*(?:!=|[<>]=?|=)\s*{_OPERAND})|!\s*(\w+)|(\w+)")
# Since then a number without a default is 0, and not nothing.
_ZERO_BY_DEFAULT: Final = KernelVersion(major=6, minor=8)
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)

DEEPEST: Final = 5
"""Maximum number of steps of a chain that are listed."""

MOST_NAMED: Final = 4
_NEAREST: Final = 3
_Explained = tuple[Cause, str, list[Any]]


class KconfigTree(Kconfig):  # type: ignore[misc]
    """A Kconfig tree as the kernels of today write it, by their rules."""

    def __init__(self) -> None:
        super().__init__("Kconfig", warn=False, warn_to_stderr=False)
        self._implied: dict[Symbol, Any] = {}
        self._zero = self.syms.get("0"), self.y
        if self._zero[0] and KernelVersion.parse(os.environ["KERNELVERSION"]) >= _ZERO_BY_DEFAULT:
            for symbol in self.unique_defined_syms:
                if symbol.orig_type in (INT, HEX):
                    symbol.defaults.append(self._zero)

    def has_place(self, symbol: Symbol) -> bool:
        """Return whether the option has a line in a configuration, by sym_calc_value of scripts/kconfig/symbol.c."""
        if symbol.orig_type in (BOOL, TRISTATE):
            # What another option implies has one even if what it depends on is lacking; not so by kconfiglib.
            return bool(symbol.config_string or expr_value(symbol.weak_rev_dep))
        defaults = (default for default in symbol.defaults if expr_value(default[1]))
        return bool(symbol.config_string) and (symbol.visibility > 0 or next(defaults, None) is not self._zero)

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
    if dependency := _CONDITIONAL.match(line):
        # `A if B` holds where A does, or B is n; negating B is not enough, for the negation of m is m.
        words, needed, condition = dependency.groups()
        return f"{words}({needed}) || !({_CONDITION.sub(_as_bool, condition)})\n"
    return line


def _as_bool(match: re.Match[str]) -> str:
    # y for what is not n.
    comparison, negated, option = match.groups()
    return comparison or (f"({negated} != y)" if negated else f"({option} != n)")


def main() -> None:
    """Answer the request on stdin."""
    reading = KconfigReading.model_validate_json(sys.stdin.buffer.read())
    try:
        tree = KconfigTree()
        answers = [answer(tree, question) for question in reading.asked]
    except (KconfigError, OSError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    sys.stdout.write("[" + ",".join(reply.model_dump_json() for reply in answers) + "]")


def answer(tree: KconfigTree, question: KconfigQuestion) -> KconfigAnswer:
    """Answer a question on ``tree``, whatever was asked before."""
    tree.configure(question.config)
    names = dict.fromkeys([*question.explain, *question.describe])
    # What has no place in the configuration, for lack of what it depends on, has no value.
    symbols = [s for s in tree.unique_defined_syms if tree.has_place(s)] if question.values else []
    return KconfigAnswer(
        explanations={name: explain(tree, name, wanted) for name, wanted in question.explain.items()},
        options={name: option for name in names if (option := _option(tree, name))},
        values={symbol.name: str(symbol.str_value) for symbol in symbols},
        defaults=_defaults(tree, question.defaults),
    )


def _defaults(tree: Kconfig, names: tuple[str, ...]) -> dict[str, str]:
    # No option of a choice has a default of its own.
    defaults = {}
    for name in names:
        symbol = tree.syms.get(name)
        if symbol is None or not symbol.nodes or symbol.choice:
            continue
        user_value = symbol.user_value
        symbol.unset_value()
        defaults[name] = str(symbol.str_value)
        if user_value is not None:
            symbol.set_value(
                user_value if isinstance(user_value, str) else next(k for k, v in STR_TO_TRI.items() if v == user_value)
            )
    return defaults


def _option(tree: Kconfig, name: str) -> KconfigOption | None:
    symbol = tree.syms.get(name)
    if symbol is None or not symbol.nodes:
        return None
    node = next((place for place in symbol.nodes if place.prompt), symbol.nodes[0])
    help_node = next((place for place in symbol.nodes if place.help), node)
    paragraph = " ".join((help_node.help or "").strip().split("\n\n")[0].split())
    sentence = _SENTENCE.match(paragraph)
    return KconfigOption(
        name=name,
        kind=TYPE_TO_STR[symbol.orig_type] if symbol.orig_type else "bool",
        title=node.prompt[0] if node.prompt else "",
        help=sentence[1] if sentence else paragraph,
        menus=_menus(tree, node),
        file=node.filename,
        line=node.linenr,
    )


def _menus(tree: Kconfig, node: MenuNode) -> tuple[str, ...]:
    titles: list[str] = []
    at = node.parent
    while at is not None and at is not tree.top_node:
        if at.prompt and (at.item is MENU or at.is_menuconfig):
            titles.append(at.prompt[0])
        at = at.parent
    return tuple(reversed(titles))


# Why Kconfig gives an option its value: its rules, read backwards, on a tree that has a configuration loaded.
#
# Source: Documentation/kbuild/kconfig-language.rst of the kernel.


def explain(tree: Kconfig, name: str, wanted: str | None, depth: int = 0) -> OptionExplanation:
    """Explain why the option has the value that the loaded configuration gives it, and not the ``wanted`` one, if any.
    Chains of causes are followed ``DEEPEST`` steps.
    """
    symbol = tree.syms.get(name)
    if symbol is None or not symbol.nodes:
        return _unknown(tree, name, wanted)
    verdict = _switch(symbol, wanted) if symbol.orig_type in (BOOL, TRISTATE) else _other(symbol, wanted)
    cause, sentence, deciding = verdict
    names = tuple(dict.fromkeys(option.name for option in deciding if option is not symbol and option.nodes))
    because: list[OptionExplanation] = []
    if depth < DEEPEST:
        for option in names[:MOST_NAMED]:
            # What it takes to change the outcome: more of what is off, less of what is on.
            step = explain(tree, option, "y" if _value(tree.syms[option]) == "n" else None, depth + 1)
            if step.cause != "asked":
                because.append(step)
    return OptionExplanation(
        name=name,
        value=_value(symbol),
        wanted=wanted,
        cause=cause,
        sentence=f"{name} is {_item_value(symbol)}: {sentence}",
        deciding=names,
        because=tuple(because),
    )


def _switch(symbol: Symbol, wanted: str | None) -> _Explained:
    value = symbol.tri_value
    goal = STR_TO_TRI.get(wanted) if wanted is not None else None
    if goal is None:
        # Nothing is wanted: report what is off as if it were to be on, and what is on as if it were to be off.
        chosen = symbol.user_value == value and symbol.visibility >= max(value, 1)
        goal = value if chosen else 0 if value else 2
    if goal > value:
        return _too_low(symbol, goal)
    if goal < value:
        return _too_high(symbol, goal)
    return "asked", "the configuration says so", []


def _too_low(symbol: Symbol, goal: int) -> _Explained:
    value, choice = symbol.tri_value, symbol.choice
    least = goal if symbol.orig_type is TRISTATE else min(goal, 1)
    if expr_value(symbol.direct_dep) < least:
        return _unmet(symbol.direct_dep, least)
    if choice and choice.selection not in (None, symbol):
        return (
            "choice",
            f"only one option of its group can be on, and that is {choice.selection.name}",
            [choice.selection],
        )
    prompts = [node.prompt for node in symbol.nodes if node.prompt]
    if not prompts:
        return _without_prompt(symbol)
    if symbol.visibility < least:
        return _unmet(prompts[0][1], least, "it requires")
    if symbol.user_value is not None and symbol.user_value <= value:
        return "asked", "the configuration says so", []
    return "default", "the configuration does not set it, and its default is off", []


def _too_high(symbol: Symbol, goal: int) -> _Explained:
    selectors = [selector for selector in _operands(symbol.rev_dep) if expr_value(selector) > goal]
    if selectors:
        culprits = [_first_symbol(selector) for selector in selectors]
        return "selected", f"it is selected by {_listed(selector.name for selector in culprits)}", culprits
    choice = symbol.choice
    if choice and choice.selection is symbol:
        if choice.user_selection is symbol:
            return "asked", "the configuration chose it from its group", []
        return "default", "it is the default of its group", []
    if not any(node.prompt for node in symbol.nodes):
        return _by_default(symbol, "hidden", "it has no prompt; other options determine it")
    if symbol.visibility and symbol.user_value is not None and symbol.user_value > goal:
        return "asked", "the configuration says so", []
    return _by_default(symbol, "default", "this is its default")


def _other(symbol: Symbol, wanted: str | None) -> _Explained:
    # Of texts and numbers.
    if expr_value(symbol.direct_dep) == 0:
        return _unmet(symbol.direct_dep, 1)
    if symbol.orig_type in (INT, HEX) and wanted is not None:
        base = 16 if symbol.orig_type is HEX else 10
        for low, high, condition in symbol.ranges:
            if expr_value(condition):
                if not _within(wanted, low.str_value, high.str_value, base):
                    return "range", f"it must be between {low.str_value} and {high.str_value}", []
                break
    if not any(node.prompt for node in symbol.nodes):
        return _by_default(symbol, "hidden", "it has no prompt; other options determine it")
    if symbol.visibility == 0:
        prompts = [node.prompt for node in symbol.nodes if node.prompt]
        return _unmet(prompts[0][1], 1, "it requires")
    if symbol.user_value is not None:
        return "asked", "the configuration says so", []
    return _by_default(symbol, "default", "this is its default")


def _within(wanted: str, low: str, high: str, base: int) -> bool:
    try:
        return int(low, base) <= int(wanted, base) <= int(high, base)
    except ValueError:
        return False


def _unmet(expression: Any, least: int, needs: str = "it requires") -> _Explained:
    terms = list(_deciding(expression, least))
    parts = [f"{expr_str(term, _item_name)} ({_state(term)})" for term in terms[:MOST_NAMED]]
    more = len(terms) - MOST_NAMED
    if more > 0:
        parts.append(f"{more} more")
    deciding = [item for term in terms for item in sorted(expr_items(term), key=lambda symbol: symbol.name or "")]
    return "dependency", f"{needs} {_listed(parts)}", [symbol for symbol in deciding if isinstance(symbol, Symbol)]


def _without_prompt(symbol: Symbol) -> _Explained:
    others = [_first_symbol(item) for item in _operands(symbol.rev_dep)]
    defaults = [_first_symbol(condition) for _, condition in symbol.defaults if not _is_constant(condition)]
    if others:
        names = _listed([item.name for item in others[:MOST_NAMED]] + (["others"] if others[MOST_NAMED:] else []))
        return "hidden", f"it has no prompt, and no option that selects it is on: {names}", others
    if defaults:
        names = _listed(item.name for item in defaults[:MOST_NAMED])
        return "hidden", f"it has no prompt; {names} determine it", defaults
    return "hidden", "it has no prompt, and no option selects it", []


def _by_default(symbol: Symbol, cause: Cause, words: str) -> _Explained:
    for value, condition in symbol.defaults:
        if expr_value(condition):
            items = expr_items(condition) | expr_items(value)
            deciding = sorted((option for option in items if not option.is_constant), key=lambda option: option.name)
            where = "" if _is_constant(condition) else f" where {expr_str(condition, _item_name)}"
            return cause, f"{words}{where}", deciding
    return cause, words, []


def _deciding(expression: Any, least: int) -> Iterator[Any]:
    # The smallest parts of `expression` each of which keeps it below `least` (1: m, 2: y).
    for term in split_expr(expression, AND):
        if expr_value(term) < least:
            if isinstance(term, tuple) and term[0] is AND:
                yield from _deciding(term, least)
            else:
                yield term


def _operands(expression: Any) -> list[Any]:
    # What an option is selected by, each with its condition.
    return [operand for operand in split_expr(expression, OR) if not _is_constant(operand)]


def _first_symbol(expression: Any) -> Symbol:
    # Of `selector && condition` the selector.
    while isinstance(expression, tuple):
        expression = expression[1]
    return expression


def _is_constant(expression: Any) -> bool:
    return isinstance(expression, Symbol) and bool(expression.is_constant)


def _item_name(item: Any) -> str:
    if not isinstance(item, Symbol):
        return item.name or "a group"
    return str(item.name) if not item.is_constant or item.name in STR_TO_TRI else f'"{item.name}"'


def _state(term: Any) -> str:
    if _is_constant(term):
        return "a failing test of the source or the compiler"
    if isinstance(term, tuple) and term[0] is NOT and isinstance(term[1], Symbol):
        return f"{term[1].name} is {_value(term[1])}"
    if isinstance(term, tuple):
        items = sorted(
            (item for item in expr_items(term) if isinstance(item, Symbol) and not item.is_constant), key=_item_name
        )
        states = [f"{item.name} is {_item_value(item)}" for item in items[:MOST_NAMED]]
        return ", ".join(states + (["…"] if items[MOST_NAMED:] else []))
    return f"it is {_item_value(term)}"


def _item_value(item: Any) -> str:
    if isinstance(item, Symbol) and not item.nodes:
        return "unknown to this architecture"
    return _value(item) or "empty"


def _value(item: Any) -> str:
    if isinstance(item, Symbol) and item.orig_type not in (BOOL, TRISTATE):
        return str(item.str_value)
    return str(TRI_TO_STR[item.tri_value])


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} and {unique[-1]}"


def _unknown(tree: Kconfig, name: str, wanted: str | None) -> OptionExplanation:
    option, known = name.upper().removeprefix("CONFIG_"), [symbol.name for symbol in tree.unique_defined_syms]
    # First those that have the name as a word of theirs, then those with a similar spelling.
    within = sorted((other for other in known if f"_{option}_" in f"_{other}_"), key=len)
    alike = nearest_names(option, known, most=_NEAREST, parts=False)
    nearest = tuple(dict.fromkeys([*within, *alike]))[:_NEAREST]
    sentence = f"this kernel has no option {name}"
    if nearest:
        sentence += f"; similar: {_listed(nearest)}"
    return OptionExplanation(name=name, value="", wanted=wanted, cause="unknown", sentence=sentence, nearest=nearest)


if __name__ == "__main__":
    main()
