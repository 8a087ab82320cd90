"""The row runs on a real broker: every acknowledged record is there after kill -9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import scale
from benchmarks.metrics import SUBJECT
from benchmarks.peers import Minibroker
from benchmarks.results import Results
from benchmarks.rows import scale_killed
from benchmarks.rows.scale_session import QUICK, ScaleSession
from benchmarks.rows.session import RowError

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 2_000


def test_every_record_is_there_after_a_kill(tmp_path: Path) -> None:
    results = Results([SUBJECT])
    plan = QUICK._replace(killed_records=RECORDS)
    session = ScaleSession(Minibroker(), tmp_path / "broker", plan, results)
    try:
        scale_killed.measure(session)
        connection = session.connect()
        with pytest.raises(RowError, match=f"the log ends at {RECORDS}"):
            scale_killed._look_at_end(connection, RECORDS + 10)
        connection.close()
    finally:
        session.close()
    for metric in scale.METRICS:
        if metric.row == "killed":
            assert results.values(metric.name)[SUBJECT] > 0
