"""The control API of `minibroker serve --control HOST:PORT` over HTTP; loaded only then."""
