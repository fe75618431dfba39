"""What Jinja templates and expressions name, and what becomes of it: by Jinja's own parser."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.utils import import_string

LOOKUPS = {"lookup", "query", "q"}
HEADER = re.compile(r"^#jinja2:\s*(?P<options>[^\n]*)\n")
# The types of what filters, and methods of texts, return.
FILTER_TYPES = {
    "bool": "bool",
    "string": "str",
    "type_debug": "str",
} | {
    name: kind
    for kind, names in {
        "int": "int length count hash_int wordcount",
        "float": "float abs round log pow root",
        "str": "lower upper trim capitalize title join replace to_json to_nice_json to_yaml to_nice_yaml tojson"
        " b64encode b64decode regex_replace regex_search hash sha1 md5 password_hash quote basename dirname expanduser"
        " realpath indent format comment urlencode escape e strftime wordwrap center truncate to_uuid checksum"
        " regex_escape",
        "list": "list sort unique map select reject selectattr rejectattr flatten union difference intersect"
        " symmetric_difference dict2items zip zip_longest regex_findall split subelements product",
        "dict": "combine items2dict dictsort_map",
    }.items()
    for name in names.split()
}
METHOD_TYPES = {
    name: kind
    for kind, names in {
        "str": "lower upper strip lstrip rstrip replace format join title capitalize",
        "list": "split splitlines rsplit",
        "bool": "startswith endswith isdigit isalpha isalnum islower isupper",
    }.items()
    for name in names.split()
}
LOOKUP_TYPES = {"env": "str", "file": "str", "template": "str", "pipe": "str", "password": "str"}
ELEMENT = "[]"

Flow = dict[str, Any]
Type = dict[str, Any]


def extensions() -> list[type[jinja2.ext.Extension]]:
    """Return the extensions of Jinja that Ansible is configured with, as far as they are installed."""
    names = os.environ.get("ANSIBLE_JINJA2_EXTENSIONS", "").replace(" ", "").split(",")
    found = [import_string(name, silent=True) for name in names if name]
    return [one for one in found if isinstance(one, type) and issubclass(one, jinja2.ext.Extension)]


EXTENSIONS = extensions()
USUAL = jinja2.Environment(autoescape=False, trim_blocks=True, extensions=EXTENSIONS)  # noqa: S701 — nothing is rendered.
OPTIONS = {"trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"} | {
    f"{what}_{end}_string" for what in ("block", "variable", "comment") for end in ("start", "end")
}


def environment(text: str, delimiters: dict[str, str]) -> tuple[jinja2.Environment, str, int]:
    """Return the parser, the text without its header, and how many lines that had."""
    header = HEADER.match(text)
    if not header and not delimiters:
        return USUAL, text, 0
    options: dict[str, Any] = {"trim_blocks": True, **delimiters}
    for pair in header["options"].split(",") if header else []:
        name, _, value = pair.partition(":")
        value = value.strip().strip("'\"")
        if name.strip() in OPTIONS:
            options[name.strip()] = {"true": True, "false": False}.get(value.lower(), value)
    try:
        made = jinja2.Environment(autoescape=False, extensions=EXTENSIONS, **options)  # noqa: S701 — nothing is rendered.
    except (TypeError, AssertionError):
        made = USUAL
    return (made, text[header.end() :], 1) if header else (made, text, 0)


def plain(name: str) -> str:
    """Return the name of a plugin without the collection that every Ansible has."""
    return name.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")


class Analysis:
    """The analysis of one text."""

    def __init__(self, tree: nodes.Template, offset: int) -> None:
        self.offset = offset
        self.scope: dict[str, list[Flow]] = {}
        self.outputs: list[dict[str, Any]] = []
        self.lookups: list[dict[str, Any]] = []
        self.includes: list[dict[str, Any]] = []
        self.indexes: list[dict[str, Any]] = []
        self.operands: list[dict[str, Any]] = []
        self.operators = operators(tree)
        self.statements(tree.body)
        self.operators = {}  # What follows looks at the same expressions again.
        self.sums = [
            {"line": self.line(node), "left": self.types(node.left), "right": self.types(node.right)}
            for node in tree.find_all(nodes.Add)
        ]

    def line(self, node: nodes.Node) -> int:
        """Return the line of a node in the text, from 1."""
        return node.lineno + self.offset

    # Statements.

    def statements(self, body: list[nodes.Node]) -> None:
        """Walk statements in their order."""
        for node in body:
            handler = getattr(self, "on_" + type(node).__name__.lower(), None)
            if handler:
                handler(node)
            else:
                self.others(node)

    def others(self, node: nodes.Node) -> None:
        """Walk a statement of which nothing special is known."""
        for child in node.iter_child_nodes():
            if isinstance(child, nodes.Expr):
                self.flows(child)
            else:
                self.statements([child])

    def on_output(self, node: nodes.Output) -> None:
        """Note what is written into the text."""
        for part in node.nodes:
            if not isinstance(part, nodes.TemplateData):
                value = self.value(part)
                self.outputs.append({"line": self.line(part), "flows": value.get("flows", []), "value": value})

    def on_for(self, node: nodes.For) -> None:
        """Bind the loop's names."""
        self.bind(node.target, [step(flow, ELEMENT) for flow in self.flows(node.iter)])
        self.scope.setdefault("loop", [])
        if node.test:
            self.flows(node.test)
        self.statements(node.body)
        self.statements(node.else_)

    def on_if(self, node: nodes.If) -> None:
        """Walk all branches."""
        self.flows(node.test)
        self.statements(node.body)
        self.statements(node.elif_)  # type: ignore[arg-type]
        self.statements(node.else_)

    def on_assign(self, node: nodes.Assign) -> None:
        """Bind a name, or add to what a namespace holds."""
        flows = self.flows(node.node)
        if isinstance(node.target, nodes.NSRef):
            self.scope[node.target.name] = merge(self.scope.get(node.target.name, []), flows)
        else:
            self.bind(node.target, flows)

    def on_assignblock(self, node: nodes.AssignBlock) -> None:
        """Bind a name to what a block writes."""
        before = len(self.outputs)
        self.statements(node.body)
        written = [flow for output in self.outputs[before:] for flow in output["flows"]]
        del self.outputs[before:]
        self.bind(node.target, written)

    def on_macro(self, node: nodes.Macro) -> None:
        """Walk a macro, of whose arguments nothing is known."""
        self.scope[node.name] = []
        for argument in node.args:
            self.scope[argument.name] = []
        self.statements(node.body)

    def on_include(self, node: nodes.Include) -> None:
        """Note another template."""
        self.includes.append({"line": self.line(node), "term": self.value(node.template)})

    on_import = on_include
    on_fromimport = on_include

    def bind(self, target: nodes.Node, flows: list[Flow]) -> None:
        """Bind the names of a target."""
        for name in target.find_all(nodes.Name) if not isinstance(target, nodes.Name) else [target]:
            self.scope[name.name] = flows

    # Expressions.

    def flows(self, node: nodes.Node | None) -> list[Flow]:
        """Return which variables' text is in the value of the expression."""
        if node is None:
            return []
        handler = getattr(self, "of_" + type(node).__name__.lower(), None)
        if handler:
            found: list[Flow] = handler(node)
            if id(node) in self.operators:
                self.operands.append({"line": self.line(node), "operator": self.operators[id(node)], "flows": found})
            return found
        if isinstance(node, (nodes.Test, nodes.Compare, nodes.Not, nodes.Const)):
            self.all_of(node)
            return []
        return self.all_of(node)

    def all_of(self, node: nodes.Node) -> list[Flow]:
        """Return the flows of all children."""
        return merge(*(self.flows(child) for child in node.iter_child_nodes()))

    def of_name(self, node: nodes.Name) -> list[Flow]:
        """Return the variable, or what a local name stands for."""
        if node.name in self.scope:
            return self.scope[node.name]
        return [{"name": node.name, "path": [], "filters": [], "lookup": -1}]

    def of_getattr(self, node: nodes.Getattr) -> list[Flow]:
        """Return the attribute."""
        return [step(flow, node.attr) for flow in self.flows(node.node)]

    def of_getitem(self, node: nodes.Getitem) -> list[Flow]:
        """Return the element."""
        index = self.flows(node.arg)
        if isinstance(node.node, nodes.Name) and node.node.name in ("vars", "hostvars") and index:
            self.indexes.append({"line": self.line(node), "flows": index})
        key = node.arg.value if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str) else ELEMENT
        return [step(flow, key) for flow in self.flows(node.node)]

    def of_condexpr(self, node: nodes.CondExpr) -> list[Flow]:
        """Return both results."""
        self.flows(node.test)
        return merge(self.flows(node.expr1), self.flows(node.expr2))

    def of_dict(self, node: nodes.Dict) -> list[Flow]:
        """Return the values' flows."""
        return merge(*(self.flows(pair.value) for pair in node.items))

    def of_filter(self, node: nodes.Filter) -> list[Flow]:
        """Return what goes through the filter."""
        name = plain(node.name)
        base = self.flows(node.node)
        arguments = merge(*(self.flows(a) for a in node.args), *(self.flows(k.value) for k in node.kwargs))
        if name == "map":
            base = [step(step(f, ELEMENT), attribute(node)) if attribute(node) else f for f in base]
        elif name in ("first", "last", "random"):
            base = [step(flow, ELEMENT) for flow in base]
        return [{**flow, "filters": [*flow["filters"], name]} for flow in merge(base, arguments)]

    def of_call(self, node: nodes.Call) -> list[Flow]:
        """Return what a call's result holds."""
        arguments = merge(*(self.flows(a) for a in node.args), *(self.flows(k.value) for k in node.kwargs))
        if isinstance(node.node, nodes.Name) and node.node.name in LOOKUPS and node.args:
            return [*self.lookup(node)]
        if isinstance(node.node, nodes.Getattr):
            method = node.node.attr
            base = self.flows(node.node.node)
            if method == "get" and node.args and isinstance(node.args[0], nodes.Const):
                base = [step(flow, str(node.args[0].value)) for flow in base]
            return [{**flow, "filters": [*flow["filters"], "." + method]} for flow in merge(base, arguments)]
        self.flows(node.node)
        return arguments

    def lookup(self, node: nodes.Call) -> list[Flow]:
        """Note a lookup, and return its result."""
        first = node.args[0]
        plugin = first.value if isinstance(first, nodes.Const) else ""
        self.lookups.append(
            {
                "line": self.line(node),
                "plugin": str(plugin),
                "terms": [self.value(a) for a in node.args[1:]],
                "options": {k.key: self.value(k.value) for k in node.kwargs},
            }
        )
        return [{"name": "", "path": [], "filters": [], "lookup": len(self.lookups) - 1}]

    def value(self, node: nodes.Node) -> dict[str, Any]:
        """Return a literal value, or the flows of what is none."""
        try:
            return {"literal": node.as_const(), "isLiteral": True}  # type: ignore[attr-defined]
        except (nodes.Impossible, AttributeError):
            joined = node.nodes if isinstance(node, nodes.Concat) else []
            if isinstance(node, nodes.Add):
                joined = [node.left, node.right]
            if not joined:
                return {"flows": self.flows(node)}
            parts = [self.value(part) for part in joined]
            return {"flows": merge(*(part.get("flows", []) for part in parts)), "parts": parts}

    # Types.

    def types(self, node: nodes.Node | None) -> list[Type]:  # noqa: C901, PLR0911 — a table.
        """Return the types that the value may have."""
        match node:
            case nodes.Const():
                return [{"type": type(node.value).__name__}]
            case nodes.TemplateData() | nodes.Concat():
                return [{"type": "str"}]
            case nodes.Compare() | nodes.Not() | nodes.Test():
                return [{"type": "bool"}]
            case nodes.And() | nodes.Or():
                return self.types(node.left) + self.types(node.right)
            case nodes.CondExpr():
                return self.types(node.expr1) + self.types(node.expr2)
            case nodes.Sub() | nodes.Div() | nodes.FloorDiv() | nodes.Neg() | nodes.Pow():
                return [{"type": "int"}]
            case nodes.Add():
                both = self.types(node.left) + self.types(node.right)
                return both[:1] if all(t == both[0] and "type" in t for t in both) else [{"type": "unknown"}]
            case nodes.List() | nodes.Tuple():
                return [{"type": "list"}]
            case nodes.Dict():
                return [{"type": "dict"}]
            case nodes.Filter():
                return self.filter_types(node)
            case nodes.Call():
                return [{"type": self.call_type(node)}]
            case nodes.Name() | nodes.Getattr() | nodes.Getitem() if not sliced(node):
                return [f if not f["filters"] and f["name"] else {"type": "unknown"} for f in self.flows(node)] or [
                    {"type": "unknown"}
                ]
        return [{"type": "unknown"}]

    def filter_types(self, node: nodes.Filter) -> list[Type]:
        """Return the types of a filter's result."""
        name = plain(node.name)
        if name in ("default", "d"):
            return self.types(node.node) + (self.types(node.args[0]) if node.args else [{"type": "str"}])
        if name == "ternary":
            return [t for argument in node.args[:2] for t in self.types(argument)]
        if name in ("first", "last", "random"):
            return [step(t, ELEMENT) if t.get("name") else {"type": "unknown"} for t in self.types(node.node)]
        if name in ("json_query", "community.general.json_query"):
            return [{"type": "list" if node.args and projects(node.args[0]) else "unknown"}]
        if name == "regex_search" and len(node.args) > 1:
            return [{"type": "list"}]
        return [{"type": FILTER_TYPES.get(name, "unknown")}]

    def call_type(self, node: nodes.Call) -> str:
        """Return the type of a call's result."""
        called = node.node
        if isinstance(called, nodes.Getattr):
            return METHOD_TYPES.get(called.attr, "unknown")
        if isinstance(called, nodes.Name) and called.name in ("query", "q"):
            return "list"
        if isinstance(called, nodes.Name) and called.name == "lookup" and node.args:
            return LOOKUP_TYPES.get(plain(str(getattr(node.args[0], "value", ""))), "unknown")
        return "unknown"


def sliced(node: nodes.Node) -> bool:
    """Report whether the expression is a part of a list or of a text, by [1:2]."""
    return isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)


def projects(query: nodes.Node) -> bool:
    """Report whether a query of JMESPath surely gives a list: one for all elements of another."""
    text = query.value if isinstance(query, nodes.Const) else None
    if not isinstance(text, str):
        return False
    text = re.sub(r"\[\?[^\]]*\]|\[\*\]", "[]", text)  # The operators of its conditions do not count.
    return "[]" in text and not text.lstrip().startswith("{") and not re.search(r"[|(=<>&!]", text)


def operators(tree: nodes.Template) -> dict[int, str]:
    """Return what takes a variable or a call as its text: a filter's name, a method behind a dot, or + and ~."""
    found: dict[int, str] = {}
    taken: Sequence[nodes.Node | None]
    for node in tree.find_all((nodes.Filter, nodes.Getattr, nodes.Add, nodes.Concat)):
        match node:
            case nodes.Filter():
                taken, name = [node.node], plain(node.name)
            case nodes.Getattr():
                taken, name = [node.node] if isinstance(node.node, nodes.Call) else [], "." + node.attr
            case nodes.Add():
                taken, name = [node.left, node.right], "+"
            case nodes.Concat():
                taken, name = node.nodes, "~"
            case _:
                continue
        found |= {id(one): name for one in taken if isinstance(one, (nodes.Name, nodes.Call))}
    return found


def sure(node: nodes.Node | None) -> set[str]:
    """Return the variables that are read in each rendering: not in a branch, a loop or an argument."""
    read: set[str] = set()
    match node:
        case nodes.Name() if node.ctx == "load":
            read = {node.name}
        case nodes.If():
            branches = [node.body, *(branch.body for branch in node.elif_), node.else_]
            read = sure(node.test) | set.intersection(*(sure_of(branch) for branch in branches))
        case nodes.For():
            read = sure(node.iter)
        case nodes.CondExpr():
            read = sure(node.test) | (sure(node.expr1) & sure(node.expr2))
        case nodes.And() | nodes.Or():
            read = sure(node.left)
        case nodes.Filter() if plain(node.name) not in ("default", "d"):
            read = sure(node.node)
        case nodes.Test() if plain(node.name) not in ("defined", "undefined"):
            read = sure(node.node)
        case nodes.Call():
            read = sure(node.node)
        case nodes.Output() | nodes.Template() | nodes.Expr():
            read = sure_of(list(node.iter_child_nodes()))
    return read


def sure_of(all_nodes: list[nodes.Node]) -> set[str]:
    """Return the variables that some of the nodes surely read."""
    return set().union(*(sure(node) for node in all_nodes))


def step(flow: Flow, key: str) -> Flow:
    """Return the flow of a part of the value."""
    return {**flow, "path": [*flow["path"], key]}


def merge(*lists: list[Flow]) -> list[Flow]:
    """Return all flows, each once."""
    found: list[Flow] = []
    for flow in (flow for flows in lists for flow in flows):
        if flow not in found:
            found.append(flow)
    return found


def attribute(node: nodes.Filter) -> str:
    """Return the attribute that map() takes."""
    for pair in node.kwargs:
        if pair.key == "attribute" and isinstance(pair.value, nodes.Const):
            return str(pair.value.value)
    return ""


def writes(body: list[nodes.Node]) -> bool:
    """Report whether the statements surely write something."""
    for node in body:
        if isinstance(node, nodes.Output) and node.nodes:
            return True
        if isinstance(node, nodes.If) and node.else_:
            branches = [node.body, node.else_, *(e.body for e in node.elif_)]
            if all(writes(branch) for branch in branches):
                return True
        if isinstance(node, (nodes.Include, nodes.CallBlock, nodes.FilterBlock)):
            return True
        if isinstance(node, nodes.With) and writes(node.body):
            return True
    return False


def guarded(tree: nodes.Template) -> set[str]:
    """Return the variables of which the template takes into account that there may be none."""
    found: set[str] = set()
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        asked: nodes.Node | None = node.node
        while isinstance(asked, (nodes.Getattr, nodes.Getitem, nodes.Filter)):
            asked = asked.node
        if plain(node.name) in ("default", "d", "defined", "undefined") and isinstance(asked, nodes.Name):
            found.add(asked.name)
    return found


def imported(tree: nodes.Template) -> set[str]:
    """Return the names that a template imports from others."""
    found = {node.target for node in tree.find_all(nodes.Import)}
    for node in tree.find_all(nodes.FromImport):
        found |= {name if isinstance(name, str) else name[1] for name in node.names}
    return found


def analyse(text: str, bare: bool, delimiters: dict[str, str]) -> dict[str, Any]:
    """Return what is known of a template, or of an expression without braces."""
    source = "{{ " + text + "\n}}" if bare else text
    parser, source, offset = environment(source, delimiters)
    try:
        tree = parser.parse(source)
    except jinja2.TemplateSyntaxError as error:
        return {"error": error.message, "line": error.lineno + offset}
    except (jinja2.TemplateError, RecursionError) as error:
        return {"error": str(error) or type(error).__name__, "line": 1}
    found = Analysis(tree, offset)
    local = set(found.scope) | {n.name for n in tree.find_all(nodes.Name) if n.ctx != "load"} | imported(tree)
    always = sure(tree)
    names: dict[str, int] = {}
    for name in tree.find_all(nodes.Name):
        if name.name not in local:
            names.setdefault(name.name, name.lineno + offset)
    parts = [part for node in tree.body if isinstance(node, nodes.Output) for part in node.nodes]
    statements = any(not isinstance(node, nodes.Output) for node in tree.body)
    whole = not statements and len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData)
    return {
        "names": [{"name": name, "line": line, "sure": name in always} for name, line in sorted(names.items())],
        "guarded": sorted(guarded(tree)),
        "outputs": found.outputs,
        "lookups": found.lookups,
        "includes": found.includes,
        "indexes": found.indexes,
        "operands": found.operands,
        "sums": found.sums,
        "filters": [{"name": f.name, "line": f.lineno + offset} for f in tree.find_all(nodes.Filter)],
        "tests": [{"name": t.name, "line": t.lineno + offset} for t in tree.find_all(nodes.Test)],
        "whole": whole,
        "types": found.types(parts[0]) if whole else [{"type": "str"}],
        "mayBeEmpty": statements and not writes(tree.body),
    }
