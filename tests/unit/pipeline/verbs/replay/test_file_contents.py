"""The contents of Parquet files: by the footer, or by two columns where it tells too little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.verbs.replay import file_contents
from minibroker.pipeline.verbs.replay.file_contents import Chosen, content_of

if TYPE_CHECKING:
    from pathlib import Path

SECOND_MS = 1_000
ALL = Chosen()


def written(directory: Path, rows: list[tuple[int, int, int]], **more: Any) -> str:
    """A file of (partition, offset, second); a record in second -1 has no time."""
    path = directory / "topic=a%3Ab c" / "date=2026-11-28" / "part.parquet"
    path.parent.mkdir(parents=True)
    columns = {
        "value": pa.array([b"v" for _ in rows], pa.binary()),
        "partition": pa.array([row[0] for row in rows], pa.int32()),
        "offset": pa.array([row[1] for row in rows], pa.int64()),
        "timestamp": pa.array([row[2] * 10**6 for row in rows], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([-1 if row[2] < 0 else 0 for row in rows], pa.int32()),
    }
    pq.write_table(pa.table(columns), path, **more)
    return str(path)


def test_a_file_of_one_partition_is_known_by_its_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, [(3, offset, 0) for offset in (5, 9, 7)], row_group_size=1)
    monkeypatch.delattr(file_contents, "_by_columns")
    url = f"file://{tmp_path}/topic%3Da%253Ab%20c/date%3D2026-11-28/part.parquet"
    assert content_of(path, ALL) == [(url, "a:b c", 3, 5, 9, 3)]
    assert content_of(f"file:{path}".replace(" ", "%20").replace("%3A", "%253A"), ALL) == [
        (url, "a:b c", 3, 5, 9, 3)
    ]


@pytest.mark.parametrize("more", [{}, {"write_statistics": False}, {"row_group_size": 2}])
def test_a_file_of_several_is_looked_into(tmp_path: Path, more: dict[str, Any]) -> None:
    path = written(tmp_path, [(0, 4, 0), (2, 8, 0), (0, 6, 0), (2, 9, 0), (0, 5, 0)], **more)
    rows = [row[2:] for row in content_of(path, ALL)]
    assert rows == [(0, 4, 6, 3), (2, 8, 9, 2)]


def test_only_records_that_count_are_counted(tmp_path: Path) -> None:
    seconds = (5, -1, 9, 6, 7)
    path = written(tmp_path, [(0, offset, second) for offset, second in enumerate(seconds)])
    in_time = Chosen(since_ms=6 * SECOND_MS, until_ms=9 * SECOND_MS)
    assert [row[2:] for row in content_of(path, in_time)] == [(0, 3, 4, 2)]
    assert content_of(path, Chosen(since_ms=10 * SECOND_MS)) == []
    assert content_of(path, Chosen(topics=("another",))) == []
    assert len(content_of(path, Chosen(topics=("a:b c",)))) == 1


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0, 0)])
    (tmp_path / "topic=a%3Ab c/date=2026-11-28/part.parquet").write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(PipelineError, match=r"part\.parquet of the archive cannot be read"):
        content_of(path, ALL)
    with pytest.raises(PipelineError, match=r"is in no directory topic="):
        content_of(str(tmp_path / "part.parquet"), ALL)
