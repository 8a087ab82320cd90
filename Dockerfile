# docker build -t minibroker .                            the broker: the last stage
# docker build -t minibroker-pipeline --target pipeline . minibroker pipeline with Spark and Java
#
# Start scripts, data directory and user stand where apache/kafka and confluentinc/cp-kafka have
# theirs, so that what is made for those images starts this one. No ENTRYPOINT: neither has one.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
# For strip, the compiled modules, and gssapi, which has no wheel; only here. Whatever version Debian has at the time
# of the build.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils gcc libc6-dev libkrb5-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY .ci/compiled_wheel.py ./.ci/
COPY minibroker ./minibroker
RUN HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 pip wheel --no-cache-dir --wheel-dir /wheels '.[uvloop,regex,control,registry,security,kerberos]'
COPY minibroker/container/image ./image
RUN sh image/install.sh /layer /wheels

FROM python:${PYTHON}-slim-bookworm AS pipeline
# Spark wants a Java, and ps for its start scripts. Whatever Debian has at the time of the build.
# hadolint ignore=DL3008
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
# The wheel from the stage before, and what its pyproject.toml asks for.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --find-links /wheels 'minibroker[pipeline]' \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 minibroker \
    && install -d -o minibroker /archive
USER 1000:1000
WORKDIR /home/minibroker
VOLUME /archive
ENTRYPOINT ["minibroker", "pipeline"]

# The image's root, whole: the base without what a broker does not need, and minibroker. The standard
# library is compiled here: who serves may not write there, and a start has no time for it.
FROM python:${PYTHON}-slim-bookworm AS root
# What gssapi calls, 2 MB with all it needs. Whatever version Debian has at the time of the build.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgssapi-krb5-2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /layer /
RUN useradd --no-create-home --home-dir /home/minibroker --uid 1000 minibroker \
    && for owned in /home/minibroker /var/lib/kafka /etc/kafka /etc/confluent /opt/kafka/config \
       /opt/bitnami/kafka/config /bitnami /kafka; do \
         chown -R minibroker:root "$owned" && chmod -R g=u "$owned" || exit 1; \
       done \
    && find /usr/local/lib -depth -type d \( -name ensurepip -o -name idlelib -o -name turtledemo \
       -o -name tkinter -o -name lib2to3 -o -name pydoc_data -o -name 'config-3*' \
       -o -name site-packages \) -exec rm -rf {} + \
    && rm -rf /usr/local/include /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/pydoc* \
       /usr/local/bin/2to3* /usr/lib/*-linux-gnu/gconv \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib

FROM scratch
# Everything in one layer, so that what was removed is gone.
# hadolint ignore=DL3067
COPY --from=root / /
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
    LANG=C.UTF-8
USER 1000:1000
WORKDIR /home/minibroker
VOLUME ["/var/lib/kafka/data"]
# 9092 says it is localhost:9092, for the host; 19092 says it is this container, for other ones.
EXPOSE 9092 19092
HEALTHCHECK --interval=2s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/opt/minibroker/bin/health"]
CMD ["/etc/kafka/docker/run"]
