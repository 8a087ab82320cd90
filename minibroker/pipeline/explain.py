"""From an error of Spark or Java to one sentence that says what to do.

Spark wraps the error of a worker several times and adds two stack traces. The useful part is in
there as a `PipelineError`, or as one of the few common messages.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import BadRecordError, JobUsageError, PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLASSES: Final = {kind.__name__: kind for kind in (PipelineError, JobUsageError, BadRecordError)}
_OURS: Final = re.compile(rf"\b({'|'.join(_CLASSES)}): (.+)")
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+)")
"""Errors that `raise_error` raises in a transform, which cannot raise Python's exceptions. Each of
them is about a record.
"""
_SPARK_CLASS: Final = re.compile(r"^\[([A-Z_0-9.]+)\]\s*(.*)", re.DOTALL)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*")
_OWN_COLUMN: Final = re.compile(r"(?<=\[)`__\w+`, |, `__\w+`")
"""A column of the pipeline's own in a list of names like the one that was given."""
_JAVA_CLASS: Final = re.compile(r"(?:[a-z_0-9]+\.)+([A-Z]\w*(?:Exception|Error)): ([^\n]+)")

_TRACEBACK: Final = "Traceback (most recent call last)"
_PYTHON_ERROR: Final = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception)): ([^\n]+)$", re.MULTILINE)

_NOT_FOUND: Final = re.compile(
    r"(?:unresolved dependency|download failed): ([^#\s]+)#([^;]+);([^:!]+)"
)
_SAID_LAST: Final = re.compile(
    r'^(?:Exception in thread "main" (?:[\w.$]+\.)?|\S+ \S+ ERROR \w+: )(.+)', re.MULTILINE
)

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

PYTHON_TOO_SLOW: Final = (
    "Spark's Python was not up within ten seconds, several times: this machine is too busy; give "
    "the same command again, it goes on from there"
)

_SENTENCES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"Python worker failed to connect back"), PYTHON_TOO_SLOW),
    (
        re.compile(r"UnknownTopicOrPartitionException|UNKNOWN_TOPIC_OR_PART"),
        "a topic is gone: it was deleted while the job ran, or before the job went on; make it "
        "again or begin anew with another directory",
    ),
    (
        re.compile(r"Partition ([^ ]+)'s offset was changed from (\d+) to (\d+)"),
        lambda match: (
            f"{match[1]} ends at offset {match[3]} and {match[2]} had been read: the topic was "
            "made anew; begin anew with another directory, or give --on-data-loss continue"
        ),
    ),
    (
        re.compile(r"Some data may have been lost"),
        "records were removed from the topic before they were read: give --on-data-loss continue "
        "to go on with those that are there",
    ),
    (
        re.compile(r"STATE_STORE\w*SCHEMA|StateSchemaNotCompatible|STATE_STORE_KEY_SCHEMA"),
        "the windows in the checkpoint have other groups or aggregates than these: give the same "
        "--by, --agg and --window as before, or begin anew with another directory",
    ),
    (
        re.compile(r"(\d+) state store partitions|spark\.sql\.shuffle\.partitions"),
        "the checkpoint was made with another number of shuffle partitions: give the same --conf",
    ),
    (
        re.compile(
            r"CONCURRENT_STREAM_LOG_UPDATE|ConcurrentModification|"
            r"Multiple streaming queries are concurrently using"
        ),
        "another job uses this checkpoint at this moment: wait until it has ended, or stop it",
    ),
    (
        re.compile(r"failed to stop within (\d+) milliseconds"),
        lambda match: (
            f"the query did not stop within {int(match[1]) // 1000} s: its batch still waits for "
            "something; the next run does what this batch has not committed"
        ),
    ),
    (
        re.compile(r"(?:No space left on device)"),
        "no space is left on the device that is written to",
    ),
    (
        re.compile(r"(?:Permission denied|AccessDenied\w*)[^\n]*"),
        lambda match: f"{match[0].strip()}: let this user write there, or give another directory",
    ),
)


_LOSS: Final = re.compile(
    r"(?:start behind them|correct the bounds|start anew with another checkpoint|create it anew)?"
    r"(?:, or )?set failOnDataLoss=false"
)
"""The end of a sentence of the source, which speaks to whoever gives it options."""
_OPTIONS: Final = (
    (re.compile(r'(?:the option )?"?\bkafka\.bootstrap\.servers"?'), "--bootstrap"),
    (re.compile(r'the option "kafka\.([\w.]+)"'), r"the client's setting \1 (--kafka)"),
    (re.compile(r" \(kafkaConsumer\.pollTimeoutMs\)"), ""),
)
"""Options of source and sink in the words of the verbs."""
GO_ON: Final = "give --on-data-loss continue"
READ_AGAIN: Final = "give the same command again"
"""Advice about records that are gone: to a job that can go on without them, and to another one."""


def sentence_of(error: BaseException) -> str:
    """Return the best sentence for `error`; without one, the innermost message cut to a line."""
    return str(explained(error))


def explained(error: BaseException, about_loss: str = GO_ON) -> PipelineError:
    """Return `error` as the PipelineError that the command line prints.

    An error of ours that Spark carried as text has its class again. It has the verbs' words.

    Args:
        about_loss: what a person does about records that are gone: GO_ON or READ_AGAIN.
    """
    own_error = _ours(error)
    text = str(own_error)
    words = _LOSS.sub(about_loss, text)
    for option, word in _OPTIONS:
        words = option.sub(word, words)
    return own_error if words == text else type(own_error)(words)


def _ours(error: BaseException) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    text = _text_of(error)
    if raised := _RAISED.findall(text):
        return BadRecordError(_STATE.sub("", raised[-1]).strip())
    if ours := _OURS.findall(text):
        name, sentence = ours[-1]
        return _CLASSES[name](_STATE.sub("", sentence).strip())
    return PipelineError(_foreign_sentence(error, text))


def _foreign_sentence(error: BaseException, text: str) -> str:
    """Return the sentence for an error that is not ours; `text` is that of its causes, too."""
    for pattern, sentence in _SENTENCES:
        if match := pattern.search(text):
            return sentence if isinstance(sentence, str) else sentence(match)
    # The last line of a task's traceback says more than the Java exception around it.
    causes = _TRACEBACK in text and [
        cause for cause in _PYTHON_ERROR.findall(text) if not cause[1].endswith(":")
    ]
    causes = causes or _JAVA_CLASS.findall(text)
    if causes:
        name, message = causes[-1]
        return f"Spark stopped with {name}: {message.strip()}"
    first = text.strip().split("\n")[0]
    return f"Spark stopped: {first or type(error).__name__}"


def start_sentence(error: PipelineError, log: str) -> str:
    """Return why Spark did not start, from its log; the whole log if no known reason is in it."""
    if missing := dict.fromkeys(":".join(names) for names in _NOT_FOUND.findall(log)):
        return (
            f"no repository has {', '.join(missing)}: check --packages, or download the jars and "
            "give them with --jars"
        )
    if last_words := _SAID_LAST.findall(log):
        return f"{error}; it said: {last_words[-1].strip()}"
    return f"{error}; it said:\n{log.strip()}" if log.strip() else str(error)


def analysis_sentence(error: BaseException) -> str:
    """Return Spark's message about an expression, without its error class, position and plan.

    Columns that the pipeline adds itself are not among those that Spark proposes.
    """
    first = str(error).strip().split("\n")[0]
    match = _SPARK_CLASS.match(first)
    text = match[2] if match else first
    return _OWN_COLUMN.sub("", _STATE.sub("", text)).strip().rstrip(".;")


@contextmanager
def analysed_quietly() -> Iterator[None]:
    """Keep PySpark from logging Java's stack for a wrong expression: one sentence says it."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  slow to import

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    states = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, state in zip(loggers, states, strict=True):
            logger.disabled = state


def _text_of(error: BaseException) -> str:
    """Return all texts of `error` and of its causes."""
    parts = []
    cause: BaseException | None = error
    while cause is not None:
        parts.append(str(cause))
        cause = cause.__cause__
    return "\n".join(parts)
