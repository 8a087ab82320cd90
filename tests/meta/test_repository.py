"""The top of the repository: what may stand there, and the files that a hosting service reads.

actionlint reads the workflows, too (`tests/integration/test_workflows.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from tests.meta.sources import ROOT, assert_none

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP: Final = {
    *("minibroker", "protocol_specs", "tests", "benchmarks", "docs", "examples"),
    *("pyproject.toml", "Makefile", "Dockerfile", "docker-compose.yml"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"),
    *("AGENTS.md", "LICENSE", ".ci", ".github", ".devcontainer", ".pre-commit-config.yaml"),
    *(".gitignore", ".dockerignore"),
}
"""Everything that may stand at the top."""
GITHUB: Final = ROOT / ".github"
WORKFLOWS: Final = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS: Final = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
KINDS: Final = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def commands(workflow: Any) -> Iterator[str]:
    """Yield the commands of each step that runs some."""
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                yield step["run"]


def test_nothing_else_stands_at_the_top() -> None:
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    names = {path.partition("/")[0] for path in answer.split("\0") if path}
    assert names <= TOP, names - TOP


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_make_has(path: Any) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    text = "\n".join(commands(workflow))
    assert_none(sorted(set(re.findall(r"\bmake ([a-z-]+)", text)) - targets), "no such target:")
    paths = re.findall(r"(?:\.ci|\.github|examples)/[\w./]*\w", text)
    paths += [
        step["working-directory"]
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "working-directory" in step
    ]
    assert_none([name for name in paths if not (ROOT / name).exists()], "no such file:")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_unless_a_job_says_more(path: Any) -> None:
    """A secret is never stored: publishing is by a token that the service makes for the job."""
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90, name


def test_releases_are_published_by_trust_and_from_the_tag_alone() -> None:
    workflow = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML takes `on` for a truth
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert all("run" not in step for step in publish["steps"])  # no code of ours beside the token


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one(path: Any) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in KINDS
        assert field["attributes"].keys() & {"label", "value"}
        assert field["type"] != "dropdown" or field["attributes"]["options"]


def test_updates_are_looked_for_where_there_is_something() -> None:
    files = {
        "github-actions": ".github/workflows/*.yml",
        "pip": "pyproject.toml",
        "docker": "Dockerfile",
        "npm": "package.json",
        "gomod": "go.mod",
        "maven": "pom.xml",
    }
    config = yaml.safe_load((GITHUB / "dependabot.yml").read_text(encoding="utf-8"))
    assert {update["package-ecosystem"] for update in config["updates"]} == files.keys()
    for update in config["updates"]:
        name = files[update["package-ecosystem"]]
        for directory in update.get("directories", [update.get("directory")]):
            assert list(ROOT.glob(f"{directory.strip('/')}/{name}".lstrip("/"))), directory


def test_the_container_for_development_and_the_hooks_name_what_is_there() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"].endswith("make .venv/.test")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    programs = {hook["entry"].split()[0] for hook in hooks}
    assert programs == {".venv/bin/ruff", ".venv/bin/lint-imports", ".venv/bin/python"}


def test_a_page_says_what_is_stable_for_each_kind_of_fixture() -> None:
    page = (ROOT / "docs" / "what-is-stable.md").read_text(encoding="utf-8")
    plugin = (ROOT / "docs" / "how-to" / "pytest.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`kafka\w*`(?:, )?)+) \|", plugin, re.MULTILINE)
    fixtures = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(fixtures) >= 6
    assert_none(sorted(name for name in fixtures if f"`{name}`" not in page), "not on the page:")
