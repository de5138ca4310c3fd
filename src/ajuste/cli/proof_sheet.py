"""How ``ajuste kernel prove`` looks on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ajuste.model.proof import Proof, Shown
from ajuste.report.sheet import sheet
from ajuste.report.visible import visible_line


def print_proof(proof: Proof, console: Console) -> None:
    """A line for each feature, below it what was seen and the options of the kernel's configuration."""
    with sheet(console) as out:
        out.heading(f"{visible_line(proof.kernel)}: {visible_line(proof.release)}")
        out.say(visible_line(proof.build), style="dim")
        for shown in proof.features:
            out.blank()
            out.table(_table(shown), indent=0)


def _table(shown: Shown) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=12, no_wrap=True)
    table.add_column(overflow="fold")
    state = Text(shown.state, style="bold" if shown.present else "bold yellow")
    table.add_row(Text(shown.feature, style="bold"), state + Text(f"  {shown.title}", style="dim"))
    if shown.claim:
        words = "holds" if shown.holds else "does NOT hold"
        table.add_row(Text(""), Text(f"claimed: {shown.claim}; it {words}", style="green" if shown.holds else "red"))
    for sight in shown.evidence:
        table.add_row(Text(""), Text(f"{sight.what}: ", style="dim") + Text(visible_line(sight.found)))
    options = "  ".join(f"{name}={value}" for name, value in shown.options.items())
    table.add_row(Text(""), Text(f"configuration: {options}", style="dim"))
    return table
