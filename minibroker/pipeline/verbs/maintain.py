"""`maintain`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

from minibroker.pipeline.verbs.declaration import Option, Verb
from minibroker.pipeline.verbs.kinds import DIRECTORY, DURATION
from minibroker.pipeline.verbs.shared import (
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
        int, TARGET_FILE_SIZE._replace(help="size of a merged file, about", group="")
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
        Mapping[str, str], STORAGE_OPTION._replace(default="the variables AWS_...")
    ] = {}


VERB: Final = Verb(
    name="maintain",
    does="merge small files of an archive, drop old versions and left-overs",
    usage="--to DIR",
    plan=MaintainPlan,
    command="minibroker.pipeline.commands.maintain",
    group="Archive",
    notes="""
DIR may be s3://BUCKET/DIR. It may run beside an archive, and after a kill. Files of Parquet, JSON
and CSV archives are not merged: meanwhile their readers would see rows twice or not at all.
Left-overs of killed runs are removed. Neither a broker nor Spark is needed.
""",
    examples=("maintain --to ./orders-table",),
)
