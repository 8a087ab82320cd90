"""One line that stays, or one JSON line a batch; and the last sentence."""

from __future__ import annotations

import io
import json

import pytest

from minibroker.pipeline.spark.progress import (
    Batch,
    JsonProgress,
    Note,
    Outcome,
    TerminalProgress,
    as_line,
    last_sentence,
)

BATCH = Batch(number=3, rows=500, total_rows=2000, seconds=4.0, batch_seconds=1.25, lag=1000)


def test_rate_and_time_left_are_those_of_the_whole_run() -> None:
    assert (BATCH.rows_per_s, BATCH.eta_s) == (500.0, 2.0)
    assert BATCH._replace(lag=None).eta_s is None
    assert BATCH._replace(seconds=0.0).rows_per_s == 0.0
    assert BATCH._replace(total_rows=0).eta_s is None


def test_a_batch_is_a_line_of_json() -> None:
    out = io.StringIO()
    JsonProgress(out)(BATCH)
    JsonProgress(out)(BATCH._replace(lag=None, bad_records=2, late_rows=0, open_windows=7))
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "batch": 3,
        "rows": 500,
        "rows_per_s": 500.0,
        "total_rows": 2000,
        "batch_seconds": 1.25,
        "lag": 1000,
        "eta_s": 2.0,
    }
    assert (second["lag"], second["eta_s"]) == (None, None)
    assert (second["bad_records"], second["late_rows"], second["open_windows"]) == (2, 0, 7)


def test_on_a_terminal_it_is_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = io.StringIO()
    progress = TerminalProgress(out)
    progress.close()
    assert out.getvalue() == ""
    progress(BATCH)
    assert out.getvalue() == "\r\x1b[K2,000 rows  500 rows/s  lag 1"
    progress.close()
    progress.close()
    assert out.getvalue().endswith("lag 1\r\x1b[K")


@pytest.mark.parametrize(
    ("batch", "line"),
    [
        (BATCH, "2,000 rows  500 rows/s  lag 1,000  eta 2 s"),
        (BATCH._replace(lag=0), "2,000 rows  500 rows/s  lag 0"),
        (BATCH._replace(lag=None), "2,000 rows  500 rows/s"),
        (
            BATCH._replace(lag=0, bad_records=1, late_rows=2, open_windows=3),
            "2,000 rows  500 rows/s  lag 0  1 bad  2 late  3 open windows",
        ),
    ],
)
def test_the_line(batch: Batch, line: str) -> None:
    assert as_line(batch) == line


def test_the_last_sentence() -> None:
    done = Outcome(rows=1000, batches=2, seconds=3.0)
    assert (
        last_sentence("1,000 records archived to d", done) == "1,000 records archived to d in 3 s"
    )
    assert last_sentence("0 records written to topic t", Outcome()) == (
        "0 records written to topic t: nothing is new since the last run"
    )
    aside = Outcome(rows=1, batches=1, seconds=3.0, bad_records=1)
    assert (
        last_sentence("1 record archived", aside)
        == "1 record archived in 3 s; 1 bad record set aside"
    )
    stopped = done._replace(was_stopped=True)
    assert last_sentence("a", stopped).endswith("the same command goes on from there")


def test_a_note_is_a_line_of_its_own() -> None:
    out = io.StringIO()
    line = TerminalProgress(out)
    line.show("first batch")
    line.note(Note("topic t is made", {"created_topic": "t"}))
    assert out.getvalue() == "\r\x1b[Kfirst batch\r\x1b[Ktopic t is made\n\r\x1b[Kfirst batch"
    line.close()
    line.note(Note("done", {}))
    assert out.getvalue().endswith("\r\x1b[Kdone\n")
    out = io.StringIO()
    JsonProgress(out).note(Note("topic t is made", {"created_topic": "t"}))
    assert out.getvalue() == '{"created_topic": "t"}\n'
