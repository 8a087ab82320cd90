"""The words for the calls of a broker's clock."""

from __future__ import annotations

from importlib import import_module

import pytest

from minibroker.rig.upcoming import TEXTS, text_of


@pytest.mark.parametrize("name", TEXTS)
def test_each_method_with_words_is_there(name: str) -> None:
    """Its class says the module: a method of a compiled class does not."""
    path, class_name, method_name = name.rsplit(".", 2)
    class_ = getattr(import_module(f"minibroker.broker.{path}"), class_name)
    method = getattr(class_, method_name)
    assert f"{class_.__module__}.{method.__qualname__}" == f"minibroker.broker.{name}"


def test_a_method_without_a_module_has_that_of_its_owner() -> None:
    assert text_of([].append) == "builtins.list.append"
