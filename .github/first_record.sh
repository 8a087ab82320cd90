#!/bin/sh
# The first record with the minibroker that is installed here: serve, produce, consume, stop.
set -eu
ready=$(mktemp -u)
minibroker serve --memory --listen 127.0.0.1:0 --ready-file "$ready" &
broker=$!
until [ -s "$ready" ]; do
  kill -0 "$broker"
  sleep 0.1
done
address=$(sed -n 's/^minibroker listening on //p' "$ready")
echo hello | minibroker produce greetings --bootstrap "$address"
test "$(minibroker consume greetings -n 1 --bootstrap "$address")" = hello
kill "$broker"
wait "$broker"
rm "$ready"
