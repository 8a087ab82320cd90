"""KAFKA_ variables as the apache/kafka image maps them, who wins, and options of serve."""

from __future__ import annotations

from minibroker.broker.config.options import ServeOptions
from minibroker.broker.config.sources import from_environment, gather
from minibroker.broker.config.topic_option import TopicToCreate


def test_variables_become_keys() -> None:
    assert from_environment(
        {
            "KAFKA_LOG_DIRS": "/data",
            "KAFKA_SOME__KEY": "underscore",
            "KAFKA_SOME___KEY": "dash",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_LOG4J_LOGGERS": "kafka=INFO",
            "HOME": "/root",
        }
    ) == {"log.dirs": "/data", "some_key": "underscore", "some-key": "dash"}


def test_listeners_follow_from_advertised_listeners_as_in_the_image() -> None:
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,HOST://localhost:9092",
        "KAFKA_LISTENERS": "",
    }
    derived = "PLAINTEXT://0.0.0.0:29092,HOST://0.0.0.0:9092"
    assert gather({}, environment, [])["listeners"] == derived
    assert gather({"listeners": "X://:1"}, environment, [])["listeners"] == "X://:1"


def test_the_later_source_wins() -> None:
    file_settings = {"a": "file", "b": "file", "c": "file"}
    environment = {"KAFKA_B": "variable", "KAFKA_C": "variable"}
    settings = [("c", "flag"), ("c", "second flag")]
    assert gather(file_settings, environment, settings) == {
        "a": "file",
        "b": "variable",
        "c": "second flag",
    }


def test_options_of_java_that_decide_who_gets_in_are_settings() -> None:
    options = (
        '-Xmx1g -Djava.security.auth.login.config=/etc/jaas.conf -Dother=1 -D "'
        ' -Djava.security.krb5.conf="/etc/krb5.conf"'
    )
    assert from_environment({"KAFKA_OPTS": options, "KAFKA_HEAP_OPTS": "-Dx=y"}) == {
        "java.security.auth.login.config": "/etc/jaas.conf",
        "java.security.krb5.conf": "/etc/krb5.conf",
    }


def test_nothing_asked_for_is_a_plain_broker() -> None:
    options = ServeOptions()
    assert (options.topics, options.ready_file, options.in_memory) == ((), None, False)
    assert (options.loop, options.log_level) == ("auto", "info")


def test_topics_cannot_be_changed_behind_its_back() -> None:
    topics = [TopicToCreate("a", 1, {})]
    options = ServeOptions(topics=topics)
    topics.clear()
    assert options.topics == (TopicToCreate("a", 1, {}),)
