"""`maintain` is killed at random moments: every reader sees every record once, after each kill."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables.archived_files import all_rows
from minibroker.pipeline.tables.data_files import MERGED
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from tests.pipeline.batch_moments import BATCH_OPEN, COMMITTED, WRITTEN, paths_now
from tests.pipeline.killing import GLANCE_S, KILLS, LOG, ROOT, SEED, TIMEOUT
from tests.support.data_files import write_files
from tests.support.processes import ManagedProcess
from tests.unit.pipeline.tables.archives import QUERY, offsets_in, open_table, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, TIMEOUT]

DAYS = 3
BATCHES_A_RUN = 3
ROWS_A_BATCH = 2 * DAYS
CHANGES_A_RUN = 4 * DAYS * BATCHES_A_RUN
"""Files that come or go in one upkeep, about."""

COMMAND = """
import sys
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
maintenance.run(MaintainPlan(sys.argv[1], keep_ms=0))
"""


class Upkeep:
    """A table that grows, and the command that maintains it."""

    def __init__(self, directory: Path, file_format: str) -> None:
        self.directory = directory
        self.offsets: list[int] = []
        self._log = directory.parent / "maintain.log"
        job = f'{{"job": "archive", "format": "{file_format}"}}'
        LocalFiles().write(str(directory / "_minibroker" / "job.json"), job)
        LocalFiles().write(str(directory / "_minibroker" / "query"), QUERY)
        self._table = open_table(file_format, directory) if file_format != "parquet" else None
        self._files = FileArchive(LocalFiles(), str(directory))
        self._staged = ParquetDirectory(
            self._files, LocalFiles(), str(directory), (), compression="zstd"
        )
        self._number = 0

    def grow(self) -> None:
        """Commit batches of small files; the files of one more batch are not committed."""
        for number in range(self._number, self._number + BATCHES_A_RUN + 1):
            batch, first = BatchId(QUERY, number), number * ROWS_A_BATCH
            table = self._table or self._staged
            layout = table.layout(batch, 1 << 20)
            files = write_files(layout, [rows(first, ROWS_A_BATCH, DAYS)])
            if number < self._number + BATCHES_A_RUN:
                assert table.commit(batch, files)
                self.offsets += range(first, first + ROWS_A_BATCH)
        self._number += BATCHES_A_RUN

    def start(self) -> ManagedProcess:
        """Start the upkeep that the command line starts, which keeps no version at all."""
        command = [sys.executable, "-c", COMMAND, str(self.directory)]
        return ManagedProcess(command, self._log, directory=ROOT)

    def names(self) -> set[str]:
        """Return the names of all files of data and of the table's own."""
        return {path.name for path in paths_now(self.directory, "**/*") if "." in path.name}

    def moment(self, old_names: set[str]) -> str:
        """Return how far the newest merge of a run is, which began with the files `old_names`."""
        merged = {name for name in self.names() - old_names if name.startswith(f"{MERGED}-")}
        if not merged:
            return BATCH_OPEN
        names = {path.rpartition("/")[2] for path in self.paths()}
        return COMMITTED if merged <= names else WRITTEN

    def paths(self) -> list[str]:
        """Return the paths of the files that count."""
        if self._table is None:
            return list(self._files.names())
        return [file.path for file in self._table.files()]


@pytest.mark.parametrize("file_format", ["iceberg", "delta", "parquet"])
def test_maintain_killed_anywhere(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    """A run counts as killed if it had changed something and was not done; a last one ends."""
    upkeep = Upkeep(tmp_path / "archive", file_format)
    dice, pause = random.Random(SEED), threading.Event()
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        upkeep.grow()
        old_names, goal = upkeep.names(), dice.randint(1, CHANGES_A_RUN)
        process = upkeep.start()
        try:
            while process.is_running and len(old_names ^ upkeep.names()) < goal:
                pause.wait(GLANCE_S)
            if process.is_running:
                process.popen.send_signal(signal.SIGSTOP)
                moment = upkeep.moment(old_names)
                process.kill()
                killed[moment] += process.popen.returncode == -signal.SIGKILL
                LOG.info("kill %d, %s", killed.total(), moment)
            else:
                assert process.popen.returncode == 0, process.log_tail()
        finally:
            process.kill()
        assert offsets_in(file_format, upkeep.directory) == upkeep.offsets, killed

    upkeep.grow()  # the last kill may have hit a run that had done all its work
    plan = MaintainPlan(str(upkeep.directory), keep_ms=0)
    done = maintenance.run(plan)
    assert (done.removed_files > 0) == (file_format != "parquet")
    assert offsets_in(file_format, upkeep.directory) == upkeep.offsets
    offset_rows = all_rows(spark, str(upkeep.directory), file_format).select("offset").collect()
    assert sorted(row.offset for row in offset_rows) == upkeep.offsets
    assert len(upkeep.paths()) == DAYS
