# The other way to install: as root, with Debian's packages too.
ARG BASE_IMAGE=ensign-base
FROM ${BASE_IMAGE}
USER 0
# hadolint ignore=DL3008
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends jq \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && pip install --no-cache-dir --root-user-action=ignore inflection==0.5.1
USER 1001
