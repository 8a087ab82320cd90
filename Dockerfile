# minibroker in a container: the wheel is built in one stage and installed in the next, which has no tools.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY minibroker ./minibroker
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links=/wheels minibroker \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 minibroker \
    && install -d -o minibroker /data
USER minibroker
VOLUME /data
EXPOSE 9092
# Settings are Kafka's own keys in KAFKA_... variables, as with the apache/kafka image. The advertised address
# is where clients reach the container: localhost with `docker run -p 9092:9092`, its name inside a network.
ENV KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
ENTRYPOINT ["minibroker", "serve", "--data-dir", "/data"]
