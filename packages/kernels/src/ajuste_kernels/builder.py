"""The builder that the core asks for kernels (``ajuste.kernel.builder``), which loads its parts when it needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ajuste.kernel.builder import BuildWatcher, ContainedKernel, KernelBuilder
from ajuste.kernel.spec import KernelToBuild
from ajuste.machine.home import Home
from ajuste.model.kernel import KernelImage, KernelOptions, KernelVersion
from ajuste.model.wording import Say
from ajuste.study.schema import SchedulerTable


class Builder(KernelBuilder):
    """The builder of kernels and schedulers."""

    def version_to_build(self, spec: KernelToBuild, home: Home) -> KernelVersion:
        from ajuste_kernels.building import build

        return build.version_to_build(spec, home)

    def build_specified(self, texts: Iterable[str], home: Home, watcher: BuildWatcher) -> Mapping[str, str]:
        from ajuste_kernels.building import build

        built = build.build_specified(texts, home, watcher)
        build.require_different(built)
        return {text: kernel.image.spec for text, kernel in built.items()}

    def find_built(self, name: str, home: Home) -> KernelImage:
        from ajuste_kernels.building import built

        return built.find_built(name, home).image

    def contained_kernel(self, name: str, home: Home) -> ContainedKernel:
        from ajuste_kernels import contained

        return contained.contained_kernel(name, home)

    def compared_options(
        self, baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
    ) -> Mapping[str, KernelOptions]:
        from ajuste_kernels import difference

        return difference.compared_options(baseline, images, home, say)

    def build_scheduler(self, table: SchedulerTable, kernel: str | None, home: Home, say: Say) -> str:
        from ajuste_kernels import workplace

        return workplace.build_scheduler(table, kernel, home, say)
