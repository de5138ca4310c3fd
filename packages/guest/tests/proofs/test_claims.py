"""Claims of a study about its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.study.read import parse_study
from ajuste.study.schema import Study
from ajuste_guest.proofs.prove import check_claims, claims_on


def study(kernels: list[str], target: dict[str, object] | None = None, **factor: object) -> Study:
    return parse_study(
        {
            "schema": 1,
            "name": "kernels",
            "factor": [{"name": "kernel", "levels": kernels, **factor}],
            "workload": {"kind": "matrix"},
            "target": target or {},
            "analysis": {"metrics": ["elapsed"]},
        }
    )


@pytest.fixture
def images(tmp_path: Path) -> dict[str, KernelImage]:
    """a, b and c are of one version, d of another; c tells no configuration."""
    configurations = {
        "a": "CONFIG_NUMA=y\nCONFIG_MQ_IOSCHED_KYBER=m\nCONFIG_HZ=250\nCONFIG_MPTCP=y\n",
        "b": "# CONFIG_NUMA is not set\nCONFIG_MQ_IOSCHED_KYBER=y\nCONFIG_HZ=1000\nCONFIG_MPTCP=y\n",
        "d": "CONFIG_HZ=250\n",
    }
    by_name = {}
    for name in "abcd":
        config = tmp_path / name
        if name in configurations:
            config.write_text(configurations[name])
        release = "6.12.1" if name == "d" else "6.1.7"
        by_name[name] = KernelImage(spec=name, release=release, vmlinuz=tmp_path, config=config, sha256=name)
    return by_name


def claims(study: Study, kernel: str, images: dict[str, KernelImage]) -> list[str]:
    named = {name: images[name] for name in study.kernels}
    return [str(claim) for claim in claims_on(study, kernel, named)]


def test_kernels_of_one_version_are_taken_for_what_their_configurations_differ_in(
    images: dict[str, KernelImage],
) -> None:
    both = study(["a", "b"])
    assert claims(both, "a", images) == ["numa", "hz=250"]
    assert claims(both, "b", images) == ["no-numa", "hz=1000"]


def test_nothing_is_claimed_across_versions_or_without_a_configuration(images: dict[str, KernelImage]) -> None:
    assert claims(study(["a", "d"]), "a", images) == []
    assert claims(study(["a", "c"]), "a", images) == []


def test_what_the_study_says_comes_first(images: dict[str, KernelImage]) -> None:
    claiming_study = study(["a", "b"], {"prove": ["mptcp"]}, prove={"a": ["no-numa"]})
    assert claims(claiming_study, "a", images) == ["mptcp", "no-numa", "hz=250"]
    assert claims(claiming_study, "b", images) == ["mptcp", "no-numa", "hz=1000"]


def test_a_claim_that_names_no_feature_is_refused_before_anything_is_fetched() -> None:
    with pytest.raises(RequestError, match="not found"):
        check_claims(study(["a", "b"], {"prove": ["warp"]}))


@pytest.mark.parametrize("wrong", [{"prove": {"z": ["numa"]}}, {"prove": {"a": ["NUMA!"]}}])
def test_claims_are_about_levels_and_written_as_claims(wrong: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"is not a level|text that matches"):
        study(["a", "b"], **wrong)
