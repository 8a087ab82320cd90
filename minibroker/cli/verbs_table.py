"""The table of the program's verbs: name → the module that declares it, as `VERB`.

A module is imported when its verb is asked for, so the table is all that a start pays for the
others. The titles are those of `minibroker --help`, in their order.
"""

from __future__ import annotations

from typing import Final

from minibroker.cli.declaration import VerbGroup

SECTIONS: Final = {
    "A broker": {
        "serve": "minibroker.verbs.serve.verb",
        "up": "minibroker.verbs.up",
        "status": "minibroker.verbs.status",
        "stop": "minibroker.verbs.stop",
        "reset": "minibroker.verbs.reset",
    },
    "Any Kafka": {
        "proxy": "minibroker.verbs.proxy.verb",
        "trace": "minibroker.verbs.trace",
    },
    "Topics and groups": {
        "topics": "minibroker.verbs.topics",
        "produce": "minibroker.verbs.produce",
        "consume": "minibroker.verbs.consume",
        "groups": "minibroker.verbs.groups",
        "wait": "minibroker.verbs.wait",
        "record": "minibroker.verbs.record.plan",
    },
    "Outgrowing": {
        "hand-over": "minibroker.verbs.hand_over",
        "take-back": "minibroker.verbs.take_back",
    },
    "Files": {
        "dump-log": "minibroker.verbs.dump_log",
        "check-log": "minibroker.verbs.check_log",
        "import-07": "minibroker.verbs.import_07",
    },
    "More": {
        "pipeline": "minibroker.pipeline.verbs.table",
        "completion": "minibroker.verbs.completion",
        "version": "minibroker.verbs.version",
    },
}

PROGRAM: Final = VerbGroup(
    command="minibroker",
    does="a Kafka-compatible broker in one process",
    sections=SECTIONS,
    aliases={"--version": "version", "-V": "version"},
    notes="`minibroker VERB --help` explains the options of a verb. `python -m minibroker` is the "
    "same program.",
)
