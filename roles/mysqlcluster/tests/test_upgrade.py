# Copyright The Ensign authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of files/upgrade.sh with a server that does as it is told. Real ones are in test/node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "files" / "upgrade.sh"
PROGRAMS = {
    "mysqld": """case $* in
*--version*) echo "mysqld  Ver $VERSION for Linux" ;;
*)
  [[ -z ${REFUSES:-} ]] || { echo "a note"; echo "2026 [ERROR] $REFUSES"; exit 1; }
  [[ -z ${DIES:-} ]] || kill -KILL $$
  trap 'rm "$WORK/up"; exit ${STOPS:-0}' TERM
  touch "$WORK/up"
  while sleep 0.1; do :; done ;;
esac""",
    "mysqladmin": "[[ -e $WORK/up ]]",
    "mysql": """statements=$(cat)
case $statements in
*XA*) [[ -z ${XA:-} ]] || echo "$XA" ;;
*CONCAT*) echo "CHECKSUM TABLE shop.goods;" ;;
CHECKSUM*) printf 'shop.goods\\t%s\\n' "${SUM:-7}" ;;
*) printf 'account\\tapp\\t%%\\n' ;;
esac""",
    "df": "printf 'Avail\\n%s\\n' \"${FREE:-9999}\"",
    # Of a kernel that can; what it asks of the disk is not tested here.
    "sync": "true",
}


class Place:
    """A volume with the data of an old server, and an image with a new one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "work", "volume/mysql"):
            (root / name).mkdir(parents=True)
        (root / "volume/mysql/goods.ibd").write_text("a" * 3000)
        for name, text in PROGRAMS.items():
            program = root / "bin" / name
            program.write_text("#!/usr/bin/env bash\n" + text)
            program.chmod(0o755)

    def run(self, *arguments: str, **told: str) -> tuple[int, str]:
        """Run a step, and return how it ended and what it said."""
        (self.root / "work/up").unlink(missing_ok=True)
        result = self.root / "result"
        result.write_text("")
        environment = {"VERSION": "9.7.4", **told, "VOLUME": f"{self.root}/volume", "WORK": f"{self.root}/work"}
        environment |= {"RESULT": str(result), "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        ended = subprocess.run(  # noqa: S603
            ["/bin/bash", SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        return ended.returncode, result.read_text()

    def copy(self, **told: str) -> tuple[int, str]:
        """Run the step in the old image."""
        return self.run("copy", "mysql", "mysql-9.7", **{"VERSION": "8.4.3", **told})

    def upgrade(self, **told: str) -> tuple[int, str]:
        """Run the step in the new image."""
        return self.run("upgrade", "mysql", "mysql-9.7", **told)

    def directories(self) -> list[str]:
        """Return what is on the volume."""
        return sorted(path.name for path in (self.root / "volume").iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a new one."""
    return Place(tmp_path)


def test_upgrade(place: Place) -> None:
    """What is as before is said, and what is old goes at the end."""
    assert place.run("check") == (0, "")
    assert place.copy() == (0, "")
    code, said = place.upgrade()
    assert (code, said) == (0, "upgraded from 8.4.3 to 9.7.4: 1 tables, 1 other objects are as before\n")
    assert place.directories() == ["mysql", "mysql-9.7"]
    assert place.run("clean", "mysql-9.7") == (0, "")
    assert place.directories() == ["mysql-9.7"]
    assert (place.root / "volume/mysql-9.7/goods.ibd").read_text() == "a" * 3000


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ({"FREE": "0"}, "the volume has 0 MiB: raise spec.size"),
        ({"XA": "1 2 3 x"}, "prepared XA transactions"),
        ({"REFUSES": "old data are broken"}, "the server does not start: 2026 [ERROR] old data are broken"),
    ],
)
def test_copy_refuses(place: Place, told: dict[str, str], part: str) -> None:
    """Nothing is left of a copy that is refused."""
    code, said = place.copy(**told)
    assert code == 3
    assert part in said
    assert place.directories() == ["mysql"]


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ({"REFUSES": "unknown variable"}, "the server does not start: 2026 [ERROR] unknown variable"),
        ({"SUM": "8"}, "shop.goods\t8"),
        ({"VERSION": "8.0.40"}, "8.0.40, which is older than 8.4.3"),
    ],
)
def test_upgrade_refuses(place: Place, told: dict[str, str], part: str) -> None:
    """The old data are as they were, and the copy is gone."""
    place.copy()
    code, said = place.upgrade(**told)
    assert code == 3
    assert part in said
    assert place.directories() == ["mysql"]


@pytest.mark.parametrize(
    ("told", "part"), [({"DIES": "yes"}, "killed by signal 9"), ({"STOPS": "1"}, "did not stop well")]
)
def test_cut_off(place: Place, told: dict[str, str], part: str) -> None:
    """A server that somebody kills has refused nothing: the step is repeated, from the copy on."""
    for step in (place.copy, place.upgrade):
        code, said = step(**told)
        assert code == 1
        assert part in said
        assert place.copy() == (0, "")
    assert place.upgrade()[0] == 0
