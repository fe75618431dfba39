# The image of an operator, of a chart alone: a directory, an archive, or the URL of one.
#
#   docker build -f chart.Dockerfile --build-arg HELM_CHART=charts/web \
#     --build-arg API_VERSION=apps.example.com/v1 --build-arg KIND=Web -t web-operator .
#
# docs/howto-chart.md says what else a cluster needs: the definition of the kind, and rights.
ARG BASE_IMG=ensign-base
FROM ${BASE_IMG}
ARG HELM_CHART
# ADD unpacks an archive that is here, and fetches one that is not: COPY does neither.
# hadolint ignore=DL3020
ADD --chown=1001:0 ${HELM_CHART} ${HOME}/charts/chart/
ARG API_VERSION
ARG KIND
RUN set -eu; \
    fail() { echo "$*" >&2; exit 1; }; \
    group="${API_VERSION%/*}"; version="${API_VERSION#*/}"; \
    { [ -n "${group}" ] && [ "${group}" != "${API_VERSION}" ] && [ -n "${version}" ]; } || fail "API_VERSION='${API_VERSION}': give a group and a version, such as apps.example.com/v1"; \
    [ -n "${KIND}" ] || fail "KIND is missing: give the kind of the definition in the cluster, such as Web"; \
    for chart in charts/chart/Chart.yaml charts/chart/*/Chart.yaml charts/chart/*.tgz ''; do [ ! -f "${chart}" ] || break; done; \
    [ -n "${chart}" ] || fail "HELM_CHART is not a chart: it has no Chart.yaml and is not a .tgz archive"; \
    case "${chart}" in *.tgz) chmod g+r "${chart}" ;; esac; \
    printf -- '- group: "%s"\n  version: "%s"\n  kind: "%s"\n  chart: "%s"\n' "${group}" "${version}" "${KIND}" "${chart%/Chart.yaml}" >watches.yaml
# The status of each resource shows it.
ARG VERSION=dev
ENV OPERATOR_VERSION=${VERSION}
