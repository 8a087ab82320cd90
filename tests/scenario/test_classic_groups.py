"""The state machine of classic groups, as transcripts that can be read: `classic_groups/*.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.classic_rig import ClassicRig
from tests.scenario.transcripts import check_transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "classic_groups").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_holds(path: Path) -> None:
    check_transcript(path, ClassicRig().play)
