"""The pages of docs/ become a site without a warning; generated parts are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from minibroker.broker.handlers.registry import HANDLERS
from minibroker.kafka.protocol.api_keys import APIS
from tests.support.readme import PAGES, ROOT

LINK = re.compile(r"\]\(([^)#\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, as `make docs` makes it."""
    directory = tmp_path_factory.mktemp("docs")
    run(sys.executable, "-m", "docs.site.pages", directory)
    # Zensical prints its report in colours, and ends with 1 for any warning.
    zensical = Path(sys.executable).with_name("zensical")
    run(zensical, "build", "--strict", "--config-file", directory / "mkdocs.yml")
    return directory / "site"


def run(*command: str | Path) -> None:
    """Run a command at the top of the repository. Raises AssertionError when it fails."""
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_page_is_in_the_site(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.parent != ROOT]
    paths = [
        "index.html" if str(page) == "index.md" else f"{page.with_suffix('')}/index.html"
        for page in pages
    ]
    assert len(paths) > 10
    assert [path for path in paths if not (site / path).is_file()] == []


def test_generated_pages_are_complete(site: Path) -> None:
    table = (site / "reference" / "compatibility" / "index.html").read_text()
    assert [APIS[key].name for key in HANDLERS if f"<td>{APIS[key].name}</td>" not in table] == []
    assert "Known differences" in table
    fixture = (site / "reference" / "fixture" / "index.html").read_text()
    assert 'id="minibroker.testing.broker.Broker.produce"' in fixture
    assert "Read it in this order" in (site / "architecture" / "index.html").read_text()


def test_each_page_is_self_contained(site: Path) -> None:
    """A reader's browser fetches no file from elsewhere."""
    fetched = re.compile(r'(?:src|href)="https?://[^"]+\.(?:js|css|woff2?|png|svg)"')
    addresses = {
        match for page in site.rglob("*.html") for match in fetched.findall(page.read_text())
    }
    assert addresses == set()


def test_links_between_files_lead_somewhere() -> None:
    """MkDocs checks links inside docs/; readers on GitHub follow those of README.md, too."""
    broken = {
        f"{page.name}: {target}"
        for page in (*PAGES, ROOT / "CONTRIBUTING.md")
        for target in LINK.findall(page.read_text())
        if not target.startswith(("http://", "https://", "mailto:"))
        and target != "compatibility.md"  # made with the site
        and not (page.parent / target).exists()
    }
    assert broken == set()


def test_the_tests_that_behaviours_names_exist() -> None:
    paths = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "behaviours.md").read_text())
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
