"""`kafka-consumer-groups`: groups are listed, described, deleted, and their offsets reset.

Source: Kafka ConsumerGroupCommand (3.9).
"""

from __future__ import annotations

import csv
import datetime
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from minibroker.client import admin, groups
from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.coordinators import FIND_VERSIONS, OF_GROUPS, CoordinatorClient
from minibroker.client.group_details import (
    DEAD,
    GroupDetails,
    delete_group,
    group_details,
)
from minibroker.clock import SystemClock
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import reader_of
from minibroker.container.scripts.options import ScriptOption, WordsError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from minibroker.client.client import Client
    from minibroker.container.scripts.options import Words

_NAME: Final = "kafka-consumer-groups"
DOES: Final = {_NAME: "list, describe or delete groups, and reset their offsets"}
ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_RESETS: Final = (
    "to-offset",
    "to-earliest",
    "to-latest",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-current",
)
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "list": ScriptOption("", "list the groups"),
        "describe": ScriptOption("", "show offsets and lag of groups"),
        "delete": ScriptOption("", "delete groups without members"),
        "reset-offsets": ScriptOption("", "set offsets of groups without members"),
        "delete-offsets": ScriptOption("", "delete offsets of a group"),
        "group": ScriptOption("GROUP", "the group; may come several times"),
        "all-groups": ScriptOption("", "all groups"),
        "topic": ScriptOption("TOPIC[:N,…]", "the topic, and partitions of it"),
        "all-topics": ScriptOption("", "all topics of the group"),
        "members": ScriptOption("", "show the members, with --describe"),
        "offsets": ScriptOption("", "show offsets, with --describe"),
        "state": ScriptOption(
            "STATES", "show the state, with --describe and --list", is_optional=True
        ),
        "type": ScriptOption("TYPES", "show the type, with --list", is_optional=True),
        "verbose": ScriptOption("", "show the partitions of members"),
        "execute": ScriptOption("", "set the offsets"),
        "dry-run": ScriptOption("", "only show what would be set"),
        "to-offset": ScriptOption("OFFSET", "set this offset"),
        "to-earliest": ScriptOption("", "set the start of the log"),
        "to-latest": ScriptOption("", "set the end of the log"),
        "to-current": ScriptOption("", "set the offset that the group has"),
        "shift-by": ScriptOption("N", "move the offset; a negative number moves it back"),
        "to-datetime": ScriptOption("TIME", "YYYY-MM-DDTHH:mm:SS.sss"),
        "by-duration": ScriptOption("PnDTnHnMnS", "so long before now"),
        "export": ScriptOption("", "show the offsets as CSV"),
        "timeout": ScriptOption("MS", "time for an answer"),
    }
}
_NONE: Final = "-"
_OFFSET_COLUMNS: Final = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class OffsetRow(NamedTuple):
    """A partition of a group, as texts."""

    group: str
    topic: str = _NONE
    partition: str = _NONE
    offset: str = _NONE
    end: str = _NONE
    lag: str = _NONE
    member: str = _NONE
    host: str = _NONE
    client: str = _NONE


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Do the action; return the exit code. Raises WordsError."""
    if sum(words.has(action) for action in ACTIONS) != 1:
        raise WordsError(
            "Command must include exactly one action: --list, --describe, --delete,"
            " --reset-offsets, --delete-offsets"
        )
    if words.has("describe", "delete", "reset-offsets") and not words.has("group", "all-groups"):
        action = next(action for action in ACTIONS if words.has(action))
        raise WordsError(f"Option [{action}] takes one of these options: [all-groups], [group]")
    client = reader_of(words)
    actions = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "reset-offsets": _reset,
        "delete-offsets": _delete_offsets,
    }
    try:
        for name, do in actions.items():
            if words.has(name):
                do(client, words, out, errors)
    except (KafkaError, OSError, ProtocolError, ConfigError) as error:
        detail = error.detail or error.code.meaning if isinstance(error, KafkaError) else error
        out.write(f"\nError: Executing consumer group command failed due to {detail}\n")
    return 0


def _deadline(words: Words) -> float:
    return time.monotonic() + (words.number("timeout", 5000) or 0) / 1000


def _group_names(client: Client, words: Words) -> list[str]:
    if words.has("all-groups"):
        return [group.name for group in groups.list_groups(client, _deadline(words))]
    return words.all("group")


def _list(client: Client, words: Words, out: TextIO, _: TextIO) -> None:
    all_groups = groups.list_groups(client, _deadline(words))
    if not words.has("state", "type"):
        out.write("".join(f"{group.name}\n" for group in all_groups))
        return
    chosen_states = {state.strip().lower() for state in words.value("state").split(",") if state}
    width = max([15, *(len(group.name) for group in all_groups)]) + 10
    columns = [name for name in ("type", "state") if words.has(name)]
    out.write(f"{'GROUP':<{width}}" + "".join(f" {name.upper():<20}" for name in columns) + "\n")
    for group in all_groups:
        if chosen_states and group.state.lower() not in chosen_states:
            continue
        row = {"state": group.state}
        if words.has("type"):
            details = group_details(CoordinatorClient(client, group.name), _deadline(words))
            row["type"] = details.protocol.capitalize()
        out.write(
            f"{group.name:<{width}}" + "".join(f" {row[column]:<20}" for column in columns) + "\n"
        )


def _describe(client: Client, words: Words, out: TextIO, errors: TextIO) -> None:
    show: Callable[[Client, Words, GroupDetails, TextIO], None] = _show_offsets
    if words.has("members"):
        show = _show_members
    elif words.has("state"):
        show = _show_state
    for name in sorted(_group_names(client, words)):
        view = group_details(CoordinatorClient(client, name), _deadline(words))
        if view.state == DEAD:
            out.write(f"\nError: Consumer group '{name}' does not exist.\n")
            continue
        if view.state == "Empty":
            errors.write(f"\nConsumer group '{name}' has no active members.\n")
        elif view.state in _REBALANCING:
            errors.write(f"\nWarning: Consumer group '{name}' is rebalancing.\n")
        errors.flush()
        show(client, words, view, out)


def _show_offsets(client: Client, words: Words, view: GroupDetails, out: TextIO) -> None:
    rows = _rows(client, words, view)
    if not rows:
        return
    header = _OFFSET_COLUMNS
    widths = [max(15, *(len(row[place]) for row in rows)) for place in (0, 1, 6, 7)]
    form = (
        f"\n{{:<{widths[0]}}} {{:<{widths[1]}}} {{:<10}} {{:<15}} {{:<15}} {{:<15}}"
        f" {{:<{widths[2]}}} {{:<{widths[3]}}} {{}}"
    )
    out.write("".join(form.format(*row) for row in (header, *rows)) + "\n")


def _rows(client: Client, words: Words, view: GroupDetails) -> list[OffsetRow]:
    """Return a row for each partition with an offset or a member."""
    group = CoordinatorClient(client, view.name)
    committed = {
        TopicPartition(each.topic, each.partition): each.offset
        for each in groups.committed_offsets(group, _deadline(words))
    }
    of_members = [(member, place) for member in view.members for place in member.partitions]
    places = {*committed, *(place for _, place in of_members)}
    ends = admin.list_offsets(client, dict.fromkeys(places, -1), is_committed=False).offsets
    rows = []
    for member, place in sorted(of_members, key=lambda pair: (pair[0].member_id, pair[1])):
        own = (member.member_id, member.host, member.client_id)
        rows.append(_row(view.name, place, committed, ends, own))
    for member in view.members:
        if not member.partitions:
            own = (member.member_id, member.host, member.client_id)
            rows.append(OffsetRow(view.name, member=own[0], host=own[1], client=own[2]))
    assigned = {place for _, place in of_members}
    rows += [
        _row(view.name, place, committed, ends, (_NONE, _NONE, _NONE))
        for place in sorted(committed.keys() - assigned)
    ]
    return rows


def _row(
    name: str,
    place: TopicPartition,
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    member: tuple[str, str, str],
) -> OffsetRow:
    offset, end = committed.get(place), ends.get(place)
    lag = None if offset is None or end is None else end - offset
    numbers = [_NONE if number is None else str(number) for number in (offset, end, lag)]
    return OffsetRow._make((name, place.topic, str(place.partition), *numbers, *member))


def _show_members(_: Client, words: Words, view: GroupDetails, out: TextIO) -> None:
    has_instance = any(member.instance_id for member in view.members)
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows = [
        [view.name, member.member_id, member.host, member.client_id, str(len(member.partitions))]
        for member in view.members
    ]
    widths = [max(15, *(len(row[place]) for row in (header, *rows))) for place in range(4)]
    if has_instance:
        header.insert(2, "GROUP-INSTANCE-ID")
        for row, member in zip(rows, view.members, strict=True):
            row.insert(2, member.instance_id or "")
        widths.insert(2, max(17, *(len(row[2]) for row in rows)))
    form = " ".join(f"{{:<{width}}}" for width in widths) + " {:<15} "
    verbose = words.has("verbose")
    out.write("\n" + form.format(*header) + ("ASSIGNMENT" if verbose else "") + "\n")
    for row, member in zip(rows, view.members, strict=True):
        out.write(form.format(*row) + (_assignment(member.partitions) if verbose else "") + "\n")


def _assignment(places: Sequence[TopicPartition]) -> str:
    """Return `topic(0,1)`, as Kafka shows the partitions of a member."""
    of_topics: dict[str, list[str]] = {}
    for place in places:
        of_topics.setdefault(place.topic, []).append(str(place.partition))
    parts = (f"{topic}({','.join(sorted(of_topics[topic]))})" for topic in of_topics)
    return ", ".join(sorted(parts)) or _NONE


def _show_state(client: Client, _: Words, view: GroupDetails, out: TextIO) -> None:
    find = FindCoordinatorRequest(key=view.name, key_type=OF_GROUPS)
    node = client.ask_any(find, FindCoordinatorResponse, FIND_VERSIONS)
    coordinator = f"{node.host}:{node.port}  ({node.node_id})"
    width = max(25, len(coordinator))
    form = f"\n{{:<{width}}} {{:<25}} {{:<20}} {{:<15}} {{}}"
    header = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    row = (view.name, coordinator, view.assignor, view.state, len(view.members))
    out.write(form.format(*header) + form.format(*row) + "\n")


def _delete(client: Client, words: Words, out: TextIO, _: TextIO) -> None:
    failed: dict[str, str] = {}
    names = _group_names(client, words)
    for name in names:
        try:
            delete_group(CoordinatorClient(client, name), _deadline(words))
        except KafkaError as error:
            failed[name] = error.code.meaning
    done = ", ".join(f"'{name}'" for name in names if name not in failed)
    if not failed:
        out.write(f"Deletion of requested consumer groups ({done}) was successful.\n")
        return
    out.write("\nError: Deletion of some consumer groups failed:\n")
    for name, reason in failed.items():
        out.write(f"* Group '{name}' could not be deleted due to: {reason}\n")
    if done:
        out.write(f"\nThese consumer groups were deleted successfully: {done}\n")


# Offsets of groups without members.


def _reset(client: Client, words: Words, out: TextIO, errors: TextIO) -> None:
    if not words.has("all-topics", "topic"):
        raise WordsError("One of the reset scopes should be defined: --all-topics, --topic.")
    if sum(words.has(name) for name in _RESETS) != 1:
        raise WordsError(f"One of these says the new offset: --{', --'.join(_RESETS)}")
    if not words.has("execute", "dry-run"):
        errors.write(
            "WARN: No action will be performed as the --execute option is missing."
            " Add --dry-run to show the offsets without this warning.\n"
        )
        errors.flush()
    offsets: list[tuple[str, TopicPartition, int]] = []
    for name in _group_names(client, words):
        state = group_details(CoordinatorClient(client, name), _deadline(words)).state
        if state not in ("Empty", DEAD):
            out.write(
                f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the"
                f" current state is {state}.\n"
            )
            continue
        new = _new_offsets(client, words, name, errors)
        if words.has("execute") and not words.has("dry-run"):
            groups.commit_offsets(CoordinatorClient(client, name), new, _deadline(words))
        offsets += [(name, place, offset) for place, offset in new.items()]
    if words.has("export"):
        is_single = len(words.all("group")) == 1
        table = csv.writer(out, lineterminator="\n")
        for name, place, offset in offsets:
            group = () if is_single else (name,)
            table.writerow((*group, place.topic, place.partition, offset))
        return
    form = "\n{:<30} {:<30} {:<10} {:<15}"
    if offsets:
        out.write(form.format("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
    for name, place, offset in offsets:
        out.write(form.format(name, place.topic, place.partition, offset))
    out.write("\n")


def _new_offsets(
    client: Client, words: Words, name: str, errors: TextIO
) -> dict[TopicPartition, int]:
    """Return the offsets to set, inside of the logs. Raises WordsError, KafkaError, OSError."""
    group = CoordinatorClient(client, name)
    committed = {
        TopicPartition(each.topic, each.partition): each.offset
        for each in groups.committed_offsets(group, _deadline(words))
    }
    places = list(committed) if words.has("all-topics") else _places(client, words.all("topic"))
    starts, ends = (
        admin.offsets_at(client, places, moment, is_committed=False) for moment in (-2, -1)
    )
    if words.has("to-earliest"):
        return starts
    if words.has("to-latest"):
        return ends
    if words.has("to-current"):
        return {place: committed.get(place, ends[place]) for place in places}
    moment = _moment(words)
    if moment is not None:
        offsets = admin.offsets_at(client, places, moment, is_committed=False)
        return {place: offsets[place] if offsets[place] >= 0 else ends[place] for place in places}
    new_offsets: dict[TopicPartition, int] = {}
    for place in places:
        if not words.has("shift-by"):
            new_offsets[place] = words.number("to-offset") or 0
        elif place in committed:
            new_offsets[place] = committed[place] + (words.number("shift-by") or 0)
        else:
            raise WordsError(
                f"Cannot shift offset for partition {place} since there is no current committed"
                " offset"
            )
    inside = {}
    for place, offset in new_offsets.items():
        inside[place] = min(max(offset, starts[place]), ends[place])
        if inside[place] != offset:
            side = "lower" if offset < starts[place] else "higher"
            bound = "earliest" if offset < starts[place] else "latest"
            errors.write(
                f"New offset ({offset}) is {side} than {bound} offset for topic partition {place}."
                f" Value will be set to {inside[place]}\n"
            )
    return inside


def _moment(words: Words) -> int | None:
    """Return the time in ms that the words mean, None for none. Raises WordsError."""
    if words.has("to-datetime"):
        text = words.value("to-datetime")
        try:
            moment = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise WordsError(f"{text!r}: expected YYYY-MM-DDTHH:mm:SS.sss") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return round((moment - _EPOCH) / datetime.timedelta(milliseconds=1))
    if words.has("by-duration"):
        return SystemClock().now_ms() - round(_seconds(words.value("by-duration")) * 1000)
    return None


def _seconds(text: str) -> float:
    """Return the seconds of a duration of ISO 8601: `P1DT2H`. Raises WordsError."""
    days, _, times = text.upper().removeprefix("P").partition("T")
    total, number = 0.0, ""
    try:
        for part, units in ((days, {"D": 86400}), (times, {"H": 3600, "M": 60, "S": 1})):
            for letter in part:
                if letter in units:
                    total, number = total + float(number) * units[letter], ""
                else:
                    number += letter
            if number:
                raise ValueError(number)
    except ValueError:
        raise WordsError(f"{text!r}: expected a duration such as P1DT2H30M") from None
    return total


def _places(client: Client, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of `topic` and of `topic:0,1`. Raises WordsError, KafkaError."""
    places: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            count = client.partition_count(topic)
            places += [TopicPartition(topic, number) for number in range(count)]
            continue
        try:
            places += [TopicPartition(topic, int(number)) for number in numbers.split(",")]
        except ValueError:
            raise WordsError(f"Invalid topic arg '{text}', expected topic and partitions") from None
    return places


def _delete_offsets(client: Client, words: Words, out: TextIO, _: TextIO) -> None:
    words.require("group", "topic")
    name, topics = words.value("group"), words.all("topic")
    places = _places(client, topics)
    of_topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for place in places:
        part = OffsetDeleteRequestPartition(partition_index=place.partition)
        of_topics.setdefault(place.topic, []).append(part)
    request = OffsetDeleteRequest(
        group_id=name,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=of_topics[topic]) for topic in of_topics
        ],
    )
    answer = CoordinatorClient(client, name).ask(
        request, OffsetDeleteResponse, (0, 0), _deadline(words)
    )
    parts = by_partition(answer.topics)
    codes = {place: ErrorCode(part_of(parts, place).error_code) for place in places}
    if any(codes.values()):
        out.write("\nError: Encounter some partition level error, see the follow-up details:\n")
    else:
        out.write(
            f"Request succeed for deleting offsets with topic {', '.join(topics)} group {name}\n"
        )
    form = "\n{:<30} {:<15} {:<15}"
    out.write(form.format("TOPIC", "PARTITION", "STATUS"))
    for place in sorted(places):
        code = codes[place]
        status = f"Error: :{code.meaning}" if code else "Successful"
        out.write(form.format(place.topic, place.partition, status))
    out.write("\n")
