#!/bin/bash
# Where bitnami/kafka starts a command; without one, the broker.
if [ $# -eq 0 ]; then set -- /opt/bitnami/scripts/kafka/run.sh; fi
exec "$@"
