"""What a whole configuration comes to, by the judgement of the kernel's own Kconfig; where its source is here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.home import home
from ajuste.kernel.build.packaged import PackagedSource, cached_sources
from ajuste.kernel.cache import cached_kernels
from ajuste.kernel.kconfig.config_file import ConfigFile, read_config
from ajuste.kernel.kconfig.message import Asked
from ajuste.kernel.kconfig.tree import as_values, ask, source_version
from ajuste.model.kernel import KernelImage, KernelVersion


def pair() -> tuple[PackagedSource, KernelImage] | None:
    """A source and a distribution's kernel of its series."""
    for source in cached_sources(home()):
        series = KernelVersion.parse(source_version(source.tree))
        for image in cached_kernels(home()):
            if image.version == series and image.config and "cloud" in image.release:
                return source, image
    return None


@pytest.mark.skipif(not (shutil.which("flex") and shutil.which("bison")), reason="no flex or bison")
def test_a_distributions_configuration_comes_to_what_olddefconfig_makes_of_it(tmp_path: Path) -> None:
    found = pair()
    if found is None:
        pytest.skip("no source of a kernel is in the cache")
    source, image = found
    assert image.config is not None
    shutil.copyfile(image.config, tmp_path / ".config")
    make = ["make", "-s", "-C", str(source.tree), f"O={tmp_path}", "olddefconfig"]
    subprocess.run(make, check=True, capture_output=True)
    ours = ask(source.tree, [Asked(config=as_values(read_config(image.config)), values=True)])[0].values
    assert texts(read_config(tmp_path / ".config")) == {name: value.strip('"') for name, value in ours.items()}


def texts(config: ConfigFile) -> dict[str, str]:
    return {name: value.strip('"') for name, value in as_values(config).items()}
