"""Names of subjects and their contexts."""

from __future__ import annotations

import pytest

from minibroker.registry.errors import RegistryError
from minibroker.registry.subjects import (
    check_subject,
    context_named,
    context_of,
    name_within,
    qualified,
)


@pytest.mark.parametrize(
    ("subject", "context", "full_name"),
    [
        ("a", ".", "a"),
        ("a", ".c", ":.c:a"),
        (":.d:a", ".c", ":.d:a"),
        (":.:a", ".c", "a"),
        (":.d:", ".", ":.d:"),
        (":a", ".", ":a"),
        (":.a", ".", ":.a"),
        ("a:.b:c", ".", "a:.b:c"),
        (":.d:x:y", ".", ":.d:x:y"),
    ],
)
def test_name_is_qualified_by_the_context_of_the_caller(
    subject: str, context: str, full_name: str
) -> None:
    assert qualified(subject, context) == full_name


@pytest.mark.parametrize(
    ("subject", "context", "name"),
    [("a", ".", "a"), (":.c:a", ".c", "a"), (":.c:", ".c", ""), (":.c", ".", ":.c")],
)
def test_qualified_name_has_a_context_and_a_name(subject: str, context: str, name: str) -> None:
    assert (context_of(subject), name_within(subject)) == (context, name)


@pytest.mark.parametrize("text", [".c", ":.c:", "c"])
def test_context_of_a_path_is_written_in_three_ways(text: str) -> None:
    assert context_named(text) == ".c"


@pytest.mark.parametrize("subject", ["", ":.c:", "__GLOBAL", "__EMPTY", "a\nb", "x" * 5000])
def test_name_that_no_subject_can_have_is_refused(subject: str) -> None:
    with pytest.raises(RegistryError) as refusal:
        check_subject(subject)
    assert refusal.value.code == 42208


def test_usual_names_are_subjects() -> None:
    for subject in ("orders-value", "a/b c", "ü", ":.c:a"):
        check_subject(subject)
