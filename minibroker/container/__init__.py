"""minibroker's container: what stands behind the start scripts of apache/kafka and cp-kafka.

`launch` is what every start script of the image ends in, `topics` reads `KAFKA_CREATE_TOPICS`,
`health` is the image's health check, `zookeeper_port` listens where a start script wants to see a
ZooKeeper. The scripts and the image itself: `image/`, `Dockerfile`.
"""
