"""Options of serve besides settings: the defaults, and topics as they were given."""

from __future__ import annotations

from minibroker.broker.config.options import ServeOptions, TopicToCreate


def test_nothing_asked_for_is_a_plain_broker() -> None:
    options = ServeOptions()
    assert (options.topics, options.ready_file, options.in_memory) == ((), None, False)
    assert (options.loop, options.log_level) == ("auto", "info")


def test_topics_cannot_be_changed_behind_its_back() -> None:
    topics = [TopicToCreate("a", 1, {})]
    options = ServeOptions(topics=topics)
    topics.clear()
    assert options.topics == (TopicToCreate("a", 1, {}),)
