"""The three boots, and what they must show. The files beside this one are the machine's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from benchmarks.comparison import Comparison
from benchmarks.reboots.emulated import CACHE, KEPT, conduct
from benchmarks.reboots.image import image

BOOTS: Final = 3
OLD_AND_NEW: Final = {"vm.dirty_background_ratio": ("20", "2"), "thp.enabled": ("always", "never")}
_FILES: Final = Path(__file__).parent
_PLACE: Final = "/opt/adoption"
_COMMAND: Final = ("sh", "-c", f"mkdir -p {_PLACE} && tar -xf /dev/vdd -C {_PLACE} && exec sh {_PLACE}/boot.sh")
_STEPS: Final = ("dirty", "huge", "undo")


def measure() -> Iterable[Comparison]:
    """Boot three times. The first call needs root, and makes the Debian."""
    directory = KEPT / "adoption"
    ended = conduct(image(CACHE), _COMMAND, keep=directory, files=_FILES)
    boots = Boots(directory / "emulated/adoption")
    wrong = [*boots.wrong, *([] if ended.as_before else ["files in /etc are not as before"])]
    print(*wrong, sep="\n", file=sys.stderr)
    yield Comparison(
        name="adoption",
        what=f"two winners adopted, over a reboot and undone, in {len(ended.command_lines)} boots",
        unit="",
        figures={
            "readings of each setting, per boot": [float(seen["readings"]) for seen in boots.seen],
            "readings that are neither value": [float(count) for count in boots.neither],
            "longest time between two readings (ms)": [seen["longest_apart_ms"] for seen in boots.seen],
            **{f"{name} (s)": seconds for name, seconds in boots.seconds.items()},
            "seconds of the emulator": [ended.seconds],
        },
        goal="always the old or the new value, the new one after a reboot, and the old one once it is undone",
        reached=not wrong and len(ended.command_lines) == BOOTS,
    )


class Boots:
    """Files in ``directory`` that the machine kept of its boots."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.seen = [json.loads(self._text(boot, "seen", "json")) for boot in range(1, BOOTS + 1)]

    @property
    def neither(self) -> list[int]:
        """Readings of each boot that are neither the old nor the new value."""
        return [
            sum(
                count
                for name, counts in seen["seen"].items()
                for value, count in counts.items()
                if _chosen(value) not in OLD_AND_NEW[name]
            )
            for seen in self.seen
        ]

    @property
    def seconds(self) -> dict[str, list[float]]:
        """Durations of the steps by the machine's clock."""
        seconds: dict[str, list[float]] = {}
        for boot in range(1, BOOTS + 1):
            for line in self._text(boot, "steps").splitlines():
                name, _, began, ended = line.split()
                if (step := name.partition("-")[0]) in _STEPS:
                    seconds.setdefault(step, []).append(float(ended) - float(began))
        return seconds

    @property
    def wrong(self) -> list[str]:
        """Observations that must not be, in words."""
        old, new = zip(*OLD_AND_NEW.values(), strict=True)
        values = {"1-values": new, "2-values-before": new, "2-values": old, "3-values-before": old, "3-values": old}
        wrong = [f"{name}: {is_now}" for name, wanted in values.items() if (is_now := self._values(name)) != wanted]
        wrong += [f"boot {boot}: {count} neither" for boot, count in enumerate(self.neither, 1) if count]
        status, undone = self._text(2, "status-before"), self._text(2, "status")
        wrong += [f"not adopted by ajuste live status: {name}" for name in OLD_AND_NEW if name not in status]
        wrong += ["not adopted by ajuste plan"] if "adopted from" not in self._text(2, "plan") else []
        wrong += ["still adopted by ajuste live status"] if "adopted from" in undone else []
        wrong += [f"boot {boot}: files are left" for boot in (2, 3) if self._text(boot, "files")]
        wrong += ["a unit failed"] if "0 loaded units listed" not in self._text(2, "systemd") else []
        return wrong

    def _values(self, name: str) -> tuple[str, ...]:
        return tuple(map(_chosen, (self._directory / f"{name}.txt").read_text().splitlines()))

    def _text(self, boot: int, name: str, kind: str = "txt") -> str:
        return (self._directory / f"{boot}-{name}.{kind}").read_text()


def _chosen(value: str) -> str:
    """The value of a setting, which may be the one in brackets among all choices."""
    return value.partition("[")[2].partition("]")[0] or value
