"""From stack traces to one sentence."""

from __future__ import annotations

import pickle

import pytest

from minibroker.pipeline.errors import BadRecordError, JobUsageError, PipelineError, near_places
from minibroker.pipeline.explain import (
    READ_AGAIN,
    analysis_sentence,
    explained,
    sentence_of,
    start_sentence,
)


def test_our_own_sentence_is_found_in_whatever_wraps_it() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n"
        "Traceback (most recent call last):\n  File ...\n"
        "minibroker.pipeline.errors.PipelineError: first: do this\n\n"
        "During handling ...\nminibroker.pipeline.errors.PipelineError: make the topic\n"
        "\tat org.apache.spark.api.python...\n"
    )
    assert sentence_of(RuntimeError(text)) == "make the topic"
    ours = PipelineError("said")
    assert explained(ours) is ours


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "it is gone; start behind them, or set failOnDataLoss=false to go on without them",
            "it is gone; give --on-data-loss continue to go on without them",
        ),
        (
            "the topic is gone; create it anew, or set failOnDataLoss=false to go on without it",
            "the topic is gone; give --on-data-loss continue to go on without it",
        ),
        (
            'start one or check the option "kafka.bootstrap.servers"',
            "start one or check --bootstrap",
        ),
        (
            'lower the option "kafka.transaction.timeout.ms" to 5',
            "lower the client's setting transaction.timeout.ms (--kafka) to 5",
        ),
    ],
)
def test_options_have_the_words_of_the_verbs(text: str, sentence: str) -> None:
    """Source and sink speak to a Spark job that gives them options."""
    assert str(explained(PipelineError(text))) == sentence
    carried = explained(RuntimeError(f"minibroker.pipeline.errors.PipelineError: {text}\n\tat"))
    assert str(carried) == sentence


def test_a_verb_that_only_reads_can_be_given_again() -> None:
    lost = "records are gone; start behind them, or set failOnDataLoss=false to go on without them"
    assert str(explained(PipelineError(lost), READ_AGAIN)) == (
        "records are gone; give the same command again to go on without them"
    )


def test_an_error_of_a_transform_has_no_sqlstate() -> None:
    text = "[USER_RAISED_EXCEPTION] record t-0 offset 5 is bad SQLSTATE: P0001"
    assert sentence_of(RuntimeError(text)) == "record t-0 offset 5 is bad"
    assert isinstance(explained(RuntimeError(text)), BadRecordError)


@pytest.mark.parametrize("kind", [PipelineError, JobUsageError, BadRecordError])
def test_an_error_of_ours_keeps_its_class(kind: type[PipelineError]) -> None:
    """The exit code hangs on it, and Spark carries only the text."""
    text = f"[STREAM_FAILED] ...\nminibroker.pipeline.errors.{kind.__name__}: do this\n\tat org"
    sentence = explained(RuntimeError(text))
    assert (type(sentence), str(sentence)) == (kind, "do this")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("...UnknownTopicOrPartitionException: This server does not", "a topic is gone"),
        ("Partition t-0's offset was changed from 9 to 3, some data", "t-0 ends at offset 3 and 9"),
        ("Some data may have been lost because they are not available", "--on-data-loss continue"),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", "another job uses this checkpoint"),
        ("java.io.IOException: No space left on device", "no space is left"),
        (
            "java.util.concurrent.TimeoutException: Stream Execution thread for stream x failed to "
            "stop within 60000 milliseconds (specified by spark.sql.streaming.stopTimeout)\n"
            "Caused by: org.apache.spark.SparkException: The stream thread was last executing:",
            "the query did not stop within 60 s",
        ),
        (
            "java.io.IOException: Permission denied: /x\n\tat",
            "Permission denied: /x: let this user",
        ),
        (
            "a\njava.lang.IllegalStateException: odd thing\n\tat b",
            "IllegalStateException: odd thing",
        ),
        ("only this", "Spark stopped: only this"),
        ("", "Spark stopped: RuntimeError"),
    ],
)
def test_common_errors(text: str, sentence: str) -> None:
    explanation = sentence_of(RuntimeError(text))
    assert sentence in explanation
    assert "\n" not in explanation


def test_causes_are_looked_through() -> None:
    outer = RuntimeError("wrapped")
    outer.__cause__ = PipelineError("inner")
    assert "wrapped" in sentence_of(outer)
    outer.__cause__ = RuntimeError("No space left on device")
    assert "no space is left" in sentence_of(outer)


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            ":: org.example#jar;1.0: not found\n"
            'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: '
            "org.example#jar;1.0: not found, download failed: a#b;2!b.jar]\n\tat x",
            "no repository has org.example:jar:1.0, a:b:2: check --packages, or download the jars "
            "and give them with --jars",
        ),
        (
            'WARN\nException in thread "main" org.apache.spark.SparkException: odd\n\tat x',
            "it does not start; it said: SparkException: odd",
        ),
        (
            "26/11/21 11:30:08 ERROR Backend: All masters are unresponsive!\n",
            "it does not start; it said: All masters are unresponsive!",
        ),
        ("something\nelse\n", "it does not start; it said:\nsomething\nelse"),
        ("", "it does not start"),
    ],
)
def test_why_spark_did_not_start(log: str, sentence: str) -> None:
    assert start_sentence(PipelineError("it does not start"), log) == sentence


def test_sparks_word_on_an_expression() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] `x` cannot be resolved. SQLSTATE: 42703; line 1\nplan"
    )
    assert analysis_sentence(RuntimeError(text)) == "`x` cannot be resolved"
    assert analysis_sentence(RuntimeError("plain")) == "plain"
    meant = "`amout` cannot be resolved. Did you mean one of the following? [{}]"
    own_columns = (
        "[X] " + meant.format("`__time`, `amount`, `__bad`, `record`") + ". SQLSTATE: 42703"
    )
    assert analysis_sentence(RuntimeError(own_columns)) == meant.format("`amount`, `record`")


def test_it_survives_the_way_between_sparks_processes() -> None:
    assert str(pickle.loads(pickle.dumps(PipelineError("make the topic")))) == "make the topic"


def test_a_name_that_is_near_is_proposed() -> None:
    column_names = ["customer.email", "customer.name", "id"]
    assert near_places("customer.emial", column_names).startswith(" (did you mean customer.email")
    assert near_places("wholly other", column_names) == ""
