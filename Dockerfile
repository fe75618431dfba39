# Two images.
#
#   docker build --target base -t ensign-base .   what operators build FROM: docs/howto-base-image.md
#   docker build -t ensign:dev .                  the operator of this tree, hardened
#
# The bases are arguments, so that a mirror or another digest can be chosen where an image is built:
#   --build-arg PYTHON_IMAGE=registry.example/python:3.13-slim@sha256:…
# Renovate keeps the digests.
# PYTHON_IMAGE is Debian with Python 3.12 or later, whose python3 and pip are in /usr/local/bin.
ARG GO_IMAGE=golang:1.26@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a
ARG PYTHON_IMAGE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

# The compiler runs on the builder's processor, whatever the image is for.
FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS manager
WORKDIR /src
# A mirror of Go modules: --build-arg GOPROXY=https://mirror.example/go. It has no default here.
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY cmd/ cmd/
COPY internal/ internal/
COPY pkg/ pkg/
# After the modules, so that another commit does not download them again.
ARG VERSION=dev
ARG COMMIT=unknown
ARG TARGETARCH
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT} -X github.com/ensign-operator/ensign/internal/docslink.version=${VERSION}" -o /out/manager ./cmd/manager \
 && CGO_ENABLED=0 GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/chart-exec ./cmd/chart-exec

FROM ${PYTHON_IMAGE} AS python
WORKDIR /build
# A mirror of Python packages: --build-arg PIP_INDEX_URL=https://mirror.example/simple.
ARG PIP_INDEX_URL
COPY requirements.txt requirements-collections.txt ./
RUN python3 -m pip install --no-cache-dir --no-compile --no-warn-script-location --root-user-action=ignore --root=/out --require-hashes --only-binary :all: --no-deps \
      -r requirements.txt \
 && python3 -m pip download --no-cache-dir --require-hashes --only-binary :all: --no-deps \
      -r requirements-collections.txt -d wheels
COPY requirements.yml hack/python/install_collections.py ./
COPY collections/ansible_collections/ collections/
# Bytecode is compiled here: the file system may be read-only at run time.
RUN site=/out$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
 && PYTHONPATH="$site" python3 install_collections.py requirements.yml wheels/ansible-*.whl "$site" \
 && cp -R collections/. "$site/ansible_collections/" \
 && python3 -m compileall -q -s /out "$site"

# What both images have. Packages are those of the image's own Python, not of a virtual
# environment: /usr/local/bin/python3, which inventories name, has to have kubernetes.
FROM ${PYTHON_IMAGE} AS runtime
# tini reaps what a killed run leaves behind: the manager is no init process.
# hadolint ignore=DL3008
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && useradd --uid 1001 --gid 0 --home-dir /opt/ansible --no-create-home --no-log-init ansible \
 && mkdir -p /opt/ansible/.ansible \
 && if [ ! -e /usr/bin/python3 ]; then ln -s /usr/local/bin/python3 /usr/bin/python3; fi
COPY --from=python /out/ /
COPY --from=manager /out/manager /usr/local/bin/
# Temporary directories are made below /tmp, which any user may write to, on a read-only root too.
ENV HOME=/opt/ansible \
    USER_NAME=ansible \
    USER_UID=1001 \
    LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/ansible/.local/bin \
    PYTHONUNBUFFERED=1 \
    ANSIBLE_LOCAL_TEMP=/tmp \
    ANSIBLE_REMOTE_TEMP=/tmp
WORKDIR /opt/ansible
ARG VERSION=dev
ARG COMMIT=unknown
LABEL org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${COMMIT} \
      org.opencontainers.image.licenses=Apache-2.0

# The layout that Dockerfiles FROM the ansible-operator base image expect.
FROM runtime AS base
LABEL org.opencontainers.image.title=ensign-base \
      org.opencontainers.image.description="Base image for Kubernetes operators written in Ansible"
# For watches with a chart; this operator's own content has none.
COPY --from=manager /out/chart-exec /usr/local/bin/
COPY hack/image/ansible.cfg /etc/ansible/
# hadolint ignore=DL3008
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends curl \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && ln -s /usr/bin/tini /tini \
 && ln -s manager /usr/local/bin/ansible-operator \
 && mkdir -p /usr/share/ansible/library \
 && install --directory --owner=1001 --group=0 --mode=0775 \
      /opt/ansible /opt/ansible/.ansible /opt/ansible/.ansible/tmp
USER 1001
ENTRYPOINT ["/tini", "--", "/usr/local/bin/ansible-operator", "run", "--watches-file=./watches.yaml"]

# The operator of this tree. It has no pip, and nothing in it is writable by its user.
FROM runtime
LABEL org.opencontainers.image.title=ensign \
      org.opencontainers.image.description="Ensign, an operator for Kubernetes that runs Ansible"
RUN python3 -m pip uninstall --yes --root-user-action=ignore pip \
 && rm -rf "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/ensurepip"
ARG VERSION=dev
# The status of each custom resource shows it: docs/reference-status.md.
ENV OPERATOR_VERSION=${VERSION}
COPY watches.yaml ./
COPY roles/ roles/
COPY playbooks/ playbooks/
USER 1001:0
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/manager"]
