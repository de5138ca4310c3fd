"""Changes to pages for the site: links that leave docs/ become plain text, and file names of blocks become titles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
FENCE: Final = re.compile(r"^```(\w+) ([\w.-]+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - MkDocs hands it over by name
    """The text of a page as the site shows it (called by MkDocs)."""
    docs = Path(config["docs_dir"]).resolve()
    folder = (docs / page.file.src_uri).parent

    def inside(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        return match[0] if target.is_relative_to(docs) else match[1]

    return FENCE.sub(r'```\1 title="\2"', LINK.sub(inside, markdown))
