# The operator's image: the manager, Ansible and this tree's content.
#
# Base images are arguments, so that a registry, a mirror and a digest can be
# chosen where the image is built:
#   docker build --build-arg PYTHON_IMAGE=registry.example/python:3.13-slim@sha256:… .
# PYTHON_IMAGE must be Debian's, with Python 3.12 or later.
ARG GO_IMAGE=golang:1.26
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${GO_IMAGE} AS manager
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd/ cmd/
COPY internal/ internal/
# After the modules, so that another commit does not download them again.
ARG VERSION=dev
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
      -o /out/manager ./cmd/manager

FROM ${PYTHON_IMAGE} AS python
WORKDIR /build
RUN python3 -m venv /opt/venv
COPY requirements.txt requirements-collections.txt requirements.yml ./
COPY hack/python/ hack/python/
# Bytecode is compiled here: the file system is read-only at run time.
RUN /opt/venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --no-deps -r requirements.txt \
 && /opt/venv/bin/pip download --no-cache-dir --require-hashes --only-binary :all: --no-deps \
      -r requirements-collections.txt -d wheels \
 && /opt/venv/bin/python hack/python/install_collections.py requirements.yml wheels/ansible-*.whl \
 && rm -r wheels
COPY collections/ansible_collections/ collections/
RUN cp -R collections/. "$(/opt/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ansible_collections/"

FROM ${PYTHON_IMAGE}
# tini reaps what a killed run leaves behind: the manager is no init process.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && install --directory --owner=1001 --group=0 --mode=0775 /opt/ansible
COPY --from=python /opt/venv /opt/venv
COPY --from=manager /out/manager /usr/local/bin/

# The layout that images built on the ansible-operator base image expect, with
# a home that they may install collections into.
ENV HOME=/opt/ansible \
    LANG=C.UTF-8 \
    PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 \
    ANSIBLE_LOCAL_TEMP=/tmp/ansible-local \
    ANSIBLE_REMOTE_TEMP=/tmp/ansible-remote
WORKDIR /opt/ansible
COPY watches.yaml ./
COPY roles/ roles/
COPY playbooks/ playbooks/
USER 1001:0
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/manager"]
