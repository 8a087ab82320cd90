"""The start-up budget read out of `-X importtime`."""

from benchmarks.importtime import by_package, parse

IMPORTS = """\
import time: self [us] | cumulative | imported package
import time:       300 |        300 |     uvloop.loop
import time:       200 |        500 |   uvloop
some line of the broker's own
import time:        50 |         50 |   minibroker.broker.server.listener
import time:        70 |        620 | minibroker.broker.app
"""


def test_importtime_lines_are_read_and_others_left() -> None:
    imports = parse(IMPORTS)
    assert [module.module for module in imports] == [
        "uvloop.loop",
        "uvloop",
        "minibroker.broker.server.listener",
        "minibroker.broker.app",
    ]
    assert imports[0].depth == 2
    assert by_package(imports) == {
        "uvloop": 500,
        "minibroker.broker.server": 50,
        "minibroker.broker.app": 70,
    }
