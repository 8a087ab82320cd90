"""State machines as transcripts that can be read: `classic_groups/*.txt` and the other folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.classic_rig import ClassicRig
from tests.scenario.consumer_rig import ConsumerRig
from tests.scenario.transactions_rig import TransactionsRig
from tests.scenario.transcripts import check_transcript


def transcripts(folder: str) -> pytest.MarkDecorator:
    """Return the parameters of a test: each transcript of the folder."""
    paths = sorted((Path(__file__).parent / folder).glob("*.txt"))
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@transcripts("classic_groups")
def test_classic_groups_do_what_the_transcript_says(path: Path) -> None:
    check_transcript(path, ClassicRig().play)


@transcripts("consumer_groups")
def test_consumer_groups_do_what_the_transcript_says(path: Path) -> None:
    check_transcript(path, ConsumerRig().play)


@transcripts("transactions")
def test_the_coordinator_of_transactions_does_what_the_transcript_says(
    path: Path, tmp_path: Path
) -> None:
    rig = TransactionsRig(tmp_path)
    try:
        check_transcript(path, rig)
    finally:
        rig.close()
