"""What was imported, and changes afterwards."""

import os
import site
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from ensign_warm import stamps


def renew(place: Path) -> None:
    place.rename(place.parent / "old")
    place.mkdir()


def replace(file: Path, text: str) -> None:
    times = file.stat().st_mtime_ns, file.stat().st_mtime_ns
    new = file.parent / "new"
    new.write_text(text)
    os.utime(new, ns=times)
    new.rename(file)


def disguise(file: Path, text: str) -> None:
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=times)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module is written in place": lambda place: (place / "package/module.py").write_text("two = 2"),
    "a module is replaced by one of the same size": lambda place: replace(place / "package/module.py", "two"),
    "a module is written in place, and looks as old": lambda place: disguise(place / "package/module.py", "two"),
    "a module is removed": lambda place: (place / "package/module.py").unlink(),
    "another module is installed": lambda place: (place / "another.py").touch(),
    "another module is put into the package": lambda place: (place / "package/another.py").touch(),
    "the package is moved away": lambda place: (place / "package").rename(place / "other"),
    "a list of places is written in place": lambda place: (place / "places.pth").write_text("/opt"),
    "the whole place is replaced": renew,
}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "_PAUSE", 0)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "site"
    (found / "package").mkdir(parents=True)
    (found / "package/module.py").write_text("one")
    (found / "places.pth").write_text("")
    for path in (found / "package/module.py", found / "places.pth", found / "package", found):
        os.utime(path, (1, 1))
    return found


def module(place: Path) -> ModuleType:
    made = ModuleType("package.module")
    made.__file__ = str(place / "package/module.py")
    return made


@pytest.fixture
def searched(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(place))
    return place


def test_what_has_not_changed_holds(searched: Path) -> None:
    taken = stamps.Stamps([module(searched)])
    (searched / "package/module.py").read_text()
    assert not taken.changed()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(searched: Path, change: str) -> None:
    taken = stamps.Stamps([module(searched)])
    CHANGES[change](searched)
    assert taken.changed()


def test_bytecode_beside_the_program_is_no_change(place: Path) -> None:
    """Cold runs leave it there, often while a server starts."""
    taken = stamps.Stamps([module(place)], str(place / "package/program.py"))
    (place / "package/__pycache__").mkdir()
    assert not taken.changed()


def test_the_guard_of_names_beside_the_program_is_the_managers_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager writes it right before a server starts."""
    monkeypatch.syspath_prepend(str(place / "package/guard"))
    (place / "package/guard").mkdir()
    began = time.time_ns()
    os.utime(place / "package/guard", ns=(began + 1, began + 1))
    assert stamps.Stamps([]).changed_since(began)
    assert not stamps.Stamps([], str(place / "package/program.py")).changed_since(began)


def test_a_place_that_was_missing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "later"))
    taken = stamps.Stamps([])
    (tmp_path / "later").mkdir()
    assert taken.changed()


def test_files_are_looked_at_once_a_second_and_a_change_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter((0.0, 0.5, 1.1, 1.9, 2.2, 3.3))
    monkeypatch.setattr(stamps, "time", SimpleNamespace(monotonic=lambda: next(looks)))
    monkeypatch.setattr(stamps, "_PAUSE", 1.0)
    monkeypatch.syspath_prepend(str(tmp_path / "later"))
    taken = stamps.Stamps([])
    assert [taken.changed(), taken.changed()] == [False, False]
    (tmp_path / "later").mkdir()
    assert [taken.changed(), taken.changed()] == [False, True], "the time since the last look counts"
    (tmp_path / "later").rmdir()
    assert taken.changed()


def test_the_places_of_a_user_or_system_that_were_missing_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path / "user"))
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path / "system")])
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    for name in ("user", "system"):
        taken = stamps.Stamps([])
        (tmp_path / name).mkdir()
        assert taken.changed()
        assert not stamps.Stamps([]).changed()
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    taken = stamps.Stamps([])
    (tmp_path / "user").rmdir()
    assert not taken.changed(), "nobody looks there"


def test_what_changed_during_the_imports_is_told(searched: Path) -> None:
    began = time.time_ns()
    os.utime(searched / "package", ns=(began + 1, began + 1))
    assert stamps.Stamps([module(searched)]).changed_since(began)
    assert not stamps.Stamps([module(searched)]).changed_since(time.time_ns())
    os.utime(searched / "package", ns=(began + 10**15, began + 10**15))
    assert not stamps.Stamps([module(searched)]).changed_since(began), "a clock was wrong when it was made"


def test_what_is_no_module_is_left_alone() -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    assert stamps.places([Lazy("lazy"), object(), None], []) == set()
