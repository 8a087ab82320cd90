#!/bin/sh
# Fills ROOT with everything the image adds to its base: sh install.sh ROOT WHEELS [PYTHON]
#
# ROOT is the image's root, WHEELS a directory with the wheel of minibroker and those of its
# dependencies. The Dockerfile and the tests both do it with this file. Kerberos comes with the wheel
# of gssapi, which the base has to have libkrb5 for.
set -eu
root=$1 wheels=$2 python=${3:-python3}
source=$(dirname "$0")/rootfs
lib=$root/opt/minibroker/lib
extras=uvloop,regex,control,registry,security
for wheel in "$wheels"/gssapi-*.whl; do
  if [ -e "$wheel" ]; then extras=$extras,kerberos; fi
done

"$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
  --root-user-action=ignore --no-index --find-links "$wheels" --no-compile --target "$lib" \
  "minibroker[$extras]"
# What nobody runs: scripts of packages, C sources, type stubs, tests; of gRPC only protoc is called.
rm -rf "$lib/bin" "$lib/grpc" "$lib/setuptools" "$lib/_distutils_hack" "$lib/distutils-precedence.pth"
find "$lib" -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.c' -o -name '*.h' \) -delete
find "$lib" -depth -type d \( -name tests -o -name include \) -exec rm -rf {} +
# Symbols are half of what extensions weigh.
if command -v strip >/dev/null; then
  find "$lib" -type f -name '*.so' -exec strip --strip-unneeded {} +
fi
# Compiled once, here: who serves may not write there, and a start has no time for it.
"$python" -m compileall -q --invalidation-mode unchecked-hash -s "$root" "$lib"

cp -R "$source/." "$root/"
mkdir -p "$root/var/lib/kafka/data" "$root/var/lib/kafka/data-tls" "$root/etc/kafka/secrets" \
  "$root/mnt/shared/config" "$root/home/minibroker" "$root/bitnami/kafka/data" \
  "$root/bitnami/kafka/config" "$root/opt/bitnami/kafka/config/certs" "$root/opt/kafka/config" \
  "$root/kafka" "$root/docker-entrypoint-initdb.d"
chmod 0755 "$root"/etc/kafka/docker/* "$root"/etc/confluent/docker/* "$root"/opt/minibroker/bin/* \
  "$root"/opt/bitnami/scripts/kafka/* "$root"/usr/bin/start-kafka.sh "$root"/usr/local/bin/*
# Kafka's scripts stand where each of its images has them, with and without .sh.
for name in kafka-broker-api-versions kafka-cluster kafka-configs kafka-console-consumer \
  kafka-console-producer kafka-consumer-groups kafka-get-offsets kafka-run-class kafka-topics \
  cub dub wait-for-port; do
  ln -s /opt/minibroker/bin/script "$root/usr/local/bin/$name"
done
mkdir -p "$root/opt/kafka/bin"
for script in "$root"/usr/local/bin/kafka-* "$root"/usr/local/bin/zookeeper-server-start; do
  name=${script##*/}
  ln -s "$name" "$script.sh"
  ln -s "/usr/local/bin/$name" "$root/opt/kafka/bin/$name.sh"
  ln -s "/usr/local/bin/$name" "$root/usr/bin/$name"
done
ln -s /opt/kafka/bin "$root/opt/bitnami/kafka/bin"
# Old names of bitnami's start scripts.
ln -s /opt/bitnami/scripts/kafka/entrypoint.sh "$root/entrypoint.sh"
ln -s /opt/bitnami/scripts/kafka/run.sh "$root/run.sh"
# Names of variables may have dashes (KAFKA_..._SCRAM-SHA-512_...), which dash drops and bash keeps.
ln -s /bin/bash "$root/usr/local/bin/sh"
