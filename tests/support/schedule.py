"""The order in which pytest's workers take the tests, so that all of them end at about one time.

A worker takes one module after the other, so that a module's fixtures are made once. Folders whose
modules take minutes come first, those whose modules take a second last: they fill the gaps. Spark
computes while other tests wait for brokers, so only half of the workers take its tests as long as
there are others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler.loadfile import LoadFileScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

SPARK = "tests/pipeline/"
DIFFERENTIAL = "tests/compat/test_differential.py"
KILLED_JOBS = "tests/pipeline/test_killed_jobs.py"

LONGEST = (
    KILLED_JOBS,
    "tests/integration/test_examples.py",
    "tests/integration/test_compiled_package.py",
    "tests/integration/test_faults_of_requests.py",
    "tests/integration/test_clients.py",
    "tests/integration/test_groups.py",
    "tests/integration/test_consumer_groups.py",
    "tests/integration/test_secured_clients.py",
    "tests/integration/test_secured_tools.py",
    "tests/unit/testing/test_plugin.py",
)
"""Modules that come first in their folder: each takes longer than ten seconds.

The end of a run names the longest modules.
"""

FOLDERS = (
    "pipeline",
    "fire",
    "outgrowing",
    "crash",
    "compat_cluster",
    "browser",
    "integration",
    "compat",
    "fuzz",
    "meta",
    "property",
)
"""Folders of tests/, the longest first; all others follow."""


class LongestFirst(LoadFileScheduling):
    """xdist's `loadfile` in the order of collection, with the largest modules in parts."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        """Return the module; of the largest modules a part whose tests share nothing with others.

        That is one scenario with all its versions, and one test with jobs that are killed.
        """
        if nodeid.startswith(DIFFERENTIAL):
            return nodeid.rsplit("-v", 1)[0]
        if nodeid.startswith(KILLED_JOBS):
            return nodeid
        return super()._split_scope(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give the node the next module of its kind, or of the other kind if none is left."""
        takes_spark = self.nodes.index(node) < len(self.nodes) // 2
        for scope in self.workqueue:
            if scope.startswith(SPARK) == takes_spark:
                self.workqueue.move_to_end(scope, last=False)
                break
        super()._assign_work_unit(node)


def rank(nodeid: str) -> tuple[int, int]:
    """Return the place of a test's folder in the run, and of its module in the folder."""
    folder = nodeid.split("/", 2)[1] if nodeid.startswith("tests/") else ""
    module = nodeid.partition("::")[0]
    return (
        FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS),
        LONGEST.index(module) if module in LONGEST else len(LONGEST),
    )
