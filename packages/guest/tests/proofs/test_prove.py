"""Proofs: what is shown of features and claims, and of a real kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ajuste.model.error import RunError
from ajuste.model.kernel import KernelImage
from ajuste_guest.proofs.feature import KernelFacts
from ajuste_guest.proofs.prove import FEATURES, judged, option_values, parse_claims, require
from shell import SMALL, Shell


@pytest.fixture
def image(tmp_path: Path) -> KernelImage:
    config = tmp_path / "config"
    config.write_text('CONFIG_SCHED_AUTOGROUP=y\nCONFIG_HZ=250\nCONFIG_X="two words"\n# CONFIG_NUMA is not set\n')
    return KernelImage(spec="mine:x", release="6.1.0", vmlinuz=tmp_path / "vmlinuz", config=config, sha256="0")


def test_options_are_shown_as_they_were_set(image: KernelImage) -> None:
    assert option_values(image.config, ("HZ", "NUMA", "X")) == {
        "CONFIG_HZ": "250",
        "CONFIG_NUMA": "n",
        "CONFIG_X": "two words",
    }
    assert option_values(None, ("HZ",)) == {"CONFIG_HZ": "?"}


def test_the_running_kernel_is_believed_and_not_its_configuration(image: KernelImage) -> None:
    claims = parse_claims(["autogroup"])
    facts = KernelFacts(
        build="#1 SMP", unreadable={"/proc/sys/kernel/sched_autogroup_enabled": "No such file or directory"}
    )
    proof = judged(image, [FEATURES["autogroup"]], claims, facts)
    (feature,) = proof.features
    assert (feature.state, feature.options, feature.holds) == ("no", {"CONFIG_SCHED_AUTOGROUP": "y"}, False)
    with pytest.raises(RunError, match=r"mine:x .* expected autogroup, .* shows no .*No such file") as refused:
        require(proof)
    assert "ajuste kernel prove mine:x" in (refused.value.hint or "")


def test_a_feature_that_nobody_claimed_refuses_nothing(image: KernelImage) -> None:
    require(judged(image, [FEATURES["autogroup"]], (), KernelFacts(build="#1 SMP")))


@pytest.mark.vm
def test_one_boot_shows_what_a_real_kernel_has(tmp_path: Path, ajuste_home: Path) -> None:
    shell = Shell(tmp_path, ajuste_home)
    claims = ("numa", "mptcp", "kyber", "bfq", "no-rt", "hz=250", "preempt=voluntary", "no-sched_ext", "psi")
    output, _ = shell("kernel", "prove", "debian:6.1", *claims, "no-autogroup", "--json", expect=1)
    document = json.loads(output)
    assert {feature["claim"] for feature in document["features"] if feature["holds"]} == set(claims)
    assert document["holds"] is False
    seen = {
        feature["feature"]: {sight["what"]: sight["found"] for sight in feature["evidence"]}
        for feature in document["features"]
    }
    assert seen["mptcp"]["subflows of the connection"].startswith("2: ")
    assert seen["numa"]["4 MiB asked for on the far node"] == "1024 of 1024 pages are on the far node"


@pytest.mark.vm
@pytest.mark.slow
def test_a_study_measures_nothing_on_a_kernel_that_is_not_what_it_takes_it_for(
    tmp_path: Path, ajuste_home: Path
) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace("[target]", '[target]\nprove = ["numa", "no-psi"]'))
    shell = Shell(tmp_path, ajuste_home)
    _, complaint = shell("run", "small.toml", "--quiet", expect=1)
    assert "debian:5.10" in complaint
    assert "expected no-psi, but the running kernel shows yes" in " ".join(complaint.split())
    assert "expected numa" not in complaint
    assert shell.json("report") == []
