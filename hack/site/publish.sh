#!/usr/bin/env bash
# Puts the site of a directory on the branch gh-pages of origin, which the repository's pages show.
# charts/ on that branch is the repository of charts, which releases write: it stays as it is.
#
#   hack/site/publish.sh DIR
set -euo pipefail

site=$(cd "$1" && pwd -P)
branch=gh-pages
GIT_DIR=$(git rev-parse --absolute-git-dir)
index=$(mktemp -d)
trap 'rm -rf "$index"' EXIT
export GIT_DIR GIT_INDEX_FILE=$index/index # The clone's own index and files stay as they are.
touch "$site/.nojekyll"                    # The pages are as they are.

# A release may push at the same time: begin again with what it has pushed.
for _ in 1 2 3; do
  parent='' tree=''
  ! git fetch --quiet --depth 1 origin "$branch" 2>/dev/null || parent=$(git rev-parse FETCH_HEAD)
  git read-tree --empty
  (cd "$site" && git --work-tree=. add --all --force .)
  if [[ -n $parent ]] && git cat-file -e "$parent:charts" 2>/dev/null; then
    git read-tree --prefix=charts/ "$parent:charts"
  fi
  tree=$(git write-tree)
  if [[ -n $parent && $tree == "$(git rev-parse "$parent^{tree}")" ]]; then
    printf 'site: %s is up to date\n' "$branch"
    exit 0
  fi
  commit=$(git commit-tree ${parent:+-p "$parent"} -m "Publish the site of $(git rev-parse --short HEAD)" "$tree")
  if git push --quiet origin "$commit:refs/heads/$branch"; then
    printf 'site: published on %s\n' "$branch"
    exit 0
  fi
done
printf 'site: could not push to %s\n' "$branch" >&2
exit 1
