"""What is kept of what programs print in a trial: of a long text both ends, of what is no text the beginning."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from ajuste.model.event import Output, parse_event

LONGEST_TEXT: Final = 1 << 16
"""Characters of a stream that are kept: half of them of its beginning, half of its end."""
LONGEST_OTHER: Final = 1 << 10
"""Characters that are kept of a stream which is no text."""
_REPLACED: Final = "\ufffd"
_CONTROLS: Final = dict.fromkeys(set(range(32)) - set(map(ord, "\a\b\t\n\v\f\r\x1b")), _REPLACED)
_OTHER_SHARE: Final = 0.05
"""From so many of its characters on that are no text, a stream is none."""


def cut_lines(lines: str) -> str:
    """The agent's ``lines`` without output that is too long to keep.

    The rest is counted in its event, and its place has the SHA-256 of the whole: so a digest of the lines is
    still one of all that was printed.
    """
    if len(lines) <= LONGEST_OTHER:
        return lines
    return "\n".join(_cut_line(line) if len(line) > LONGEST_OTHER else line for line in lines.split("\n"))


def _cut_line(line: str) -> str:
    event = parse_event(line)
    if not isinstance(event, Output) or (shorter := cut(event)) is event:
        return line
    return json.dumps(shorter.model_dump(), separators=(",", ":"))


def cut(output: Output) -> Output:
    """The output with the rest counted in ``dropped_bytes``: bytes that are not UTF-8 as one each."""
    text, longest = output.text, _longest(output.text)
    if len(text) <= longest:
        return output
    end = longest // 2 if longest == LONGEST_TEXT else 0
    begin = longest - end
    left_out = _size(text[begin : len(text) - end])
    whole = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    dropped = output.dropped_bytes + left_out
    mark = f"\n[{dropped:,} bytes left out; SHA-256 of what was read: {whole}]\n"
    kept = text[:begin] + mark + (text[-end:] if end else "")
    return output.model_copy(update={"text": kept, "dropped_bytes": dropped})


def _longest(text: str) -> int:
    if len(text) <= LONGEST_OTHER:
        return LONGEST_TEXT
    is_other = "\0" in text or text.translate(_CONTROLS).count(_REPLACED) > _OTHER_SHARE * len(text)
    return LONGEST_OTHER if is_other else LONGEST_TEXT


def _size(text: str) -> int:
    return len(text.replace(_REPLACED, "?").encode(errors="surrogatepass"))
