"""The one exception that a pipeline shows to a person."""

from __future__ import annotations

import pickle

from minibroker.pipeline.errors import PipelineError, near_places


def test_it_survives_the_way_between_sparks_processes() -> None:
    assert str(pickle.loads(pickle.dumps(PipelineError("make the topic")))) == "make the topic"


def test_a_name_that_is_near_is_proposed() -> None:
    known = ["customer.email", "customer.name", "id"]
    assert near_places("customer.emial", known).startswith(" (did you mean customer.email")
    assert near_places("wholly other", known) == ""
