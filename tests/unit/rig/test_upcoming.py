"""The words for the calls of a broker's clock."""

from __future__ import annotations

from importlib import import_module

import pytest

from minibroker.rig.upcoming import TEXTS, text_of


@pytest.mark.parametrize("name", TEXTS)
def test_each_method_has_its_words(name: str) -> None:
    """A method of a compiled class does not say its module."""
    path, class_name, method_name = name.rsplit(".", 2)
    class_ = getattr(import_module(f"minibroker.broker.{path}"), class_name)
    assert text_of(getattr(class_.__new__(class_), method_name)) == TEXTS[name]


def test_a_method_without_a_module_has_that_of_its_owner() -> None:
    assert text_of([].append) == "builtins.list.append"
