"""minibroker's container: the programs behind the start scripts of apache/kafka and cp-kafka.

Every start script of the image ends in `launch`. `topics` reads `KAFKA_CREATE_TOPICS`. `health` is
the health check. `zookeeper_port` listens on the port where a start script expects a ZooKeeper. The
scripts are in `image/`, the image is made by `Dockerfile`.
"""
