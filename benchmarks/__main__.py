"""Run all benchmarks, or those that are named. Exit code 1 if a goal was not reached."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from rich.console import Console

from benchmarks import (
    ablation,
    advice,
    atlas,
    boot,
    bundle,
    campaigns,
    cluster,
    cold_start,
    course,
    coverage,
    demo,
    fleet,
    gate,
    hunt,
    install,
    kernel_build,
    lab,
    latency,
    lens,
    members,
    next_trial,
    orders,
    overhead,
    packages,
    parallel,
    perf_agreement,
    planted,
    published,
    reboots,
    repeats,
    restore_time,
    sampler_overhead,
    scale,
    sched_agreement,
    seeds,
    services,
    simulation,
    speed,
    starts,
    store,
    structures,
    surface,
    surfaces,
    switchback,
    tuning,
    verdicts,
    viewers,
)
from benchmarks.campaigns import referee
from benchmarks.comparison import Comparison, show
from benchmarks.live import adoption as live_adoption
from benchmarks.live import chaos, guards, redis
from benchmarks.planted import schedulers
from benchmarks.reboots import adoption

BENCHMARKS: dict[str, Callable[[], Iterable[Comparison]]] = {
    "ablation": ablation.measure,
    "adoption": adoption.measure,
    "advice": advice.measure,
    "atlas": atlas.measure,
    "course": course.measure,
    "coverage": coverage.measure,
    "verdicts": verdicts.measure,
    "viewers": viewers.measure,
    "orders": orders.measure,
    "overhead": overhead.measure,
    "boot": boot.measure,
    "hunt": hunt.measure,
    "campaigns": campaigns.measure,
    "referee": referee.measure,
    "bundle": bundle.measure,
    "next-trial": next_trial.measure,
    "sampler-overhead": sampler_overhead.measure,
    "perf-agreement": perf_agreement.measure,
    "sched-agreement": sched_agreement.measure,
    "cold-start": cold_start.measure,
    "demo": demo.measure,
    "fleet": fleet.measure,
    "gate": gate.measure,
    "install": install.measure,
    "kernel-build": kernel_build.measure,
    "lab": lab.measure,
    "latency": latency.measure,
    "live-adoption": live_adoption.measure,
    "live-chaos": chaos.measure,
    "live-guards": guards.measure,
    "live-redis": redis.measure,
    "lens": lens.measure,
    "members": members.measure,
    "packages": packages.measure,
    "parallel": parallel.measure,
    "planted": planted.measure,
    "planted-schedulers": schedulers.measure,
    "published": published.measure,
    "reboots": reboots.measure,
    "repeats": repeats.measure,
    "restore-time": restore_time.measure,
    "scale": scale.measure,
    "seeds": seeds.measure,
    "services": services.measure,
    "simulation": simulation.measure,
    "speed": speed.measure,
    "starts": starts.measure,
    "store": store.measure,
    "structures": structures.measure,
    "surfaces": surfaces.measure,
    "surface": surface.measure,
    "switchback": switchback.measure,
    "tuning": tuning.measure,
    "cluster": cluster.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}; expected some of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    console = Console()
    reached = True
    for name in names or BENCHMARKS:
        for comparison in BENCHMARKS[name]():
            show(comparison, console)
            reached = reached and comparison.reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
