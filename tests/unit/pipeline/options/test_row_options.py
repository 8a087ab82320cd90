"""The options of operations on records: both ways in, and what has no effect."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.cli.declaration import InPython, plan_of
from minibroker.cli.errors import UsageError
from minibroker.pipeline.operations.rows import NONE
from minibroker.pipeline.verbs.archive import plan as archive
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.replay import plan as replay
from tests.support.plans import plan_from

WORDS = "--topic orders --to archive"
SHARES = {
    "mask": [",".join(f"a{n}=drop" for n in range(40))],
    "select": [",".join("bcdefghijklmnopqrstuvwxyz")],
}


def in_words(words: str, **more: str) -> ArchivePlan:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in more.items()]
    plan = plan_from(archive.VERB, [*words.split(), *flags])
    assert isinstance(plan, ArchivePlan)
    return plan


def in_python(**options: Any) -> ArchivePlan:
    plan = plan_of(archive.VERB, InPython({"topics": "orders", "to": "archive", **options}))
    assert isinstance(plan, ArchivePlan)
    return plan


def test_without_options_there_are_no_operations() -> None:
    assert in_words(WORDS).operations == in_python().operations == NONE
    assert replay.ReplayPlan._field_defaults["operations"] == NONE


def test_both_ways_in_give_the_same() -> None:
    options = {
        "since": "2026-11-24",
        "until": "2026-11-25T00:00+01:00",
        "where": "value.a > 1",
        "where_schema": "a INT",
        "sample": "1%",
        "sample_by": "key",
        "select": "a, b.c",
        "on_unmaskable": "skip",
    }
    plan = in_words(f"{WORDS} --mask a=hash --mask b.c=drop,key=hash", **options).operations
    assert plan == in_python(mask=["a=hash", "b.c=drop,key=hash"], **options).operations
    assert [str(rule) for rule in plan.rules] == ["a=hash", "b.c=drop", "key=hash"]
    assert (plan.sample, plan.sample_by) == (0.01, "key")
    assert plan.skips


def test_a_moment_before_now_stands_behind_its_flag() -> None:
    since = in_words(f"{WORDS} --since -2h").operations.since
    assert since is not None
    assert since.text == "-2h"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"since": "x"}, "since 'x' is no moment"),
        ({"sample": "0"}, "sample '0' is no part"),
        ({"mask": "a=b"}, "mask a: 'b' is no method"),
        ({"select": "key"}, "select 'key': expected fields"),
        ({"mask": ""}, "mask '' is empty: give a value, or leave the option out"),
        ({"select": " , "}, "select ' , ' is empty"),
        ({"since": "now", "until": "-1h"}, "since now is not before until -1h"),
        ({"where_schema": "a INT"}, "where_schema has no effect without where"),
        ({"sample_by": "key"}, "sample_by has no effect without sample"),
        ({"sample": "1%", "sample_by": "topic"}, "sample_by 'topic': expected record or key"),
        ({"on_unmaskable": "skip"}, "on_unmaskable has no effect without mask"),
        ({"on_unmaskable": "keep", "select": "a"}, "expected fail or skip"),
        ({"mask_secret_file": "x"}, "mask_secret_file has no effect: mask has neither hash nor"),
        ({"mask_secret_file": "x", "mask": "a=drop"}, "mask_secret_file has no effect"),
        ({"until": "now", "follow": True}, "until is an end, and follow has none"),
        (
            {"mask": "a=drop", "schema_registry": "http://x", "keep_bytes": True},
            "keep_bytes keeps bytes as they came, and mask hides a part of them",
        ),
        (SHARES, "mask and select have more than 60 places together"),
    ],
)
def test_a_setting_without_effect_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        in_python(**options)


def test_the_command_line_names_its_flags() -> None:
    with pytest.raises(UsageError, match="--sample-by has no effect without --sample"):
        in_words(WORDS, sample_by="key")
