"""`maintain`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Option
from minibroker.cli.kinds import DURATION
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY
from minibroker.pipeline.options.shared import (
    CATALOG,
    DEFAULT_TARGET_BYTES,
    STORAGE_OPTION,
    TABLE,
    TARGET_FILE_SIZE,
)

DEFAULT_KEEP_MS: Final = 7 * 86_400_000
"""Time for which readers can go on with an old version of a table."""


class MaintainPlan(NamedTuple):
    """A plan for the upkeep of an archive."""

    to: Annotated[
        str,
        Option(
            "--to", DIRECTORY, "directory that `pipeline archive` has written", example="archive"
        ),
    ]
    target_bytes: Annotated[
        int, TARGET_FILE_SIZE.changed(help="size of a merged file, about", group="")
    ] = DEFAULT_TARGET_BYTES
    keep_ms: Annotated[
        int,
        Option(
            "--keep",
            DURATION,
            "older versions of a table are dropped; until then readers can go on with them",
            name="keep",
        ),
    ] = DEFAULT_KEEP_MS
    catalog: Annotated[Mapping[str, str], CATALOG] = {}
    table: Annotated[str | None, TABLE] = None
    storage: Annotated[
        Mapping[str, str], STORAGE_OPTION.changed(default="the variables AWS_...")
    ] = {}


VERB: Final = PipelineVerb(
    name="maintain",
    does="merge small files of an archive, drop old versions and left-overs",
    usage="--to DIR",
    plan=MaintainPlan,
    rank=5,
    job="maintenance",
    group="Archive",
    notes="""
It may run beside an archive, and after a kill. Parquet files of a topic and day are merged in one
step for each such directory: a reader sees each record once, before and after. One that has listed
the directory and opens a file later gets an error, and reads again. JSON and CSV files, and Parquet
files in a store, stay as they are. Left-overs of killed runs are removed. A table may be at
s3://BUCKET/DIR. Neither a broker nor Spark is needed.
""",
    examples=("maintain --to ./orders-table", "maintain --to ./archive --target-file-size 256MB"),
)
