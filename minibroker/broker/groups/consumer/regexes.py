"""Subscriptions by pattern: which topics a regular expression matches, and when it is looked up.

A pattern is RE2's: time is linear in its length and the topic's, whatever a client sends. Looking
through all topics is done on the worker and its result comes back as a step of its own; meanwhile
the pattern matches nothing. It matches no topic that the client may not describe whose request led
to the look-up. One look-up serves all patterns of a group, at most one every
`REFRESH_INTERVAL_MIN_MS`; new topics ask for the next one.

Source: Kafka 4.4, GroupMetadataManager.maybeUpdateRegularExpressions, TopicRegexResolver.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.groups.consumer.records import epoch_record, regex_record, regex_tombstone
from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex, discount
from minibroker.broker.patterns import PatternError, PatternsMissingError, compile_pattern
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.broker.groups.consumer.group import ConsumerGroup
    from minibroker.broker.groups.consumer.member import Member
    from minibroker.broker.groups.consumer.step import Step
    from minibroker.broker.groups.member_requests import MayDescribe

logger = logging.getLogger(__name__)

REFRESH_INTERVAL_MIN_MS: Final = 10_000

_DESCRIPTIONS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""RE2's message for an error → the message of its Java port, which Kafka uses."""


class RegexChange(Enum):
    """The change of a member's pattern."""

    NONE = "none"
    UPDATED = "updated"
    """It is another one, and what it matches is not known yet."""
    RESOLVED = "resolved"
    """It is another one, or none, and what it matches is known."""


def compile_regex(regex: str) -> Any:
    """Return the compiled pattern. Raises KafkaError INVALID_REGULAR_EXPRESSION."""
    try:
        return compile_pattern(regex)
    except PatternsMissingError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex `{regex}`: {error}"
        ) from None
    except PatternError as error:
        kind = str(error).partition(":")[0]
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression:"
            f" {_DESCRIPTIONS.get(kind, kind)}.",
        ) from error


def change_regex(group: ConsumerGroup, step: Step, old: Member, new: Member) -> RegexChange:
    """Return how the pattern changes by the heartbeat that makes `new` of `old`. Patterns of the
    group may have to be looked up then (`step.regexes`).

    Raises KafkaError INVALID_REGULAR_EXPRESSION.
    """
    change = RegexChange.NONE
    is_unknown = False
    if old.topic_regex != new.topic_regex:
        change = RegexChange.UPDATED
        if old.topic_regex and group.regex_counts[old.topic_regex] == 1:
            step.records.append(regex_tombstone(group.group_id, old.topic_regex))
        if not new.topic_regex:
            change = RegexChange.RESOLVED if old.topic_regex else change
        elif group.regex_counts[new.topic_regex] == 0:
            compile_regex(new.topic_regex)
            is_unknown = True
        elif new.topic_regex in group.resolved_regexes:
            change = RegexChange.RESOLVED
    if is_unknown or group.regex_counts:
        _look_up(group, step, old, new, is_unknown=is_unknown)
    return change


def _look_up(
    group: ConsumerGroup, step: Step, old: Member, new: Member, *, is_unknown: bool
) -> None:
    """Ask for a look-up if there is a reason and the last one is not too young."""
    if group.is_resolving:
        return
    last = next(iter(group.resolved_regexes.values()), None)
    if last is not None and step.now_ms <= last.timestamp_ms + REFRESH_INTERVAL_MIN_MS:
        return
    counts = group.regex_counts.copy()
    if old.topic_regex:
        discount(counts, [old.topic_regex])
    if new.topic_regex:
        counts[new.topic_regex] += 1
    is_due = (
        is_unknown
        or len(counts) != len(group.resolved_regexes)
        or (last.version if last else 0) < step.topics.new_topics_version
        or last is None
        or step.now_ms > last.timestamp_ms + step.settings.regex_refresh_interval_ms
    )
    if is_due:
        step.regexes = tuple(counts)


def match_topics(regexes: Iterable[str], names: list[str]) -> dict[str, frozenset[str]]:
    """Pattern → the topics that it matches from end to end. Done on the worker."""
    topics_by_regex: dict[str, frozenset[str]] = {}
    for regex in regexes:
        try:
            pattern = compile_regex(regex)
        except KafkaError as error:  # it came with a record of another implementation
            logger.error("%s It matches nothing.", error.detail)
            topics_by_regex[regex] = frozenset()
        else:
            topics_by_regex[regex] = frozenset(name for name in names if pattern.fullmatch(name))
    return topics_by_regex


def permitted_topics(
    topics_by_regex: Mapping[str, frozenset[str]], may_describe: MayDescribe | None
) -> dict[str, frozenset[str]]:
    """Return pattern → the topics among those that it matches which the client may describe whose
    request asked for the look-up. None: all. Each topic is asked about once.
    """
    if may_describe is None:
        return dict(topics_by_regex)
    names = sorted(frozenset[str]().union(*topics_by_regex.values()))
    permitted_names = {name for name in names if may_describe(name)}
    return {regex: topics & permitted_names for regex, topics in topics_by_regex.items()}


def on_resolved(
    group: ConsumerGroup, step: Step, topics_by_regex: Mapping[str, frozenset[str]], version: int
) -> None:
    """Fill the step with the result of a look-up that began at `version` of the topics."""
    subscriptions = group.subscriptions.copy()
    must_bump = False
    for regex, topics in topics_by_regex.items():
        if group.regex_counts[regex] == 0:
            continue  # nobody uses it any more
        old = group.resolved_regexes.get(regex)
        old_topics = old.topics if old else frozenset()
        if topics != old_topics:
            must_bump = True
            subscriptions.drop_matches(old_topics)
            subscriptions.add_matches(topics)
        resolution = ResolvedRegex(topics, version, step.now_ms)
        step.records.append(regex_record(group.group_id, regex, resolution))
    metadata_hash = step.topics.hash_of(subscriptions)
    if must_bump or metadata_hash != group.metadata_hash:
        epoch = group.epoch + 1
        step.records.append(epoch_record(group.group_id, epoch, metadata_hash))
        step.checked_topics_version = step.topics.version
        logger.info("%s goes to epoch %d: its patterns match other topics", group, epoch)
