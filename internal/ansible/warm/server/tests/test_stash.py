"""What a stash knows of who imports whom."""

from ensign_warm import stash


def test_who_needs_whom() -> None:
    assert stash.inverted({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"b": {"a"}, "c": {"a", "b"}}


def test_who_need_the_same_share_it() -> None:
    graph = {"a": {"x", "y"}, "b": {"y", "x"}, "c": {"x"}}
    compacted = stash.compact(graph)
    assert compacted == graph
    assert compacted["a"] is compacted["b"]
    assert compacted["a"] is not compacted["c"]
