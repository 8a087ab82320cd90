# Sourced by scripts written for bitnami/kafka.
export BITNAMI_ROOT_DIR=/opt/bitnami BITNAMI_VOLUME_DIR=/bitnami KAFKA_HOME=/opt/bitnami/kafka
export KAFKA_BASE_DIR=$KAFKA_HOME KAFKA_CONF_DIR=$KAFKA_HOME/config
export KAFKA_CERTS_DIR=$KAFKA_CONF_DIR/certs KAFKA_VOLUME_DIR=/bitnami/kafka
