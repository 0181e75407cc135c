# syntax=docker/dockerfile:1
# Kept as a service. Build:  docker build -t kept .
# The same steps without Docker:  packaging/check-image (see docs/how-to/run-in-production.md)
# Python 3.11.16. A newer one: docker buildx imagetools inspect python:3.11-slim-bookworm
ARG BASE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${BASE} AS build
ARG KEPT_BUILD_COMMIT=""
ENV ORT_DISABLE_TELEMETRY=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY packaging packaging
COPY docs/man docs/man
COPY src src
RUN python -m venv /opt/kept
RUN /opt/kept/bin/python -m pip install --constraint constraints.txt ".[serve,postgres,mcp,otel]"
RUN KEPT_MODELS_DIR=/opt/kept/models /opt/kept/bin/kept models install
RUN KEPT_MODELS_DIR=/opt/kept/models /opt/kept/bin/kept models verify

FROM ${BASE}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin kept && install --directory --owner kept --group kept /data
COPY --from=build /opt/kept /opt/kept
ENV PATH=/opt/kept/bin:$PATH KEPT_MODELS_DIR=/opt/kept/models KEPT_STORE=/data KEPT_SERVE_HOST=0.0.0.0 KEPT_LOG_LEVEL=info ORT_DISABLE_TELEMETRY=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8750
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["python", "-c", "from http.client import HTTPConnection; c = HTTPConnection('127.0.0.1', 8750, timeout=2); c.request('GET', '/ready'); exit(c.getresponse().status != 200)"]
ENTRYPOINT ["kept"]
CMD ["serve"]
