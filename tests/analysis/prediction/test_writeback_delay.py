from __future__ import annotations

from ajuste.analysis.prediction import Forecast, writeback_delay
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.study.resolve import resolve
from ajuste.study.schema import Study

TIMELINE = {"source": "vmstat", "key": "nr_written", "direction": "none"}


def forecasts(*factors: dict[str, object]) -> dict[str, Forecast]:
    study = Study.model_validate(
        {
            "name": "delays",
            "factor": list(factors),
            "workload": {
                "kind": "hog",
                "sampler": [{"source": "vmstat", "keys": ["nr_written"]}],
                "timeline": [
                    {"name": "late", "take": "delay", **TIMELINE},
                    {"name": "written", "take": "growth", **TIMELINE},
                ],
            },
            "target": {"kernel": "debian:6.1"},
            "analysis": {"metrics": ["late"], "prediction": "writeback-delay"},
        }
    )
    resolved = resolve(study, catalogue(), {"debian:6.1": KernelVersion(major=6, minor=1)}, lambda name: None)
    return {forecast.configuration: forecast for forecast in writeback_delay(resolved)}


def test_the_delay_is_between_expiry_and_the_next_waking_after_it() -> None:
    by_level = forecasts(
        {"name": "vm.dirty_expire_centisecs", "levels": [3000, 1000]},
        {"name": "vm.dirty_writeback_centisecs", "levels": [100]},
    )
    assert {name: (f.metric, f.low, f.high) for name, f in by_level.items()} == {
        "vm.dirty_expire_centisecs=3000": ("late", 30, 31),
        "vm.dirty_expire_centisecs=1000": ("late", 10, 11),
    }


def test_what_is_not_set_has_the_kernels_default() -> None:
    (forecast,) = forecasts({"name": "vm.dirty_expire_centisecs", "levels": [1000]}).values()
    assert (forecast.low, forecast.high) == (10, 15)


def test_a_flusher_that_never_wakes_by_itself_is_not_predicted() -> None:
    assert forecasts({"name": "vm.dirty_writeback_centisecs", "levels": [0]}) == {}
