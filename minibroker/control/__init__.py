"""What `minibroker serve --control HOST:PORT` serves over HTTP; loaded only then."""
