# Two stages: one installs, one runs. The second has Python and the program, and no shell, compiler or package manager.
# Give both images by digest in production: --build-arg RUN_IMAGE=gcr.io/distroless/python3-debian12@sha256:...
ARG BUILD_IMAGE=docker.io/library/debian:12-slim
ARG RUN_IMAGE=gcr.io/distroless/python3-debian12:nonroot

# Both stages are Debian 12, so that the environment finds the same /usr/bin/python3.11 in the second.
FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv --without-pip /opt/evenspread
COPY requirements.lock /tmp/
# Wheels alone: nothing is compiled, and every file has the hash of the lock.
RUN python3 -m pip --python /opt/evenspread/bin/python install --no-cache-dir --no-deps --only-binary :all: \
    --require-hashes --requirement /tmp/requirements.lock
COPY webhook /opt/evenspread/lib/python3.11/site-packages/webhook
COPY certs /opt/evenspread/lib/python3.11/site-packages/certs
# A read-only root writes no bytecode later.
RUN /opt/evenspread/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/evenspread/lib

FROM ${RUN_IMAGE}
LABEL org.opencontainers.image.title="evenspread" \
      org.opencontainers.image.description="Admission webhook for topologySpreadConstraints" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/evenspread /opt/evenspread
COPY LICENSE /opt/evenspread/
ENV PATH=/opt/evenspread/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10250 10251
ENTRYPOINT ["/opt/evenspread/bin/python", "-m", "webhook"]
CMD ["webhook"]
