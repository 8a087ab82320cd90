"""The conversation on the output and in a file, while the proxy serves."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from minibroker.cli.errors import CommandError
from minibroker.trace.layouts import writer_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from minibroker.proxy.proxy import KafkaProxy
    from minibroker.trace.exchange import Exchange
    from minibroker.verbs.proxy.plan import ShownOptions

    Show = Callable[[Exchange], None]


def show_all(options: ShownOptions, proxy: KafkaProxy, out: TextIO, files: ExitStack) -> None:
    """Show exchanges as the options say, from now on; `files` closes what is opened.

    Raises CommandError for a file that cannot be written.
    """
    shows: list[Show] = []
    if options.trace or options.is_full or options.is_json:
        shows.append(writer_to(out, is_full=options.is_full, is_json=options.is_json, is_live=True))
    if options.record is not None:
        shows.append(_recorder(options.record, files))
    if options.html is not None:
        shows.append(_page(options.html, proxy, files))
    selection = options.chosen.selection()

    def show(write: Show, exchange: Exchange) -> None:
        if selection.takes(exchange, proxy.names):
            write(exchange)

    for write in shows:
        proxy.watch(partial(show, write))


def _page(path: str, proxy: KafkaProxy, files: ExitStack) -> Show:
    """Return a function that adds an exchange to a page, which is written when all is closed.

    Raises CommandError where it cannot be.
    """
    try:
        from minibroker.trace.page import ConversationPage  # noqa: PLC0415  only with the option
    except ImportError:
        raise CommandError("a page needs Jinja2: pip install 'minibroker[trace]'") from None
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"--html {path}: its directory is not there")
    page = ConversationPage(f"Conversation through the proxy to {proxy.targets}")

    def write() -> None:
        try:
            Path(path).write_text(page.render(), encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise CommandError(f"--html {path}: {error.strerror or error}") from None

    files.callback(write)
    return page.add


def _recorder(path: str, files: ExitStack) -> Show:
    """Return a function that adds an exchange to a file. Raises CommandError."""
    try:
        file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115  the stack closes it
    except OSError as error:
        raise CommandError(f"--record {path}: {error.strerror or error}") from None

    def close() -> None:
        with suppress(OSError):  # of a line that could not be written: that was said then
            file.close()

    files.callback(close)
    return writer_to(file, is_full=False, is_json=True, is_live=True)
