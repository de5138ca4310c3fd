"""A script for any shell: it keeps what was there, and puts it back. Source: POSIX.1-2017, 2 Shell Command Language."""

from __future__ import annotations

import shlex
from typing import Final

from ajuste.model.plan import Choice, DeviceFeature, Flag, Location
from ajuste.model.plan import FileLocation as PlainFile
from ajuste_profiles.export import (
    Export,
    ExportFile,
    Rendered,
    beside_settings,
    comment,
    not_here,
    on_or_off,
    plain,
    what_became,
    without_words,
)

NAME: Final = "shell"

# Instead of a value: only kept and put back, since the kernel changes it along with another one.
_KEEP: Final = "-"

_BODY: Final = r"""
set -eu
kept=/run/@NAME@ # what was there before; gone at the next boot, as the settings are

value_of() { # KIND PLACE NAME
    case $1 in
    file) cat -- "$2" ;;
    choice) sed -n 's/.*[[(]\([^])]*\)[])].*/\1/p' -- "$2" ;;
    flag) if tr ' ' '\n' <"$2" | grep -qxF -- "$3"; then echo 1; else echo 0; fi ;;
    feature) ethtool -k "$2" | awk -v name="$3:" '$1 == name { print $2 }' ;;
    esac
}

set_to() { # KIND PLACE NAME VALUE
    case $1 in
    file | choice) printf '%s\n' "$4" >"$2" ;;
    flag) if [ "$4" = 1 ]; then printf '%s\n' "$3"; else printf 'NO_%s\n' "$3"; fi >"$2" ;;
    feature) ethtool -K "$2" "$3" "$4" ;;
    esac
}

is_now() { # KIND PLACE NAME VALUE
    [ "$(value_of "$1" "$2" "$3" | tr -s '[:space:]' ' ' | sed 's/ $//')" = "$4" ]
}

keep() { # NUMBER KIND PLACE NAME VALUE
    [ -e "$kept/$1" ] || value_of "$2" "$3" "$4" | tr -s '[:space:]' ' ' | sed 's/ $//' >"$kept/$1"
}

change() {
    [ "$5" = - ] && return 0
    set_to "$2" "$3" "$4" "$5"
    is_now "$2" "$3" "$4" "$5" || echo "$3${4:+ ($4)}: $5 was written, and it is $(value_of "$2" "$3" "$4")" >&2
}

put_back() {
    is_now "$2" "$3" "$4" "$(cat -- "$kept/$1")" || set_to "$2" "$3" "$4" "$(cat -- "$kept/$1")" 2>/dev/null || true
}

is_back() {
    is_now "$2" "$3" "$4" "$(cat -- "$kept/$1")" || { echo "$3${4:+ ($4)} could not be put back" >&2; failed=1; }
}

tell() {
    echo "$3${4:+ ($4)}: $(value_of "$2" "$3" "$4")$([ "$5" = - ] || echo ", to be $5")"
}

case ${1:-} in
apply)
    mkdir -p -- "$kept"
    each keep
    each change
    ;;
undo)
    [ -d "$kept" ] || { echo "nothing was applied since the last boot"; exit 0; }
    failed=0
    each put_back # twice: some settings change others along with them
    each put_back
    each is_back
    [ "$failed" = 0 ] || exit 1
    rm -r -- "$kept"
    ;;
show) each tell ;;
*)
    echo "usage: $0 apply | undo | show" >&2
    exit 2
    ;;
esac
"""


def render(export: Export) -> Rendered:
    """Return ``NAME``, a script with ``apply``, ``undo`` and ``show``."""
    calls, left_out = [], []
    for setting in export.settings:
        call = _call(setting.location, plain(setting.became))
        if call is None:
            left_out.append(without_words(setting))
            continue
        calls += [(what_became(setting), call)]
        calls += [([], companion_call) for place in setting.companions if (companion_call := _call(place, _KEEP))]
    left_out += beside_settings(export)
    if not calls:
        return Rendered((), tuple(left_out))
    lines = ["#!/bin/sh", *comment([*export.evidence, "Usage: apply | undo | show. undo puts back what was there."])]
    lines += [*not_here(left_out), "", "each() { # calls $1 for every setting: NUMBER KIND PLACE NAME VALUE"]
    for number, (remarks, call) in enumerate(calls, 1):
        lines += [f"    {remark}" for remark in remarks]
        lines.append(f'    "$1" {number} {call}')
    text = "\n".join([*lines, "}"]) + "\n" + _BODY.replace("@NAME@", export.name)
    return Rendered(
        (ExportFile(export.name, text, f"/usr/local/sbin/{export.name}", executable=True),), tuple(left_out)
    )


def _call(location: Location, value: str) -> str | None:
    match location:
        case PlainFile(path=path):
            words = ("file", path, "", value)
        case Choice(path=path):
            words = ("choice", path, "", value)
        case Flag(path=path, name=name):
            words = ("flag", path, name, value)
        case DeviceFeature(device=device, name=name):
            words = ("feature", device, name, on_or_off(value))
        case _:
            return None
    return shlex.join(words)
