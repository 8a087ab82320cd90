"""Plans of a rollup, and options that do not go together."""

from __future__ import annotations

import pytest

from minibroker.cli.declaration import InWords, options_of
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.spark.progress import Outcome
from minibroker.pipeline.verbs.rollup.plan import VERB, RollupPlan, check, windows_note

NAMES = {field.name: InWords({}).name_of(field) for field in options_of(VERB.plan)}
PLAN = RollupPlan(
    kafka=Kafka(), topic="t", window_ms=60_000, aggregates=("count(*)",), to="./d", schema="a INT"
)


def test_its_progress_is_beside_its_output() -> None:
    assert PLAN.checkpoint == "d/_minibroker/checkpoint"
    assert PLAN._replace(to="t2", checkpoint_directory="c").checkpoint == "c"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"to": "t2"}, "say which with --checkpoint"),
        ({"to": "t2"}, "--to t2 is a topic, as it has no /: write ./t2 for a directory"),
        ({"schema": None}, "either --schema or --example"),
        ({"example": "e"}, "either --schema or --example"),
        ({"slide_ms": 60_001}, "--slide is longer than --window"),
        ({"every_ms": 5}, "--every is for a job with --follow"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], text: str) -> None:
    check(PLAN, NAMES)
    with pytest.raises(JobUsageError, match=text):
        check(PLAN._replace(**options), NAMES)  # type: ignore[arg-type]


def test_windows_are_reported() -> None:
    files = RollupPlan(Kafka(), "t", 60_000, ("count(*)",), "./d")
    topic = files._replace(to="d", checkpoint_directory="c")
    open_still = Outcome(rows=5, batches=1, final_windows=1, open_windows=2)
    with_windows = open_still._replace(provisional_windows=2)
    assert windows_note(files, with_windows) == (
        "1 window became final; 2 windows can still change:\n"
        "they are provisional rows, which the next run replaces;\n"
        "a window becomes final when the topic has a record 10 min later than its end",
        {"final_windows": 1, "provisional_windows": 2},
    )
    assert windows_note(topic, open_still) == (
        "1 window became final; 2 windows can still change:\n"
        "they are not in the topic; a later run writes each of them\n"
        "when the topic has a record 10 min later than its end",
        {"final_windows": 1, "open_windows": 2},
    )
    over = windows_note(files, Outcome(rows=5, batches=1, final_windows=3))
    assert over is not None
    assert over.sentence == "3 windows became final; none can still change"
    assert windows_note(topic, Outcome()) is None
    assert windows_note(files._replace(follow=True), with_windows) is None
