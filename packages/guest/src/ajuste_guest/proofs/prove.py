"""Claims about kernel features, judged by the facts of a booted kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError, nearest_names
from ajuste.model.event import Exited, Failed, Output, ReadBack, Written
from ajuste.model.kernel import KernelImage, Proof, ShownFeature
from ajuste.model.plan import Choice, Command, FileLocation, Plan, Read, Write
from ajuste.model.plugins import modules
from ajuste.model.trial import KERNEL_FACTOR, Observation
from ajuste.model.wording import Say
from ajuste.study.schema import Study
from ajuste.study.site import GUEST
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.proofs import features
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding
from ajuste_guest.proofs.features.io_schedulers import DISKS, queue_of
from ajuste_guest.proofs.features.numa import NODES

if TYPE_CHECKING:
    from ajuste_guest.executor.guest import GuestExecutor

# One boot of a machine with two memory nodes; all plans start from its snapshot.

K = TypeVar("K")
T = TypeVar("T")

_RUN_NS: Final = 60_000_000_000


def look_at(
    image: KernelImage, features: Iterable[KernelFeature], home: Home, say: Say, arguments: tuple[str, ...] = ()
) -> KernelFacts:
    """Boot the kernel with ``arguments`` and return the facts for ``features``, repeatable by the virtual clock.

    Raises RequestError if the kernel does not boot, RunError if the guest is lost.
    """
    from ajuste_guest.executor.guest import GuestExecutor  # takes long to load, and claims are checked without

    wanted = tuple(features)
    folder = image.schedulers
    built = (name for name in _each(feature.bpf for feature in wanted) if folder and (folder / name).is_file())
    with GuestExecutor(
        image,
        clock="virtual",
        cpus=sum(node.cpus for node in NODES),
        memory_mib=sum(node.memory_mib for node in NODES),
        nodes=NODES,
        files=GuestFiles(modules=_loadable(image, wanted), schedulers=tuple(built)),
        home=home,
        kernel_arguments=arguments,
        say=say,
    ) as guest:
        say(f"checking {image.spec}")
        facts = read_facts(guest, _each(feature.reads for feature in wanted))
        schedulers = _each(feature.schedulers for feature in wanted) if facts.disk else ()
        runs = _each(feature.runs for feature in wanted)
        queue = queue_of(facts.disk)
        plans = [
            Plan(id=name, writes=(Write(tunable=queue, location=Choice(path=queue), value=name),))
            for name in schedulers
        ]
        plans += [
            Plan(id=words[0], workload=Command(argv=(GUEST.bundled, *words)), timeout_ns=_RUN_NS) for words in runs
        ]
        with ThreadPoolExecutor(guest.parallel) as pool:
            answers = list(pool.map(guest.run, plans))
    chosen, refused = _sorted(zip(schedulers, answers[: len(schedulers)], strict=True), _choice_of)
    output, failed = _sorted(zip(runs, answers[len(schedulers) :], strict=True), output_of)
    return replace(facts, chosen=chosen, refused=refused, output=output, failed=failed)


def _loadable(image: KernelImage, features: Iterable[KernelFeature]) -> tuple[str, ...]:
    from ajuste_guest.executor.module import modules_for

    def has(name: str) -> bool:
        try:
            modules_for((name,), image)
        except RequestError:
            return False
        return True

    return tuple(name for name in _each(feature.modules for feature in features) if has(name))


def read_facts(guest: GuestExecutor, paths: Sequence[str]) -> KernelFacts:
    """Return the content of a guest's files ``paths``. Raises RunError if the guest is lost."""
    plan = Plan(id="read", reads=tuple(Read(tunable=path, location=FileLocation(path=path)) for path in paths))
    observation = guest.run(plan)
    if observation.problem:
        raise RunError(f"the guest did not report its features: {observation.problem}")
    answers = [event for event in observation.events if isinstance(event, ReadBack)]
    reads = {event.tunable: event.value for event in answers if event.value is not None}
    disk = next((disk for disk in DISKS if queue_of(disk) in reads), "")
    unreadable = {
        # The path is shown beside the reason.
        event.tunable: (event.error or "").removeprefix(f"{event.tunable}: ")
        for event in answers
        if event.value is None
    }
    return KernelFacts(build=guest.hello.build, disk=disk, reads=reads, unreadable=unreadable)


def _choice_of(answer: Observation) -> tuple[str | None, str]:
    written = [event.after for event in answer.events if isinstance(event, Written)]
    return (written[0] if written else None), _failure_of(answer)


def output_of(answer: Observation) -> tuple[str | None, str]:
    """Return the output of a program that succeeded, or None, and the reason of its failure."""
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
    return tuple(dict.fromkeys(item for group in groups for item in group))


FEATURES: Final[Mapping[str, KernelFeature]] = MappingProxyType(
    {
        feature.name: feature
        for module in modules(features, "features").values()
        for feature in vars(module).values()
        if isinstance(feature, KernelFeature)
    }
)
"""The features of all modules in ``features``, by name."""

_ABSENT: Final = "no-"


class Claim(NamedTuple):
    """A claim that a kernel has a feature, with a value if given, or that it lacks it: ``no-numa``, ``hz=250``."""

    feature: KernelFeature
    absent: bool = False
    value: str = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{_ABSENT if self.absent else ''}{self.feature.name}{value}"

    def holds(self, finding: ProofFinding) -> bool:
        """Return whether the claim holds; with an unknown feature it does not."""
        if finding.present is None:
            return False
        if self.value:
            return finding.present and self.value == finding.value
        return finding.present != self.absent


def parse_claim(text: str) -> Claim:
    """Parse ``numa``, ``no-numa`` or ``hz=250``. Raises RequestError with the known features."""
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
    """Parse claims, each once. Raises RequestError for two different claims on one feature."""
    claims = tuple(dict.fromkeys(map(parse_claim, texts)))
    names = [claim.feature.name for claim in claims]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"feature {name} is given twice with different values; expected only one of them")
    return claims


UNKNOWN_OPTION = "?"


def prove(image: KernelImage, claims: Sequence[Claim], home: Home, say: Say, arguments: tuple[str, ...] = ()) -> Proof:
    """Boot ``image`` and judge ``claims``, or without claims all features.

    Raises RequestError for a kernel that does not boot, RunError if the guest is lost.
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
    """Judge ``features`` and ``claims`` by ``facts``. Reads only the kernel's configuration."""
    claimed = {claim.feature.name: claim for claim in claims}
    shown_features = tuple(
        _judge_claim(feature, claimed.get(feature.name), facts, image.config) for feature in features
    )
    return Proof(
        kernel=image.spec, release=image.release, build=facts.build, arguments=arguments, features=shown_features
    )


def require(proof: Proof) -> None:
    """Raise RunError if a claim does not hold, with the evidence."""
    if not proof.broken:
        return
    lines = []
    for feature in proof.broken:
        evidence = "; ".join(f"{sight.what}: {sight.found}" for sight in feature.evidence)
        lines.append(f"expected {feature.claim}, but the running kernel shows {feature.state} ({evidence})")
    raise RunError(
        f"{proof.kernel} ({proof.release}) does not have the expected features: {'. '.join(lines)}",
        hint=f"see all evidence with ajuste kernel prove {proof.kernel}",
    )


def option_values(config: Path | None, names: Sequence[str]) -> dict[str, str]:
    """Return the value of each option by its name with CONFIG_; ``?`` without a configuration."""
    if config is None or not config.is_file():
        return {f"CONFIG_{name}": UNKNOWN_OPTION for name in names}
    lines = re.findall(r"^CONFIG_(\w+)=(.*)$", config.read_text(errors="replace"), re.MULTILINE)
    values = dict(lines)
    return {f"CONFIG_{name}": values.get(name, "n").strip('"') for name in names}


def _judge_claim(feature: KernelFeature, claim: Claim | None, facts: KernelFacts, config: Path | None) -> ShownFeature:
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


# Claims of a study: its own, and the differences it expects between its kernels.


def check_claims(study: Study) -> None:
    """Raise RequestError for an invalid claim in the study."""
    for kernel in study.kernels:
        _stated_claims(study, kernel)


def claims_on(study: Study, kernel: str, images: Mapping[str, KernelImage]) -> tuple[Claim, ...]:
    """Return the claims on ``kernel``, one of ``images`` by spec. The study's own replace those from configurations.

    Compared kernels of one version must differ where their configurations do.
    """
    stated = _stated_claims(study, kernel)
    names = {claim.feature.name for claim in stated}
    return (*stated, *(claim for claim in _differing(kernel, images) if claim.feature.name not in names))


def _stated_claims(study: Study, kernel: str) -> tuple[Claim, ...]:
    by_kernel = next((factor.prove for factor in study.factors if factor.name == KERNEL_FACTOR), {})
    return parse_claims((*study.target.prove, *by_kernel.get(kernel, ())))


def _differing(kernel: str, images: Mapping[str, KernelImage]) -> list[Claim]:
    version = images[kernel].version
    peers = {spec: image for spec, image in images.items() if image.version == version}
    built = {spec: _built(image) for spec, image in peers.items()}
    return [
        _claim(name, built[kernel][name])
        for name, feature in FEATURES.items()
        if feature.decided_by
        and UNKNOWN_OPTION not in (values := {values_of_kernel[name] for values_of_kernel in built.values()})
        and len(values) > 1
    ]


def _built(image: KernelImage) -> dict[str, str]:
    # Modules count as built in.
    options = {name: feature.decided_by for name, feature in FEATURES.items() if feature.decided_by}
    values = option_values(image.config, tuple(options.values()))
    return {name: values[f"CONFIG_{option}"].replace("m", "y") for name, option in options.items()}


def _claim(name: str, value: str) -> Claim:
    if value in ("y", "n"):
        return Claim(FEATURES[name], absent=value == "n")
    return Claim(FEATURES[name], value=value)
