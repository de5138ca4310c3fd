"""Whether what an agent says that its samplers read can be what the plan asked for."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from ajuste.model.event import Event, Sample, Sampled
from ajuste.model.plan import Plan, Sampler, SamplerSource, chooses

_EXTRA_READINGS = 4
"""At the start, at the workload's end, at the observation's end, and one for an interval that is not whole."""
_SLACK_NS = 30_000_000_000
"""For a workload that does not die at once at its time limit."""
_LARGEST = 2**64


def problem_of_samples(events: Sequence[Event], plan: Plan) -> str:
    """What is wrong with the samples among ``events``, in one line; empty if nothing is.

    Each must be of a source and of figures that a sampler of the plan reads; they come in the order of time, no more
    than the plan has time for, and as many as each sampler is said to have read.
    """
    samples = [event for event in events if isinstance(event, Sample)]
    for before, sample in zip([None, *samples], samples, strict=False):
        own = [sampler for sampler in plan.samplers if sampler.source == sample.source]
        if not own:
            return f"a sample is of {sample.source}, which the plan does not sample"
        if before is not None and sample.at_ns < before.at_ns:
            return f"a sample of {sample.source} comes before the one that was read earlier"
        keys = [key for sampler in own for key in sampler.keys]
        for name, value in sample.values.items():
            if not any(chooses(key, name) for key in keys):
                return f"a sample of {sample.source} has {name!r:.100}, which the plan does not ask for"
            if value >= _LARGEST:
                return f"a sample of {sample.source} has a figure that no 64-bit machine can have"
    return _count_problem(samples, [event for event in events if isinstance(event, Sampled)], plan)


def _count_problem(samples: Sequence[Sample], ends: Sequence[Sampled], plan: Plan) -> str:
    for end in ends:
        if end.index >= len(plan.samplers) or plan.samplers[end.index].source != end.source:
            return f"the sampler {end.index} is reported with {end.source}, which is not the plan's"
        if end.readings > _most_readings(plan.samplers[end.index], plan):
            return f"the sampler of {end.source} says that it was read {end.readings} times, more than the plan allows"
    said: Tally[SamplerSource] = Tally()
    for end in ends:
        said[end.source] += end.readings
    found = Tally(sample.source for sample in samples)
    for source in found | said:
        if found[source] != said[source]:
            return f"{found[source]} samples of {source} arrived, and {said[source]} are said to have been read"
    return ""


def _most_readings(sampler: Sampler, plan: Plan) -> int:
    time_ns = plan.timeout_ns + plan.observe_ns + plan.perturbation.start_delay_ns + _SLACK_NS
    return time_ns // sampler.interval_ns + _EXTRA_READINGS
