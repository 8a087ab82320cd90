"""The operations on records between a source and a sink, the same for every verb. No Spark.

    --since, --until ─► --where ─► --sample ─► --mask ─► --select

`where` and `sample` see a record as it was written; only masked values leave. The operations are
part of the job's identity: a second run goes on with the same ones, or is refused. A relative
moment (`-2h`) is the one of the first run: a batch that is repeated must have the same rows.

    options.row_options ─► RowOperations ─► settled (moments of the first run) ─► operations.frames
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import moment
from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.operations.mask_rules import KEYED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.cli.moments import Moment
    from minibroker.pipeline.operations.mask_rules import FieldPath, MaskRule

FAIL: Final = "fail"
SKIP: Final = "skip"
ON_UNMASKABLE: Final = (FAIL, SKIP)
"""Reactions to a record that cannot be masked: end the job, or leave the record out."""

BY_RECORD: Final = "record"
BY_KEY: Final = "key"
SAMPLE_BY: Final = (BY_RECORD, BY_KEY)

METRIC: Final = "row_operations"
ROWS: Final = "written_rows"
UNMASKABLE: Final = "unmaskable_rows"
PLACE_BITS: Final = "found_places"
SET_ASIDE: Final = "set_aside_rows"
"""Names of the metrics in a query's progress."""

IDENTITY: Final = ("since", "until", "where", "sample", "mask", "select")
"""Names in the identity of a job; one that is missing there means none.

The reaction to a record that cannot be masked is not among them: a run may leave out the record
that ended the one before it.
"""

_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
_FRACTION: Final = re.compile(r"0?\.[0-9]{1,12}|1(?:\.0*)?")
_IN_IDENTITY: Final = re.compile(r"(.+) \(([0-9]+) ms\)")


class RowOperations(NamedTuple):
    """The operations of one job."""

    since: Moment | None = None
    """Records from this moment on, by their timestamps."""
    until: Moment | None = None
    """Records before this moment."""
    where: str | None = None
    """SQL condition over the columns of `operations.frames.CONDITION_COLUMNS`."""
    value_schema: str | None = None
    """Fields of a value for `where`; None: the value is text there."""
    sample: float | None = None
    """The part of the records that is taken, up to 1."""
    sample_by: str | None = None
    """`key`: all records of a key or none of them; `record`, None: each by itself."""
    rules: tuple[MaskRule, ...] = ()
    fields: tuple[FieldPath, ...] = ()
    unmaskable: str | None = None
    """One of ON_UNMASKABLE; None: FAIL."""
    secret_file: str | None = None

    @property
    def needs_secret(self) -> bool:
        """Return whether a rule hashes."""
        return any(rule.method in KEYED for rule in self.rules)

    @property
    def chooses(self) -> bool:
        """Return whether records are left out."""
        return any((self.since, self.until, self.where, self.sample))

    @property
    def changes(self) -> bool:
        """Return whether records are changed."""
        return bool(self.rules or self.fields)

    @property
    def is_used(self) -> bool:
        """Return whether there is any operation."""
        return self.chooses or self.changes

    @property
    def is_time_alone(self) -> bool:
        """Return whether records are chosen by their time and by nothing else."""
        return not (self.where or self.sample or self.changes)

    @property
    def without_changes(self) -> RowOperations:
        """Return the operations that choose records, without those that change them."""
        return self._replace(rules=(), fields=())

    @property
    def skips(self) -> bool:
        """Return whether a record that cannot be masked is left out; otherwise it ends the job."""
        return self.unmaskable == SKIP


NONE: Final = RowOperations()


def share_of(text: str) -> float:
    """Return the part that `1%`, `0.5 %` or `0.01` names, up to 1. Raises JobUsageError."""
    words = text.strip()
    share = -1.0
    if match := _PERCENT.fullmatch(words):
        share = float(match[1]) / 100
    elif _FRACTION.fullmatch(words):
        share = float(words)
    if not 0 < share <= 1:
        raise JobUsageError(f"{text!r} is no part: expected for instance 1%, 0.5% or 0.01")
    return share


def identity_of(operations: RowOperations, secret: bytes | None = None) -> dict[str, str]:
    """Return the operations as part of a job's identity; those that are not used are left out.

    Args:
        operations: with the moments of the first run, see `with_first_moments`.
        secret: of the hashes, of which a fingerprint goes into the identity; None: not known yet.
    """
    identity = {
        name: f"{when.text} ({when.ms} ms)"
        for name, when in (("since", operations.since), ("until", operations.until))
        if when is not None
    }
    if operations.where is not None:
        identity["where"] = operations.where
        if operations.value_schema is not None:
            identity["where"] += f" with value {operations.value_schema}"
    if operations.sample is not None:
        identity["sample"] = f"{operations.sample!r} by {operations.sample_by or BY_RECORD}"
    if operations.rules:
        rules = [rule._replace(path=rule.path.required()) for rule in operations.rules]
        identity["mask"] = ", ".join(map(str, rules))
    if operations.fields:
        identity["select"] = ", ".join(str(path.required()) for path in operations.fields)
    if secret is not None:
        identity["secret"] = fingerprint(secret)
    return identity


def fingerprint(secret: bytes) -> str:
    """Return eight hex digits that tell two secrets apart, and too little to guess one by."""
    return hashlib.sha256(b"minibroker mask secret\0" + secret).hexdigest()[:8]


def source_options(operations: RowOperations) -> dict[str, str]:
    """Return the options of a source that begins at `since`.

    That bound is exact: before the first record at a moment or later there is none so late. An end
    by time would not be exact. A record's time is a claim of its producer: behind one of the year
    58879 there can be any number of good ones. So `until` only filters, and all is read.
    """
    if operations.since is None:
        return {}
    return {
        "startingTimestamp": str(operations.since.ms),
        "startingOffsetsByTimestampStrategy": "latest",
    }


def with_first_moments(operations: RowOperations, job: Mapping[str, str]) -> RowOperations:
    """Return operations whose moments are those of the first run, if the words are the same.

    Args:
        job: identity that the first run has written; empty: this is the first run.
    """
    return operations._replace(
        since=_first_moment(operations.since, job.get("since")),
        until=_first_moment(operations.until, job.get("until")),
    )


def check_same(directory: str, job: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Raise PipelineError if a job was begun with other operations than those of this run.

    Args:
        directory: with the job's identity, for the message.
        job: the identity there; empty: there is no job yet.
        identity: as `identity_of` returns it.
    """
    if not job:
        return
    for name in IDENTITY:
        if job.get(name) == identity.get(name):
            continue
        first_terms, own_terms = (
            f"{name} {terms[name]!r}" if name in terms else f"no {name}"
            for terms in (job, identity)
        )
        raise PipelineError(
            f"{directory} belongs to a job with {first_terms}, and this one has {own_terms}: rows "
            "of both would be mixed; give the same as before, or another directory"
        )
    if "secret" in identity and job.get("secret", identity["secret"]) != identity["secret"]:
        raise PipelineError(
            f"{directory} was masked with another secret: the same text would have two hashes; "
            "give the secret of the first run, or another directory"
        )


def describe(operations: RowOperations) -> list[tuple[str, str]]:
    """Return the operations in their order, for people: name and text."""
    lines = []
    since, until = operations.since, operations.until
    if since is not None:
        lines.append(("since", f"{moment(since.ms)} UTC, by the records' timestamps"))
    if until is not None:
        lines.append(("until", f"before {moment(until.ms)} UTC, by the records' timestamps"))
    if operations.where is not None:
        lines.append(("where", operations.where))
    if operations.sample is not None:
        units = "keys, each with all its records" if operations.sample_by == BY_KEY else "records"
        lines.append(("sample", f"{100 * operations.sample:g} % of the {units}"))
    if operations.rules:
        names = [name for name in ("key", "headers") if not _is_masked(operations, name)]
        rest = f"; {' and '.join(names)} stay as they are" if names else ""
        lines.append(("mask", ", ".join(map(str, operations.rules)) + rest))
    if operations.fields:
        lines.append(("select", f"{', '.join(map(str, operations.fields))} of each value"))
    if operations.changes:
        lines.append(("unmaskable", "is left out" if operations.skips else "ends the job"))
    return lines


def missed(operations: RowOperations, place_bits: int) -> tuple[str, ...]:
    """Return the rules and selected fields whose places no record had.

    Args:
        place_bits: all bits of `masking.Masked.place_bits` of the job.
    """
    places = [*operations.rules, *operations.fields]
    return tuple(str(place) for index, place in enumerate(places) if not place_bits >> index & 1)


def _first_moment(own: Moment | None, text: str | None) -> Moment | None:
    parts = _IN_IDENTITY.fullmatch(text or "")
    if own is None or parts is None or parts[1] != own.text:
        return own
    return own._replace(ms=int(parts[2]))


def _is_masked(operations: RowOperations, target: str) -> bool:
    return any(rule.path.target == target for rule in operations.rules)
