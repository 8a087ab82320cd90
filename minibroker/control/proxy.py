"""The control API of a proxy: faults, the log of requests and the page, with what it sees.

    HttpServer ─► RestApi ─► functions of `paths` ─► ProxyScope ─► proxy.KafkaProxy

The paths, bodies and answers are those of a broker's API, as far as a proxy has them.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker import __version__
from minibroker.control import shapes
from minibroker.control.access import Access
from minibroker.control.bodies import answer
from minibroker.control.fault_rules import FaultRules
from minibroker.control.messages import HttpError
from minibroker.control.operations import NOT_RUNNING, ControlOperation
from minibroker.control.paths import faults, page, requests
from minibroker.control.rest import RestApi
from minibroker.control.server import HttpServer
from minibroker.control.slices import Slices
from minibroker.control.streams import Streams
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from minibroker.broker.config.control import ControlOptions
    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlCall
    from minibroker.proxy.proxy import KafkaProxy
    from minibroker.rig.request_log import RequestLog

VIEWS: Final = ("requests", "faults")
_NOT_LISTENING: Final = "the proxy is killed by a fault"


class ProxyScope:
    """The parts that operations use. Constant; the loop owns its parts."""

    def __init__(self, proxy: KafkaProxy, access: Access) -> None:
        self.proxy = proxy
        self.access = access
        self.faults = FaultRules()
        self.slices = Slices()
        self.streams = Streams()

    def check_running(self) -> None:
        """Raise HttpError(503) while the proxy does not listen."""
        if not self.proxy.is_running:
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{_NOT_LISTENING}: see /faults")

    def find(self, broker_id: int | None) -> KafkaProxy:
        """Return the proxy. Raises HttpError(404) for the id of a broker."""
        self._check_none(broker_id)
        return self.proxy

    def request_logs(
        self, broker_id: int | None, *, all_brokers: bool
    ) -> dict[int | None, RequestLog]:
        """Return the log of all brokers behind the proxy. Raises HttpError(404) for an id."""
        self._check_none(broker_id)
        return {None: self.proxy.request_log}

    @staticmethod
    def _check_none(broker_id: int | None) -> None:
        if broker_id is not None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"broker_id {broker_id}: a proxy stands before all brokers: leave it out",
            )


async def live(_: ProxyScope, _call: ControlCall) -> Response:
    """Say that the process answers."""
    return answer(shapes.Live(live=True))


async def ready(scope: ProxyScope, _: ControlCall) -> Response:
    """Say whether clients can connect. Kafka is not asked."""
    is_ready = scope.proxy.is_running
    reasons = [] if is_ready else [_NOT_LISTENING]
    status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return answer(shapes.Ready(ready=is_ready, reasons=reasons), status)


async def views(scope: ProxyScope, call: ControlCall) -> Response:
    """Return the views that there are, and what the caller may do."""
    reason = scope.access.why_read_only(call.request)
    return answer(
        shapes.ConsoleView(
            kind="proxy",
            version=__version__,
            cluster_id=None,
            broker=None,
            views=list(VIEWS),
            may_write=reason is None,
            why_not=reason,
            may_read_records=False,
            brokers=[],
        )
    )


PROXY_OPERATIONS: Final = page.with_overview(
    (
        *page.OPERATIONS,
        ControlOperation(
            *("live", "GET", "/health/live", "The process answers", live, shapes.Live), is_open=True
        ),
        ControlOperation(
            *("ready", "GET", "/health/ready", "Whether clients can connect", ready, shapes.Ready),
            failures=NOT_RUNNING,
            is_open=True,
        ),
        *requests.OPERATIONS,
        *faults.OPERATIONS,
        ControlOperation(
            "views",
            "GET",
            "/views",
            "The views of the console that this server has, and what the caller may do",
            views,
            shapes.ConsoleView,
        ),
    )
)


class ProxyControl:
    """The control API of one proxy, between `start` and `stop`."""

    def __init__(self, proxy: KafkaProxy, options: ControlOptions) -> None:
        access = Access(options.token, options.read_token, page_only_reads=options.page_only_reads)
        scope = ProxyScope(proxy, access)
        self._options = options
        self._server = HttpServer(RestApi(PROXY_OPERATIONS, access, scope).begin, None)
        self._port = options.port

    @property
    def url(self) -> str:
        """Return the URL of the API, after `start`."""
        return f"http://{self._options._replace(port=self._port).address}"

    async def start(self) -> None:
        """Listen. Raises ConfigError where that cannot be."""
        try:
            self._port = await self._server.listen(self._options.host, self._options.port)
        except OSError as error:
            raise ConfigError(
                f"--control {self._options.address}: cannot listen: {error.strerror or error}"
            ) from error

    async def stop(self) -> None:
        """Stop to serve and close all connections."""
        await self._server.close()
