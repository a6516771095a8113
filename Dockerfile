# The image for who has a container engine: `make dist/wheel && docker build .`. Its files are made by the program that
# makes them without one (image/build.py, `make image`), from the same locked packages and wheels.
# Give the image that builds by digest in production: --build-arg BUILD_IMAGE=docker.io/library/debian@sha256:...
ARG BUILD_IMAGE=docker.io/library/debian:13-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-pip \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
COPY image image
COPY dist/wheel wheel
RUN python3 -m image.build wheel/*.whl /out

# Nothing is run or installed from here on: there is no shell to do it with.
FROM scratch
LABEL org.opencontainers.image.title="evenspread" \
      org.opencontainers.image.description="Admission webhook for topologySpreadConstraints" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/root /
ENV PATH=/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
EXPOSE 10250 10251
ENTRYPOINT ["/usr/local/bin/evenspread"]
CMD ["webhook"]
