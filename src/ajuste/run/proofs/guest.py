"""Looking at a running kernel: one boot of a machine with two nodes of memory, and plans that start from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, TypeVar

from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.executor.guest.module import modules_for
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited, Failed, Output, ReadBack, Written
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Choice, Command, FileLocation, Plan, Read, Write
from ajuste.model.trial import Observation
from ajuste.model.wording import Say
from ajuste.run.proofs.feature import KernelFacts, KernelFeature, Said
from ajuste.run.proofs.features.io_schedulers import DISKS, queue_of
from ajuste.run.proofs.features.numa import NODES
from ajuste.study.site import GUEST

K = TypeVar("K")
T = TypeVar("T")

_RUN_NS: Final = 60_000_000_000


def look_at(
    image: KernelImage, features: Iterable[KernelFeature], home: Home, say: Say, arguments: tuple[str, ...] = ()
) -> KernelFacts:
    """All that ``features`` want to know of the running kernel, booted with ``arguments``. Under the virtual clock: the
    same every time.

    Raises RequestError where it does not boot, RunError where the guest is lost.
    """
    wanted = tuple(features)
    with GuestExecutor(
        image,
        clock="virtual",
        cpus=sum(node.cpus for node in NODES),
        memory_mib=sum(node.memory_mib for node in NODES),
        nodes=NODES,
        files=GuestFiles(modules=_loadable(image, wanted), schedulers=_built_with(image, wanted)),
        home=home,
        kernel_arguments=arguments,
        say=say,
    ) as guest:
        say(f"checking {image.spec}")
        facts = _read(guest, _each(feature.reads for feature in wanted))
        schedulers = _each(feature.schedulers for feature in wanted) if facts.disk else ()
        runs = _each(feature.runs for feature in wanted)
        plans = [*(_choosing(name, facts.disk) for name in schedulers), *map(_running, runs)]
        with ThreadPoolExecutor(guest.parallel) as pool:
            answers = list(pool.map(guest.run, plans))
    chosen, refused = _sorted(zip(schedulers, answers[: len(schedulers)], strict=True), _choice_of)
    output, failed = _sorted(zip(runs, answers[len(schedulers) :], strict=True), _output_of)
    return replace(facts, chosen=chosen, refused=refused, output=output, failed=failed)


def _loadable(image: KernelImage, features: Iterable[KernelFeature]) -> tuple[str, ...]:
    """The modules that this kernel has as such."""

    def has(name: str) -> bool:
        try:
            modules_for((name,), image)
        except RequestError:
            return False
        return True

    return tuple(name for name in _each(feature.modules for feature in features) if has(name))


def _built_with(image: KernelImage, features: Iterable[KernelFeature]) -> tuple[str, ...]:
    """The BPF schedulers that this kernel has programs of."""
    folder = image.schedulers
    return tuple(name for name in _each(feature.bpf for feature in features) if folder and (folder / name).is_file())


def _read(guest: GuestExecutor, paths: Sequence[str]) -> KernelFacts:
    plan = Plan(id="read", reads=tuple(Read(tunable=path, location=FileLocation(path=path)) for path in paths))
    observation = guest.run(plan)
    if observation.problem:
        raise RunError(f"the guest did not report its features: {observation.problem}")
    said = [event for event in observation.events if isinstance(event, ReadBack)]
    reads = {event.tunable: event.value for event in said if event.value is not None}
    disk = next((disk for disk in DISKS if queue_of(disk) in reads), "")
    unreadable = {event.tunable: _reason(event) for event in said if event.value is None}
    return KernelFacts(build=guest.hello.build, disk=disk, reads=reads, unreadable=unreadable)


def _reason(event: ReadBack) -> str:
    """Without the path, which is shown beside it."""
    return (event.error or "").removeprefix(f"{event.tunable}: ")


def _choosing(scheduler: str, disk: str) -> Plan:
    queue = queue_of(disk)
    return Plan(id=scheduler, writes=(Write(tunable=queue, location=Choice(path=queue), value=scheduler),))


def _running(words: Said) -> Plan:
    return Plan(id=words[0], workload=Command(argv=(GUEST.bundled, *words)), timeout_ns=_RUN_NS)


def _choice_of(answer: Observation) -> tuple[str | None, str]:
    written = [event.after for event in answer.events if isinstance(event, Written)]
    return (written[0] if written else None), _failure_of(answer)


def _output_of(answer: Observation) -> tuple[str | None, str]:
    outputs = {event.stream: event.text for event in answer.events if isinstance(event, Output)}
    done = any(isinstance(event, Exited) and event.exit_code == 0 for event in answer.events)
    words = outputs.get("stderr", "").strip().splitlines()
    why = words[-1].removeprefix("ajuste-workloads: ") if words else _failure_of(answer)
    return (outputs.get("stdout", "") if done else None), why


def _failure_of(answer: Observation) -> str:
    failed = [event.message for event in answer.events if isinstance(event, Failed)]
    return answer.problem or next(iter(failed), "it failed")


def _sorted(
    answers: Iterable[tuple[K, Observation]], read: Callable[[Observation], tuple[str | None, str]]
) -> tuple[dict[K, str], dict[K, str]]:
    """What was answered, and why the others were not."""
    good: dict[K, str] = {}
    bad: dict[K, str] = {}
    for key, answer in answers:
        value, why = read(answer)
        if value is None:
            bad[key] = why
        else:
            good[key] = value
    return good, bad


def _each(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(one for group in groups for one in group))
