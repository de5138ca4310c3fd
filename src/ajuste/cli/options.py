"""Options that several commands have. Nothing heavy is loaded for them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import typer

from ajuste.model.error import RequestError

# The panels of the help, in its order.

SETTINGS: Final = "Settings"
COMMAND: Final = "Command"
WHERE: Final = "Kernel and machine"
VERDICT: Final = "Verdict"
OUTPUT: Final = "Output"
GUEST: Final = "Guest"
REBOOTS: Final = "Across reboots"
BUILD: Final = "Kernels to build"
MACHINES: Final = "Other machines"
RARE: Final = "Rarely needed"
RARE_PANELS: Final = frozenset({GUEST, REBOOTS, BUILD, MACHINES, RARE})
_PANELS: Final = (SETTINGS, COMMAND, WHERE, VERDICT, OUTPUT, GUEST, REBOOTS, BUILD, MACHINES, RARE)


def panel_order(panel: str) -> int:
    """Return the place of ``panel`` in the help."""
    return _PANELS.index(panel) if panel in _PANELS else 0


StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study (see `ajuste studies`) or a study file.")
]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="Override the study's kernel: debian:6.12, mine:NAME, or build:SOURCE[+NAME=VALUE][+PATCH]… to build one; "
        "separate several with commas.",
        rich_help_panel=WHERE,
    ),
]
Target = Annotated[
    Literal["vm", "host"] | None,
    typer.Option(help="Override the study's target: vm (a guest) or host (this machine).", rich_help_panel=WHERE),
]
Disk = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="With --target host: the disk the study may overwrite (default: a loop device).",
        rich_help_panel=WHERE,
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Override the study's seed.", rich_help_panel=RARE)]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Override a parameter of the study's workload (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
FactorLevels = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FACTOR=LEVELS",
        help="Override the levels of a factor of the study: nice=0,10; also a range: 1ms..30ms:6:log (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACTOR=LEVEL",
        help="Leave out a level of a factor of the study (repeatable).",
        rich_help_panel=SETTINGS,
    ),
]
Report = Annotated[Path | None, typer.Option(help="Write the HTML report to this file.", rich_help_panel=OUTPUT)]
Open = Annotated[bool, typer.Option("--open", help="Open the report in a browser.", rich_help_panel=OUTPUT)]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of guests to run in parallel under the virtual clock (default: number of CPUs).",
        rich_help_panel=RARE,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=OUTPUT)]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print all details of the results.", rich_help_panel=OUTPUT)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=OUTPUT)]
AcceptRisk = Annotated[
    bool,
    typer.Option(
        "--accept-risk",
        help="Allow values that can hang this machine (`ajuste plan` lists them).",
        rich_help_panel=RARE,
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="DURATION",
        help="Wait so long while another experiment uses this machine: 10m (default: end with an error).",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "--jobs",
        min=1,
        metavar="N",
        help="Number of guests to run at once on this machine (default: number of CPUs).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Distribute trials (on hosts, whole blocks) to the workers of a scheduler: tls://HOST:8786.",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
ClusterKeys = Annotated[
    Path | None,
    typer.Option(
        "--cluster-keys",
        metavar="DIRECTORY",
        help="Directory of the key for tls://, made by `ajuste cluster keys` (default: cluster-keys in the data "
        "directory).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Allow tcp://, where anyone can listen and run commands; not as root.",
        rich_help_panel=MACHINES,
    ),
]

Canary = Annotated[
    str | None,
    typer.Option(
        "--canary",
        metavar="STAGES",
        help="Let machines of --cluster begin in stages, such as 1,5,all; stop all of them where harm is proved.",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
MachineEach = Annotated[
    int | None,
    typer.Option(
        "--machine-each",
        min=1,
        metavar="N",
        help="Blocks on each machine of --cluster (default with --canary: as many as its own verdict needs).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option(
        "--guard",
        metavar="GUARD",
        help="Stop all machines of --cluster when a trial breaks this: 'METRIC < LIMIT' or 'METRIC not worse than "
        "SHARE' (repeatable).",
        show_default=False,
        rich_help_panel=MACHINES,
    ),
]


# Options of the commands that are given a command to measure.


def option(help_text: str, metavar: str | None = None, *names: str, panel: str | None = None) -> Any:
    """An option whose default is not shown, since its help says it."""
    return typer.Option(*names, help=help_text, metavar=metavar, show_default=False, rich_help_panel=panel)


Vm = Annotated[bool, option("Run in a guest.", None, "--vm", panel=WHERE)]
Clock = Annotated[str | None, option("The guest's clock: virtual or wall (default: virtual).", "CLOCK", panel=GUEST)]
Memory = Annotated[str | None, option("Memory of the guest.", "SIZE", panel=GUEST)]
Machine = Annotated[
    str | None,
    option(
        "Model this machine's caches and TLBs: zen4-8c, skylake-server, textbook, or a TOML file.",
        "NAME|FILE",
        panel=GUEST,
    ),
]
Topology = Annotated[
    str | None,
    option(
        "Sockets of the guest, cores of each, threads of each core: sockets=2,cores=4,threads=2; also dies and "
        "llc_groups of each socket.",
        "NAME=NUMBER,...",
        panel=GUEST,
    ),
]
SetLevels = Annotated[
    list[str] | None,
    option(
        "A tunable and its levels, or a range such as 1ms..30ms:6:log (repeatable).",
        "NAME=LEVEL,...",
        "--set",
        panel=SETTINGS,
    ),
]
Nice = Annotated[str | None, option("Nice levels of the command.", "N,...", panel=SETTINGS)]
PolicyLevels = Annotated[str | None, option("Scheduling policies of the command.", "POLICY,...", panel=SETTINGS)]
CpuLevels = Annotated[
    str | None, option("CPUs the command may run on: 0,0-1; join a list with +: 0+2.", "CPUS,...", panel=SETTINGS)
]
CgroupWeight = Annotated[str | None, option("cpu.weight of the command's control group.", "N,...", panel=SETTINGS)]
BootWords = Annotated[
    list[str] | None,
    option(
        "A word of this machine's kernel command line and its values; default: as it boots by itself, set: a word "
        "without a value (repeatable). Requires --reboots.",
        "WORD=LEVEL,...",
        "--boot",
        panel=REBOOTS,
    ),
]
BootKernels = Annotated[
    str | None,
    option(
        "Kernels installed on this machine, such as 6.1.0-50-amd64, 6.12 or default. Requires --reboots.",
        "RELEASE,...",
        "--boot-kernel",
        panel=REBOOTS,
    ),
]
Reboots = Annotated[
    bool,
    option("Allow to reboot this machine, again and again: boots are replicates.", None, "--reboots", panel=REBOOTS),
]
RebootEach = Annotated[
    int | None,
    typer.Option(
        "--reboot-each",
        min=1,
        metavar="N",
        help="Blocks in each boot (default: 3). Requires --reboots.",
        show_default=False,
        rich_help_panel=REBOOTS,
    ),
]
Loader = Annotated[
    str | None,
    option(
        "Boot with grub, systemd-boot or kexec (default: the first that can boot once).",
        "NAME",
        "--loader",
        panel=REBOOTS,
    ),
]
KernelLevels = Annotated[
    str | None,
    option(
        "Run in a guest with these kernels: debian:6.1, mine:NAME, or build:SOURCE[+NAME=VALUE][+PATCH]... to "
        "build one.",
        "KERNEL,...",
        panel=WHERE,
    ),
]
SourceOfKernels = Annotated[
    str | None,
    option(
        "Short for --kernel build:SOURCE,build:SOURCE with the options and patches after it.", "SOURCE", panel=BUILD
    ),
]
Patches = Annotated[
    list[Path] | None,
    option("Compare the kernel without and with this patch (repeatable; a series).", "FILE", panel=BUILD),
]
KernelOptions = Annotated[
    list[str] | None,
    option(
        "Compare the kernel without and with this option, such as NUMA=n (repeatable).",
        "NAME=VALUE",
        "--option",
        panel=BUILD,
    ),
]
OneAtATime = Annotated[
    bool, option("Vary one thing at a time, not every combination.", None, "--one-at-a-time", panel=RARE)
]
Baseline = Annotated[list[str] | None, option("Baseline level (default: the first).", "[NAME=]LEVEL", panel=SETTINGS)]
Blocks = Annotated[
    str | None, option("Number of blocks: one run of each configuration per block.", "N or MIN..MAX", panel=VERDICT)
]
Setup = Annotated[str | None, option("Run this once before all trials.", "COMMAND", panel=RARE)]
Prepare = Annotated[str | None, option("Run this before each trial.", "COMMAND", panel=COMMAND)]
Cleanup = Annotated[str | None, option("Run this once after all trials.", "COMMAND", panel=RARE)]
Files = Annotated[list[str] | None, option("Copy this file into the guest (repeatable).", "FILE", panel=GUEST)]
Packages = Annotated[
    list[str] | None,
    option(
        "Debian packages that the guest has, with all that they require (repeatable); NAME/trixie for another release.",
        "NAME,...",
        "--package",
        panel=GUEST,
    ),
]
MinEffect = Annotated[str | None, option("Smallest effect that matters (default: 2%).", "SHARE", panel=VERDICT)]
Precision = Annotated[
    str | None,
    option(
        "Go on until each interval is at most this wide to each side, though it is decided: 1%.", "SHARE", panel=RARE
    ),
]
Confidence = Annotated[str | None, option("Confidence of all verdicts together (default: 95%).", "SHARE", panel=RARE)]
Timeout = Annotated[str | None, option("Time limit of one trial.", "DURATION", panel=RARE)]
SeedOfOrder = Annotated[
    int | None, typer.Option(min=0, help="Seed of the order (default: 1).", show_default=False, rich_help_panel=RARE)
]
AsRoot = Annotated[
    bool, option("Run the command as root, not as the user who called sudo.", None, "--as-root", panel=RARE)
]
IgnoreFailure = Annotated[bool, option("Also measure trials that fail.", None, "--ignore-failure", panel=RARE)]
KeepOutput = Annotated[
    bool,
    option(
        "Keep all output of the trials; otherwise long output and binary data are cut.",
        None,
        "--keep-output",
        panel=RARE,
    ),
]
FailOn = Annotated[
    list[str] | None,
    option(
        "Exit with 3 if a configuration is proved to worsen: on any deciding metric or this one, by more than LIMIT "
        "such as 2% (repeatable).",
        "worsens[:METRIC][:LIMIT]",
        "--fail-on",
        panel=VERDICT,
    ),
]
Save = Annotated[Path | None, option("Write an equivalent study file.", "FILE", panel=OUTPUT)]
DryRun = Annotated[bool, option("Show the plan; change and measure nothing.", None, "--dry-run", panel=OUTPUT)]
Fresh = Annotated[bool, option("Start a new run; do not resume an interrupted one.", None, "--fresh", panel=OUTPUT)]


# Examples in the help of every command. A test runs them all, so that none is wrong.


F = TypeVar("F", bound=Callable[..., Any])

PROMPT: Final = "$ "
_UNWRAPPED: Final = "\b\n"  # before a paragraph whose lines are to stay as they are


def example(*commands: str) -> Callable[[F], F]:
    """Adds ``commands``, as they are typed, to the help of the command that is decorated."""

    def with_examples(function: F) -> F:
        function.__doc__ = examples(inspect.getdoc(function) or "", *commands)
        return function

    return with_examples


def examples(text: str, *commands: str) -> str:
    """The help ``text`` with examples after it; for groups of commands, which are no functions."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    lines = "\n".join(f"  {PROMPT}{command}" for command in commands)
    return f"{text}\n\n{_UNWRAPPED}{title}\n{lines}"


def examples_in(text: str) -> list[str]:
    """The commands that a help text shows, each as one line."""
    lines = (line.strip() for line in re.sub(r"\\\n +", "", text).splitlines())
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]


def wait_seconds(wait: str | None) -> float:
    """Return the seconds that ``--wait`` allows. Raises RequestError."""
    if wait is None:
        return 0
    from ajuste.study.command_line.request import seconds

    try:
        return seconds("--wait", wait)
    except RequestError as failure:
        raise RequestError(failure.message, hint="write --wait 10m for ten minutes") from None


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, without its full stop."""
    return " ".join(text.replace("\b", "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def help_if_alone(context: typer.Context) -> None:
    """The help of a group of commands, where none of them is named."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
