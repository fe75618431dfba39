"""What happens to files, and is told by the kernel."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from ensign_warm import watched
from ensign_warm.stamps import Stamps
from test_stamps import CHANGES, module, place, replace, searched

__all__ = ["place", "searched"]  # They are fixtures.

FURTHER: dict[str, Callable[[Path], object]] = {
    "the place is another one for a moment": lambda place: place.rename(place.parent / "old").rename(place),
    "what is above has another name": lambda place: place.parent.rename(f"{place.parent}-elsewhere"),
    "a link on the way leads elsewhere": lambda place: replace_link(place.parent / "link", place),
    "a module is written by another name of its file": lambda place: (place.parent / "other").write_text("two = 2"),
    "another module comes from elsewhere": lambda place: (place.parent / "aside/late.py").rename(place / "late.py"),
    "nobody may look there": lambda place: place.chmod(0),
}


def replace_link(link: Path, target: Path) -> None:
    (link.parent / "new").symlink_to(target)
    (link.parent / "new").rename(link)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the test's directory be watched: in those above it, as in /tmp, others make and remove files."""
    ways = watched.ways

    def own(places: Iterable[str]) -> set[str]:
        return {place for place in ways(places) if Path(place).is_relative_to(tmp_path)}

    monkeypatch.setattr(watched, "ways", own)


class Counted(Stamps):
    looks = 0

    def hold(self) -> bool:
        self.looks += 1
        return super().hold()


def counted(place: Path) -> Counted:
    """Take stamps by a link to what is above the place."""
    os.link(place / "package/module.py", place.parent / "other")
    (place.parent / "aside").mkdir()
    (place.parent / "aside/late.py").touch()
    link = place.parent / "link"
    link.symlink_to(place.parent)
    return Counted([module(link / "site")])


def test_nothing_is_looked_at_while_nothing_happens(searched: Path) -> None:
    stamps = counted(searched)
    outlook = watched.Watched(stamps)
    for _ in range(3):
        outlook.look()
        assert outlook.hold()
    (searched / "package/module.py").read_text()
    outlook.look()
    assert outlook.hold()
    assert stamps.looks == 1, "the time between the stamps and the watch"


@pytest.mark.parametrize("change", CHANGES | FURTHER)
def test_what_happens_is_noticed(searched: Path, change: str) -> None:
    stamps = counted(searched)
    outlook = watched.Watched(stamps)
    outlook.look()
    (CHANGES | FURTHER)[change](searched)
    outlook.look()
    assert stamps.looks == 2
    assert outlook.hold() == Stamps.hold(stamps)


def test_what_is_above_the_end_of_a_link_is_noticed(searched: Path) -> None:
    above = searched.parent / "far/above"
    above.mkdir(parents=True)
    searched.rename(above / "end")
    searched.symlink_to(above / "end")
    stamps = Stamps([module(searched)])
    outlook = watched.Watched(stamps)
    outlook.look()
    assert outlook.hold()
    above.rename(above.parent / "moved")
    outlook.look()
    assert not outlook.hold()


def test_what_is_missing_comes_in_steps(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = searched.parent / "some/thing/missing"
    monkeypatch.syspath_prepend(str(place))
    outlook = watched.Watched(Stamps([]))
    for step in (searched.parent / "some", searched.parent / "some/thing"):
        outlook.look()
        step.mkdir()
        outlook.look()
        assert outlook.hold()
    place.mkdir()
    outlook.look()
    assert not outlook.hold()


def test_what_is_missing_may_come_where_nothing_is_told(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = searched.parent / "some/thing"
    monkeypatch.syspath_prepend(str(place))
    outlook = watched.Watched(Stamps([]))
    outlook.look()
    monkeypatch.setattr(watched, "_is_trusted", lambda _, path: not path.endswith("some"))
    place.parent.mkdir()
    outlook.look()
    assert outlook.hold()
    place.mkdir()
    outlook.look()
    assert not outlook.hold()


def test_a_change_before_the_first_look_is_noticed(searched: Path) -> None:
    stamps = counted(searched)
    replace(searched / "package/module.py", "two")
    outlook = watched.Watched(stamps)
    outlook.look()
    assert not outlook.hold()


def test_what_does_not_matter_is_looked_at_once(searched: Path) -> None:
    stamps = counted(searched)
    outlook = watched.Watched(stamps)
    outlook.look()
    (searched.parent / "another").touch()
    outlook.look()
    outlook.look()
    assert (stamps.looks, outlook.hold()) == (2, True)


def test_what_changed_stays_changed(searched: Path) -> None:
    stamps = counted(searched)
    outlook = watched.Watched(stamps)
    (searched / "package/another.py").touch()
    outlook.look()
    (searched / "package/another.py").unlink()
    outlook.look()
    assert not outlook.hold()


def older(patch: pytest.MonkeyPatch) -> None:
    """Let the C library be one without inotify."""
    patch.setattr(watched.ctypes, "CDLL", lambda *_, **__: object())


def turn(path: Path) -> None:
    (path / "turn").symlink_to("turn")


UNWATCHED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a file system of which not all is told": lambda patch: patch.setattr(watched, "_TRUSTED", set()),
    "no way to be told": older,
    "more files than may be watched": lambda patch: patch.setattr(watched, "ways", lambda _: {"/is/not/there"}),
    "more files than leave enough to others": lambda patch: patch.setattr(watched, "_PART", 1 << 30),
    "a limit that can't be read": lambda patch: patch.setattr(watched, "_LIMIT", "/is/not/there"),
    "mounts that can't be read": lambda patch: patch.setattr(watched, "_MOUNTS", "/is/not/there"),
    "a place that depends on the working directory": lambda patch: patch.syspath_prepend("relative"),
}


@pytest.mark.parametrize("why", UNWATCHED)
def test_forks_look_themselves_where_nothing_is_told(searched: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    UNWATCHED[why](monkeypatch)
    stamps = counted(searched)
    before = os.listdir("/proc/self/fd")
    outlook = watched.Watched(stamps)
    assert os.listdir("/proc/self/fd") == before
    outlook.look()
    assert stamps.looks == 0
    assert outlook.hold()
    (searched / "package/another.py").touch()
    assert not outlook.hold()


def test_a_fork_keeps_nothing_open(searched: Path) -> None:
    before = os.listdir("/proc/self/fd")
    outlook = watched.Watched(counted(searched))
    assert len(os.listdir("/proc/self/fd")) == len(before) + 2
    outlook.look()
    outlook.leave_server()
    assert os.listdir("/proc/self/fd") == before
    assert outlook.hold()


def test_links_in_circles_are_not_watched(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn(searched)
    monkeypatch.syspath_prepend(str(searched / "turn"))
    stamps = counted(searched)
    outlook = watched.Watched(stamps)
    outlook.look()
    assert (stamps.looks, outlook.hold()) == (0, True)
