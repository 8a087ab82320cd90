#!/bin/bash
# Where bitnami/kafka starts Kafka.
exec /opt/minibroker/bin/launch
