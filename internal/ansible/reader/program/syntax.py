"""Playbooks, roles and files of tasks, as Ansible's own loader takes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook import Playbook
from ansible.playbook.helpers import load_list_of_blocks
from ansible.playbook.play import Play
from ansible.plugins import loader as plugins
from ansible.utils.context_objects import CLIArgs
from ansible.vars.manager import VariableManager

ORIGIN = re.compile(r"^Origin: (?P<file>/.*?):(?P<line>\d+)(?::(?P<column>\d+))?$", re.MULTILINE)


def remember(loader: Any) -> None:
    """Have a loader of plugins look once for each that it finds: each task asks anew."""
    find = loader.find_plugin_with_context
    known: dict[Any, Any] = {}

    def find_once(*args: Any, collection_list: list[str] | None = None, **kwargs: Any) -> Any:
        key = (args, tuple(collection_list or ()), tuple(sorted(kwargs.items())))
        if key in known:
            return known[key]
        found = find(*args, collection_list=collection_list, **kwargs)
        if found.resolved:  # A role that is loaded later may have others.
            known[key] = found
        return found

    loader.find_plugin_with_context = find_once


class Loader(DataLoader):
    """Reads files of the image where the project has them."""

    image = ""
    project = ""

    def load_from_file(self, file_name: str, *args: Any, **kwargs: Any) -> Any:
        """Return the data itself, of which the loader returns a copy otherwise: that takes longer than to read it."""
        if not args:
            kwargs["unsafe"] = True
        try:
            return super().load_from_file(file_name, *args, **kwargs)
        except Exception:  # Each version of Ansible has errors of its own for a password that is not here.
            if Path(self.path_dwim(file_name)).read_bytes().startswith(b"$ANSIBLE_VAULT;"):
                return {}
            raise

    def path_dwim(self, given: str) -> str:
        """Return the path of a file; all others of the loader come here."""
        path = str(super().path_dwim(given))
        if not self.image or self.image == self.project or not f"{path}/".startswith(f"{self.image}/"):
            return path
        here = self.project + path[len(self.image) :]
        return path if Path(path).exists() and not Path(here).exists() else here


class Checker:
    """Loads content, and keeps what Ansible says of it."""

    def __init__(self, directory: str, image: str) -> None:
        remember(plugins.module_loader)
        remember(plugins.action_loader)
        context.CLIARGS = CLIArgs({"tags": (), "skip_tags": (), "syntax": True, "start_at_task": None})
        self.loader = Loader()
        self.loader.image, self.loader.project = image, directory
        self.loader.set_basedir(directory)
        inventory = InventoryManager(loader=self.loader, sources=["localhost,"])
        self.variables = VariableManager(loader=self.loader, inventory=inventory)
        self.faults: list[dict[str, Any]] = []

    def playbook(self, path: str) -> None:
        """Load a playbook."""
        self.attempt(path, lambda: Playbook.load(path, variable_manager=self.variables, loader=self.loader))

    def role(self, role: str, path: str) -> None:
        """Load a role by its name or path, with its dependencies."""
        play = {"name": "check", "hosts": "localhost", "gather_facts": False, "roles": [{"role": role}]}
        self.attempt(path, lambda: Play.load(play, variable_manager=self.variables, loader=self.loader))

    def tasks(self, path: str, collections: list[str], handlers: bool) -> None:
        """Load a file of tasks that is included when a run gets there."""

        def load() -> None:
            data = self.loader.load_from_file(path)
            if not isinstance(data, list):
                return
            self.loader.set_basedir(str(Path(path).parent))
            play = Play.load(
                {"hosts": "localhost", "collections": collections}, variable_manager=self.variables, loader=self.loader
            )
            load_list_of_blocks(
                data, play=play, variable_manager=self.variables, loader=self.loader, use_handlers=handlers
            )

        self.attempt(path, load)

    def attempt(self, path: str, load: Any) -> None:
        """Load, and note what Ansible says against it."""
        basedir = self.loader.get_basedir()
        try:
            load()
        except RecursionError:
            self.faults.append({"file": path, "line": 0, "column": 0, "message": "includes itself without an end"})
        except Exception as error:  # Whatever the loader raises, the run would end with it.
            self.faults.append(fault(error, path))
        finally:
            self.loader.set_basedir(basedir)


def fault(error: Exception, path: str) -> dict[str, Any]:
    """Return the message and the place of an error."""
    text = str(error)
    message = str(getattr(error, "message", "") or text).strip()
    place = None
    cause: BaseException | None = error
    while cause and not place:
        place = ORIGIN.search(str(cause)) or ORIGIN.search(str(getattr(cause, "_formatted_source_context", "") or ""))
        origin = origin_of(getattr(cause, "obj", None))
        if not place and origin:
            return {"file": origin[0], "line": origin[1], "column": origin[2], "message": message}
        cause = cause.__cause__
    if place:
        return {
            "file": place["file"],
            "line": int(place["line"]),
            "column": int(place["column"] or 0),
            "message": message,
        }
    return {"file": path, "line": 0, "column": 0, "message": message}


def origin_of(value: Any) -> tuple[str, int, int] | None:
    """Return where a value was read."""
    position = getattr(value, "ansible_pos", None)
    if position:
        return str(position[0]), int(position[1]), int(position[2])
    try:
        from ansible._internal._datatag._tags import Origin  # noqa: PLC0415 — Ansible's own, and not in all versions.

        tag = Origin.get_tag(value)
    except (ImportError, AttributeError, TypeError):
        return None
    if tag is None or not tag.path:
        return None
    return str(tag.path), int(tag.line_num or 0), int(tag.col_num or 0)
