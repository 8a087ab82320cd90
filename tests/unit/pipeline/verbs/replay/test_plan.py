"""Plans of a replay."""

from __future__ import annotations

from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.replay.plan import ReplayPlan


def test_its_progress_is_beside_the_archive_for_each_topic() -> None:
    assert ReplayPlan(Kafka(), "d", "t").checkpoint == "d/_minibroker/replays/t"
    assert ReplayPlan(Kafka(), "d", "t", checkpoint_directory="c").checkpoint == "c"
