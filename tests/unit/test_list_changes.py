"""What of a wanted change is done, and what is declined, whatever the lists and the file say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.filters import NameFilter
from srm_spark.core.list_changes import FileRules, decide, problems_of
from srm_spark.core.listed_filter import ListedFilter
from srm_spark.core.lists import Change, ListKind, Lists, change_between

ENTRIES = st.lists(st.sampled_from(["a", "b", "a.*", "[bc]", "d-1"]), unique=True, max_size=4).map(tuple)
LISTS = st.builds(Lists, ENTRIES, ENTRIES)
CHANGES = st.builds(Change, ENTRIES, ENTRIES, ENTRIES, ENTRIES).filter(lambda change: not problems_of(change))
FILES = st.none() | st.builds(NameFilter, ENTRIES, ENTRIES).map(
    lambda takes: FileRules(takes, "f:1: topics", "f:2: topics.exclude")
)


@given(st.sampled_from(ListKind), CHANGES, LISTS, FILES)
def test_all_is_done_that_can_be_and_the_rest_is_told(
    kind: ListKind, wanted: Change, lists: Lists, file: FileRules | None
) -> None:
    found = decide(kind, wanted, lists, file)
    assert found.after == found.change.on(lists)
    assert found.after == wanted.on(lists), "the same as if nothing were declined"
    assert set(wanted.add) <= set(found.after.allow)
    assert not set(wanted.remove) & set(found.after.allow)
    absent = [entry for entry in wanted.remove if entry not in lists.allow]
    absent += [entry for entry in wanted.remove_deny if entry not in lists.deny]
    assert [said.split()[0] for said in found.declined] == absent
    assert found.change or len(found.remarks) + len(found.declined) >= bool(wanted)
    assert all(said.split()[0].rstrip(":") in str(wanted) for said in found.remarks)


@given(CHANGES, LISTS, FILES.filter(lambda file: file is not None))
def test_a_name_that_was_added_or_removed_and_does_not_what_it_seems_is_told(
    wanted: Change, lists: Lists, file: FileRules
) -> None:
    found = decide(ListKind.TOPICS, wanted, lists, file)
    takes = ListedFilter(file.takes, found.after)
    told = " ".join((*found.remarks, *found.declined))
    for name in ("a", "b", "d-1"):
        if name in found.change.add and not takes.matches(name):
            assert f"{name} does not flow all the same" in told
        if name in found.change.remove and takes.matches(name):
            assert f"{name} flows all the same" in told


def test_long_lists_take_no_more_than_a_few_comparisons_an_entry() -> None:
    asked = 0

    class Counted(str):
        def __hash__(self) -> int:
            nonlocal asked
            asked += 1
            return str.__hash__(self)

        def __eq__(self, other: object) -> bool:
            nonlocal asked
            asked += 1
            return str.__eq__(self, other)

    some, others = (tuple(Counted(f"topic-{number}") for number in span) for span in (range(300), range(300, 600)))
    lists, wanted = Lists(some, some), Change(others, some, others, some)
    change_between(lists, Lists(others, others))
    decide(ListKind.TOPICS, replace(wanted, remove=others, add=some), lists, None)
    assert asked < 100 * 300
