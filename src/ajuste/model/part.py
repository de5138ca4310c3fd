"""Parts: the kinds of things that a machine has several of, each with settings of its own."""

from __future__ import annotations

import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Part(BaseModel):
    """A kind of thing that there are several of, such as a CPU, a disk or a network interface.

    In the paths of the catalogue ``{name}`` stands for one of them. ``pattern`` is the regular expression of a whole
    name; its first group, if it has one, is what stands in the path. ``there`` is where the kernel shows them: a glob
    pattern whose last component matches them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(pattern=r"^[a-z]+$")
    title: str
    pattern: str
    example: str
    there: str = Field(pattern=r"^/(proc|sys)/")

    @model_validator(mode="after")
    def _example_fits(self) -> Self:
        if self.read(self.example) != self.example:
            raise ValueError(f"the example {self.example!r} is no {self.title} by the pattern")
        return self

    def read(self, text: str) -> str | None:
        """The name that ``text`` means, fit to stand in a path, or ``None`` if it can be no such thing.

        Never has a slash or two dots in a row, whatever the pattern lets through.
        """
        match = re.fullmatch(self.pattern, text, re.ASCII)
        if not match:
            return None
        name: str = match[1] if match.re.groups else match[0]
        return name if name and "/" not in name and ".." not in name and name != "." else None
