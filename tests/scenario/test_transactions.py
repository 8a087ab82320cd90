"""The coordinator of a transactional id, as transcripts to be read: `transactions/*.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.transactions_rig import TransactionsRig
from tests.scenario.transcripts import check_transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "transactions").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_transcript_holds(path: Path, tmp_path: Path) -> None:
    rig = TransactionsRig(tmp_path)
    try:
        check_transcript(path, rig)
    finally:
        rig.close()
