#!/usr/bin/env bash
# Lets Ansible in .venv find the tree's own collections, those below collections/.
# They are links: an edit counts at once, and .venv need not be made anew for it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
python=$root/.venv/bin/python

[[ -x $python ]] || {
  printf 'collections: there is no %s; run hack/python.sh first\n' "$python" >&2
  exit 1
}
installed=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ansible_collections
for namespace in "$root"/collections/ansible_collections/*; do
  link=$installed/${namespace##*/}
  [[ $(readlink "$link" || true) == "$namespace" ]] || ln -sfn "$namespace" "$link"
done
