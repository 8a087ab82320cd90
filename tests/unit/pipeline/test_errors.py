"""The one exception that a pipeline shows to a person."""

from __future__ import annotations

import pickle

from minibroker.pipeline.errors import PipelineError


def test_it_survives_the_way_between_sparks_processes() -> None:
    assert str(pickle.loads(pickle.dumps(PipelineError("make the topic")))) == "make the topic"
