#!/bin/bash
# Where wurstmeister/kafka starts Kafka.
exec /opt/minibroker/bin/launch
