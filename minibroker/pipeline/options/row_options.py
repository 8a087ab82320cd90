"""Options of the operations on records (`operations.rows`), the same for every verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.declaration import Option, Part
from minibroker.cli.kinds import FILE, Kind, Many, choice
from minibroker.cli.moments import Moment, moment_of
from minibroker.clock import SystemClock
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.operations.mask_rules import (
    KEYED,
    PLACES_MAX,
    FieldPath,
    MaskRule,
    fields_of,
    rules_of,
)
from minibroker.pipeline.operations.rows import (
    FAIL,
    ON_UNMASKABLE,
    SAMPLE_BY,
    RowOperations,
    share_of,
)
from minibroker.pipeline.options.kinds import EXPRESSION
from minibroker.pipeline.options.shared import RECORDS
from minibroker.pipeline.values.schema_text import schema_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from minibroker.cli.declaration import Names


class Texts(Many):
    """Several texts, each with one thing or more of its own grammar."""

    def __init__(self, metavar: str, read: Callable[[Sequence[str]], tuple[Any, ...]]) -> None:
        super().__init__(metavar)
        self._grammar = read

    def _read_all(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Return all things in their order."""
        return self._grammar(words)


MOMENT: Final = Kind(
    "MOMENT",
    lambda text: moment_of(text, SystemClock().now_ms()),
    lambda moment: moment.text,
)


SINCE: Final = Option(
    "--since",
    MOMENT,
    "only records from this moment on, by their timestamps: 2026-11-24, "
    "2026-11-24T17:30+01:00 (UTC without a zone), -2h, now-15m or milliseconds",
    RECORDS,
)
UNTIL: Final = Option(
    "--until",
    MOMENT,
    "only records before this moment, by their timestamps; all are read up to the end",
    RECORDS,
)
SAMPLE: Final = Option(
    "--sample",
    Kind("PART", share_of, lambda share: f"{100 * share:g}%"),
    "only a part of the records, such as 1%, the same ones in every run",
    RECORDS,
)
SAMPLE_BY_OPTION: Final = Option(
    "--sample-by",
    choice(*SAMPLE_BY),
    "key: all records of a key, or none",
    RECORDS,
    default=SAMPLE_BY[0],
)
MASK: Final = Option(
    "--mask",
    Texts("FIELD=METHOD[,...]", rules_of),
    "mask fields of JSON and decoded values, keys and headers, such as "
    "'customer.email=email, card=last4, key=hash, headers.user=drop'; methods: hash, "
    "email, mask, last4, first1, fixed:TEXT, empty, null, drop",
    RECORDS,
)
MASK_SECRET_FILE: Final = Option(
    "--mask-secret-file",
    Kind("FILE"),
    "the secret of the hashes; or the variable MINIBROKER_MASK_SECRET",
    RECORDS,
    default="a random one beside the job's progress, where that is not part of the result",
)
SELECT: Final = Option(
    "--select",
    Texts("FIELD[,...]", fields_of),
    "only these fields of JSON and decoded values, such as 'id, customer.country'",
    RECORDS,
)
UNMASKABLE: Final = Option(
    "--on-unmaskable",
    choice(*ON_UNMASKABLE),
    "reaction to a value that is no JSON, or has a text where a rule expects an object, so "
    "that it can be neither masked nor selected; skip: leave the record out",
    RECORDS,
    name="on_unmaskable",
    default=FAIL,
)


class RowOptions(NamedTuple):
    """The operations as the user gives them, in their order."""

    since: Annotated[Moment | None, SINCE] = None
    until: Annotated[Moment | None, UNTIL] = None
    where: Annotated[
        str | None,
        Option(
            "--where",
            EXPRESSION,
            "only records of this SQL condition over key and value (text), headers (a map of "
            "text), topic, partition, offset, timestamp",
            RECORDS,
        ),
    ] = None
    where_schema: Annotated[
        str | None,
        Option(
            "--where-schema",
            FILE,
            "fields of a value, so that --where has value.FIELD: DDL such as 'country STRING', in "
            "a file, or as it is",
            RECORDS,
        ),
    ] = None
    sample: Annotated[float | None, SAMPLE] = None
    sample_by: Annotated[str | None, SAMPLE_BY_OPTION] = None
    mask: Annotated[tuple[MaskRule, ...], MASK] = ()
    mask_secret_file: Annotated[str | None, MASK_SECRET_FILE] = None
    select: Annotated[tuple[FieldPath, ...], SELECT] = ()
    unmaskable: Annotated[str | None, UNMASKABLE] = None

    def operations(self) -> RowOperations:
        """Return the operations. Raises PipelineError if the file of a schema cannot be read."""
        return RowOperations(
            since=self.since,
            until=self.until,
            where=self.where,
            value_schema=None
            if self.where_schema is None
            else schema_text(self.where_schema, "--where-schema"),
            sample=self.sample,
            sample_by=self.sample_by,
            rules=self.mask,
            fields=self.select,
            unmaskable=self.unmaskable,
            secret_file=self.mask_secret_file,
        )


ROW_OPTIONS: Final = Part(RowOptions, RowOptions.operations)
"""The part of a plan's field `operations`."""


def check(operations: RowOperations, names: Names, *, follows: bool = False) -> None:
    """Raise JobUsageError for options that do not go together, or have no effect.

    Args:
        names: of the plan's options, as the user calls them.
        follows: whether the job goes on with new records.
    """
    since, until = operations.since, operations.until
    if until is not None and follows:
        raise JobUsageError(f"{names['until']} is an end, and {names['follow']} has none")
    if since is not None and until is not None and since.ms >= until.ms:
        raise JobUsageError(
            f"{names['since']} {since.text} is not before {names['until']} {until.text}: no record "
            "is between them"
        )
    for name, is_given, needed, is_there in (
        ("where_schema", operations.value_schema is not None, "where", bool(operations.where)),
        ("sample_by", operations.sample_by is not None, "sample", operations.sample is not None),
        ("unmaskable", operations.unmaskable is not None, "mask", operations.changes),
    ):
        if is_given and not is_there:
            raise JobUsageError(f"{names[name]} has no effect without {names[needed]}")
    if operations.secret_file is not None and not operations.needs_secret:
        raise JobUsageError(
            f"{names['mask_secret_file']} has no effect: {names['mask']} has neither "
            f"{' nor '.join(KEYED)}"
        )
    if len(operations.rules) + len(operations.fields) > PLACES_MAX:
        raise JobUsageError(
            f"{names['mask']} and {names['select']} have more than {PLACES_MAX} places together"
        )
