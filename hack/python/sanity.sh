#!/usr/bin/env bash
# Runs `ansible-test sanity` on the tree's collections, about 3 minutes.
#
#   hack/python/sanity.sh [ARGUMENT…]   further arguments are ansible-test's: --test validate-modules
#
# It makes environments of its own and installs into them, from the index that pip is
# configured for, exact versions that ansible-core names. That is why `make lint` does
# without it. .dev/sanity keeps them.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
export PATH=$root/.venv/bin:$PATH HOME=$root/.dev/sanity PIP_DISABLE_PIP_VERSION_CHECK=1

# ansible-test would download a script that installs pip, named for the version that
# the ansible-core of requirements.txt asks for. Python has one.
mkdir -p "$HOME/.ansible/test/cache"
cat >"$HOME/.ansible/test/cache/get_pip_25_2.py" <<'END'
import subprocess, sys
subprocess.run([sys.executable, "-m", "ensurepip"], check=True)
END

# A copy, because of what is written below the collection, and outside of the tree,
# which knows .dev for ignored.
version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$root/collections/ansible_collections" "$copy/"
for collection in "$copy"/ansible_collections/*/*/; do
  printf '==> ansible-test sanity: %s\n' "${collection#"$copy"/ansible_collections/}"
  (cd "$collection" && ansible-test sanity --python "$version" "$@")
done
