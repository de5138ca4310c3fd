"""The result of a whole configuration, by the judgement of the kernel's own Kconfig; where its source is here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.machine.home import home
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste_guest.kernel.cache import cached_entries
from ajuste_guest.kernel.config import ConfigFile, read_config
from ajuste_kernels.building.sources import PackagedSource, cached_sources
from ajuste_kernels.kconfig import KconfigQuestion, as_values, ask, source_version


def pairs() -> list[tuple[PackagedSource, KernelImage]]:
    """Return each source with a distribution's kernel of its series."""
    matches = []
    for source in cached_sources(home()):
        series = KernelVersion.parse(source_version(source.tree))
        for image in (entry.image for entry in cached_entries(home())):
            if image.version == series and image.config and "cloud" in image.release:
                matches.append((source, image))
                break
    return matches


@pytest.mark.skipif(not (shutil.which("flex") and shutil.which("bison")), reason="no flex or bison")
def test_a_distributions_configuration_comes_to_what_olddefconfig_makes_of_it(tmp_path: Path) -> None:
    matches = pairs()
    if not matches:
        pytest.skip("no source of a kernel is in the cache")
    for source, image in matches:
        assert image.config is not None
        objects = tmp_path / image.release
        objects.mkdir()
        shutil.copyfile(image.config, objects / ".config")
        make = ["make", "-s", "-C", str(source.tree), f"O={objects}", "olddefconfig"]
        subprocess.run(make, check=True, capture_output=True)
        ours = ask(source.tree, [KconfigQuestion(config=as_values(read_config(image.config)), values=True)])[0].values
        assert texts(read_config(objects / ".config")) == {name: value.strip('"') for name, value in ours.items()}


def texts(config: ConfigFile) -> dict[str, str]:
    return {name: value.strip('"') for name, value in as_values(config).items()}
