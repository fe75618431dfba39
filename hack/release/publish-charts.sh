#!/usr/bin/env bash
# Adds the chart of a release to the index of charts, in charts/ on the branch gh-pages of origin, which the
# repository's pages show. The site on that branch stays as it is: hack/site/publish.sh writes that.
#
#   hack/release/publish-charts.sh ARCHIVE URL    URL is the directory that serves the archive
#
# HELM names another helm than that of bin/tools.
set -euo pipefail

archive=$(realpath "$1") url=$2
helm=${HELM:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)/bin/tools/helm}
branch=gh-pages
GIT_DIR=$(git rev-parse --absolute-git-dir)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_DIR GIT_INDEX_FILE=$work/index # The clone's own index and files stay as they are.
mkdir "$work/charts"
cp "$archive" "$work/charts/"

# The site may be published at the same time: begin again with what was pushed.
for _ in 1 2 3; do
  parent='' merge=()
  git read-tree --empty
  if git fetch --quiet --depth 1 origin "$branch" 2>/dev/null; then
    parent=$(git rev-parse FETCH_HEAD)
    git read-tree "$parent"
    ! git cat-file blob "$parent:charts/index.yaml" >"$work/before.yaml" 2>/dev/null || merge=(--merge "$work/before.yaml")
  fi
  "$helm" repo index "$work/charts" --url "$url" "${merge[@]+"${merge[@]}"}"
  git update-index --add --cacheinfo "100644,$(git hash-object -w "$work/charts/index.yaml"),charts/index.yaml"
  commit=$(git commit-tree ${parent:+-p "$parent"} -m "Add ${archive##*/} to the index of charts" "$(git write-tree)")
  if git push --quiet origin "$commit:refs/heads/$branch"; then
    printf 'release: %s is in charts/index.yaml of %s\n' "${archive##*/}" "$branch"
    exit 0
  fi
done
printf 'release: could not push to %s\n' "$branch" >&2
exit 1
