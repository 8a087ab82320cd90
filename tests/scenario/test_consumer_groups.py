"""The state machine of consumer groups, as transcripts to read: `consumer_groups/*.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.consumer_rig import ConsumerRig
from tests.scenario.transcripts import check_transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "consumer_groups").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_holds(path: Path) -> None:
    check_transcript(path, ConsumerRig().play)
