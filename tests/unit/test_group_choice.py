"""Which groups a flow takes, and the rule that leaves out each of the others."""

from __future__ import annotations

from srm_spark.config.settings import CheckpointSettings
from srm_spark.core.filter_plugins import GROUPS, load_filter
from srm_spark.core.listed_filter import ListedFilter
from srm_spark.core.lists import NO_LISTS, Lists
from srm_spark.flow.groups.choice import NO_CONSUMER_GROUP, GroupChoice
from srm_spark.kafka.groups import GroupsClient


class Shown(GroupsClient):
    """What a cluster shows."""

    def __init__(self, names: list[str], others: list[str]) -> None:
        self._names, self._others = names, others

    def names(self) -> list[str]:
        return self._names

    def others(self) -> list[str]:
        return self._others


SHOWN = Shown(["paying-1", "paying-2", "noise-1", "console-consumer-7"], ["paying-shared", "noise-shared"])
CHOSEN = CheckpointSettings(groups=("paying-.*", "noise-.*"), groups_exclude=("noise-.*", "console-.*"))


def choice_of(chosen: CheckpointSettings, lists: Lists = NO_LISTS) -> GroupChoice:
    takes = load_filter(GROUPS, chosen.filter_class, chosen.groups, chosen.groups_exclude)
    return GroupChoice(chosen, "A", SHOWN, ListedFilter(takes, lists))


def test_every_group_that_is_not_taken_has_its_rule() -> None:
    choice = choice_of(CHOSEN)
    assert choice.taken() == ["paying-1", "paying-2"]
    assert choice.others() == ["paying-shared"]
    assert choice.left_out() == {
        "noise-1": "groups.exclude has noise-.*",
        "console-consumer-7": "groups.exclude has console-.*",
        "paying-shared": NO_CONSUMER_GROUP,
    }
    nobody = choice_of(CheckpointSettings(groups=("x",)))
    assert set(nobody.left_out().values()) == {"no pattern of groups matches, nor an entry of their list"}


def test_a_filter_of_the_users_own_is_the_rule() -> None:
    choice = choice_of(CheckpointSettings(filter_class="tests.broker.policies:Paying"))
    assert choice.left_out()["noise-1"] == "group.filter.class tests.broker.policies:Paying"


def test_groups_that_are_asked_for_by_name_and_not_shown_are_told() -> None:
    assert choice_of(CHOSEN).unseen(["paying-1"]) is None
    said = choice_of(CheckpointSettings(groups=("lost", "paying-1"))).unseen(["paying-1"])
    assert said == "A does not show group lost: there is none, or DESCRIBE on it is not allowed"


def test_lists_take_groups_and_leave_them_out() -> None:
    choice = choice_of(CheckpointSettings(groups=()), Lists(("paying-.*",), ("paying-2",)))
    assert choice.taken() == ["paying-1"]
    assert choice.left_out()["paying-2"] == "the deny list of groups has paying-2"
    assert choice.unseen(["paying-1"]) is None
    said = choice_of(CheckpointSettings(groups=())).unseen([])
    assert said == "no pattern of groups and no entry of their list names a group of A"
