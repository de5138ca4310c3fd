"""Proving what a kernel has: its features as the running kernel shows them, and what became of the claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.machine.home import Home
from ajuste.model.base import package_modules
from ajuste.model.error import RequestError, RunError, nearest_names
from ajuste.model.event import Exited, Failed, Output, ReadBack, Written
from ajuste.model.kernel import KernelImage, Proof, ShownFeature
from ajuste.model.plan import Choice, Command, FileLocation, Plan, Read, Write
from ajuste.model.trial import KERNEL_FACTOR, Observation
from ajuste.model.wording import Say
from ajuste.run.proofs import features
from ajuste.run.proofs.feature import KernelFacts, KernelFeature, ProofFinding, Said
from ajuste.run.proofs.features.io_schedulers import DISKS, queue_of
from ajuste.run.proofs.features.numa import NODES
from ajuste.study.schema import Study
from ajuste.study.site import GUEST

if TYPE_CHECKING:
    from ajuste.executor.guest.guest import GuestExecutor

# Looking at a running kernel: one boot of a machine with two nodes of memory, and plans that start from there.


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
    from ajuste.executor.guest.guest import GuestExecutor  # takes long to load, and claims are checked without

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
        facts = read_facts(guest, _each(feature.reads for feature in wanted))
        schedulers = _each(feature.schedulers for feature in wanted) if facts.disk else ()
        runs = _each(feature.runs for feature in wanted)
        plans = [*(_choosing(name, facts.disk) for name in schedulers), *map(_running, runs)]
        with ThreadPoolExecutor(guest.parallel) as pool:
            answers = list(pool.map(guest.run, plans))
    chosen, refused = _sorted(zip(schedulers, answers[: len(schedulers)], strict=True), _choice_of)
    output, failed = _sorted(zip(runs, answers[len(schedulers) :], strict=True), output_of)
    return replace(facts, chosen=chosen, refused=refused, output=output, failed=failed)


def _loadable(image: KernelImage, features: Iterable[KernelFeature]) -> tuple[str, ...]:
    # The modules that this kernel has as such.
    from ajuste.executor.guest.module import modules_for

    def has(name: str) -> bool:
        try:
            modules_for((name,), image)
        except RequestError:
            return False
        return True

    return tuple(name for name in _each(feature.modules for feature in features) if has(name))


def _built_with(image: KernelImage, features: Iterable[KernelFeature]) -> tuple[str, ...]:
    # The BPF schedulers that this kernel has programs of.
    folder = image.schedulers
    return tuple(name for name in _each(feature.bpf for feature in features) if folder and (folder / name).is_file())


def read_facts(guest: GuestExecutor, paths: Sequence[str]) -> KernelFacts:
    """The content of the files ``paths`` of a guest. Raises RunError where it is lost."""
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
    # Without the path, which is shown beside it.
    return (event.error or "").removeprefix(f"{event.tunable}: ")


def _choosing(scheduler: str, disk: str) -> Plan:
    queue = queue_of(disk)
    return Plan(id=scheduler, writes=(Write(tunable=queue, location=Choice(path=queue), value=scheduler),))


def _running(words: Said) -> Plan:
    return Plan(id=words[0], workload=Command(argv=(GUEST.bundled, *words)), timeout_ns=_RUN_NS)


def _choice_of(answer: Observation) -> tuple[str | None, str]:
    written = [event.after for event in answer.events if isinstance(event, Written)]
    return (written[0] if written else None), _failure_of(answer)


def output_of(answer: Observation) -> tuple[str | None, str]:
    """What a program printed, if it did its work; why not otherwise."""
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
    # What was answered, and why the others were not.
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


# The features by name, and claims about them: ``numa``, ``no-numa``, ``hz=250``.


FEATURES: Final[Mapping[str, KernelFeature]] = MappingProxyType(
    {
        feature.name: feature
        for module in package_modules(features).values()
        for feature in vars(module).values()
        if isinstance(feature, KernelFeature)
    }
)
"""Every one that a file of ``features`` makes, by its name."""

_ABSENT: Final = "no-"


class Claim(NamedTuple):
    """That a kernel has a feature (with this value, if one is said), or that it has not."""

    feature: KernelFeature
    absent: bool = False
    value: str = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{_ABSENT if self.absent else ''}{self.feature.name}{value}"

    def holds(self, finding: ProofFinding) -> bool:
        """Whether it is so. What cannot be told does not hold."""
        if finding.present is None:
            return False
        if self.value:
            return finding.present and self.value == finding.value
        return finding.present != self.absent


def parse_claim(text: str) -> Claim:
    """From ``numa``, ``no-numa`` or ``hz=250``. Raises RequestError that names the features there are."""
    name, equals, value = text.strip().partition("=")
    absent = name.startswith(_ABSENT)
    name = name.removeprefix(_ABSENT)
    if name not in FEATURES:
        near = nearest_names(name, FEATURES)
        raise RequestError(
            f"feature {text!r} not found; expected one of {', '.join(FEATURES)}",
            hint=f"did you mean {_ABSENT if absent else ''}{near[0]}?" if near else None,
        )
    if equals and (absent or not value):
        raise RequestError(f"{text!r}: expected a value as in hz=250 or preempt=voluntary")
    return Claim(FEATURES[name], absent, value)


def parse_claims(texts: Iterable[str]) -> tuple[Claim, ...]:
    """Each once; raises RequestError for two that contradict each other."""
    claims = tuple(dict.fromkeys(map(parse_claim, texts)))
    names = [claim.feature.name for claim in claims]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"feature {name} is given twice with different values; expected only one of them")
    return claims


UNKNOWN_OPTION = "?"


def prove(image: KernelImage, claims: Sequence[Claim], home: Home, say: Say, arguments: tuple[str, ...] = ()) -> Proof:
    """Boot ``image`` and look; without ``claims`` at all there is to see.

    Raises RequestError for a kernel that does not boot, RunError where the guest is lost.
    """
    features = [claim.feature for claim in claims] or list(FEATURES.values())
    return judged(image, features, claims, look_at(image, features, home, say, arguments), arguments)


def judged(
    image: KernelImage,
    features: Sequence[KernelFeature],
    claims: Sequence[Claim],
    facts: KernelFacts,
    arguments: tuple[str, ...] = (),
) -> Proof:
    """What ``facts`` say of ``features``, and of ``claims`` about them. Pure but for reading the configuration."""
    claimed = {claim.feature.name: claim for claim in claims}
    shown = tuple(_shown(feature, claimed.get(feature.name), facts, image.config) for feature in features)
    return Proof(kernel=image.spec, release=image.release, build=facts.build, arguments=arguments, features=shown)


def require(proof: Proof) -> None:
    """Raises RunError if a claim does not hold, with what was seen instead."""
    if not proof.broken:
        return
    lines = []
    for shown in proof.broken:
        evidence = "; ".join(f"{sight.what}: {sight.found}" for sight in shown.evidence)
        lines.append(f"expected {shown.claim}, but the running kernel shows {shown.state} ({evidence})")
    raise RunError(
        f"{proof.kernel} ({proof.release}) does not have the expected features: {'. '.join(lines)}",
        hint=f"see all evidence with ajuste kernel prove {proof.kernel}",
    )


def option_values(config: Path | None, names: Sequence[str]) -> dict[str, str]:
    """``y``, ``m``, ``n`` or another value of each option, with CONFIG_; ``?`` where there is no configuration."""
    if config is None or not config.is_file():
        return {f"CONFIG_{name}": UNKNOWN_OPTION for name in names}
    lines = re.findall(r"^CONFIG_(\w+)=(.*)$", config.read_text(errors="replace"), re.MULTILINE)
    values = dict(lines)
    return {f"CONFIG_{name}": values.get(name, "n").strip('"') for name in names}


def _shown(feature: KernelFeature, claim: Claim | None, facts: KernelFacts, config: Path | None) -> ShownFeature:
    finding = feature.judge(facts)
    return ShownFeature(
        feature=feature.name,
        title=feature.title,
        present=finding.present,
        value=finding.value,
        evidence=finding.evidence,
        options=option_values(config, feature.options),
        claim=str(claim) if claim else "",
        holds=claim.holds(finding) if claim else True,
    )


# What a study takes its kernels for: what it says itself, and what its kernels are meant to differ in.


def check_claims(study: Study) -> None:
    """Raises RequestError for a claim of the study that names no feature."""
    for kernel in study.kernels:
        _said(study, kernel)


def claims_on(study: Study, kernel: str, images: Mapping[str, KernelImage]) -> tuple[Claim, ...]:
    """The claims on ``kernel``, one of ``images``, by spec. What the study says itself comes before what follows from
    configurations.

    Kernels of one version that are compared are meant to differ where their configurations do.
    """
    said = _said(study, kernel)
    names = {claim.feature.name for claim in said}
    return (*said, *(claim for claim in _differing(kernel, images) if claim.feature.name not in names))


def _said(study: Study, kernel: str) -> tuple[Claim, ...]:
    own = next((factor.prove for factor in study.factors if factor.name == KERNEL_FACTOR), {})
    return parse_claims((*study.target.prove, *own.get(kernel, ())))


def _differing(kernel: str, images: Mapping[str, KernelImage]) -> list[Claim]:
    version = images[kernel].version
    peers = {spec: image for spec, image in images.items() if image.version == version}
    built = {spec: _built(image) for spec, image in peers.items()}
    return [
        _claim(name, built[kernel][name])
        for name, feature in FEATURES.items()
        if feature.decided_by
        and UNKNOWN_OPTION not in (values := {own[name] for own in built.values()})
        and len(values) > 1
    ]


def _built(image: KernelImage) -> dict[str, str]:
    # For each feature what its option says; a module is as good as what is built in.
    options = {name: feature.decided_by for name, feature in FEATURES.items() if feature.decided_by}
    values = option_values(image.config, tuple(options.values()))
    return {name: values[f"CONFIG_{option}"].replace("m", "y") for name, option in options.items()}


def _claim(name: str, value: str) -> Claim:
    if value in ("y", "n"):
        return Claim(FEATURES[name], absent=value == "n")
    return Claim(FEATURES[name], value=value)
