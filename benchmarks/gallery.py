"""The pictures of docs/gallery: ``python -m benchmarks.gallery NAME …`` runs built-in studies and keeps the first plot
of each report.

A study that was carried out already is not measured again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "gallery" / "images"
CHROMIUM = "/usr/bin/chromium"
WIDTH = 1100
_AJUSTE = Path(sys.executable).parent / "ajuste"


def main(names: list[str]) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        reports = [(name, Path(folder) / f"{name}.html") for name in names]
        for name, report in reports:
            subprocess.run([_AJUSTE, "run", name, "--quiet", "--report", str(report)], check=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900})
            for name, report in reports:
                page.goto(report.as_uri())
                page.add_style_tag(content=".plot { align-self: start }")  # not as high as the plot beside it
                plot = page.locator("figure.plot").first
                plot.locator(".main-svg").first.wait_for()
                plot.screenshot(path=IMAGES / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
