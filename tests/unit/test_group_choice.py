"""Which groups a flow takes, and the rule that leaves out each of the others."""

from __future__ import annotations

from srm_spark.config.settings import CheckpointSettings
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


def test_every_group_that_is_not_taken_has_its_rule() -> None:
    choice = GroupChoice(CHOSEN, "A", SHOWN)
    assert choice.taken() == ["paying-1", "paying-2"]
    assert choice.others() == ["paying-shared"]
    assert choice.left_out() == {
        "noise-1": "groups.exclude has noise-.*",
        "console-consumer-7": "groups.exclude has console-.*",
        "paying-shared": NO_CONSUMER_GROUP,
    }
    nobody = GroupChoice(CheckpointSettings(groups=("x",)), "A", SHOWN)
    assert set(nobody.left_out().values()) == {"no pattern of groups matches"}


def test_a_filter_of_the_users_own_is_the_rule() -> None:
    choice = GroupChoice(CheckpointSettings(filter_class="tests.broker.policies:Paying"), "A", SHOWN)
    assert choice.left_out()["noise-1"] == "group.filter.class tests.broker.policies:Paying"


def test_groups_that_are_asked_for_by_name_and_not_shown_are_told() -> None:
    assert GroupChoice(CHOSEN, "A", SHOWN).unseen(["paying-1"]) is None
    said = GroupChoice(CheckpointSettings(groups=("lost", "paying-1")), "A", SHOWN).unseen(["paying-1"])
    assert said == "A does not show group lost: there is none, or DESCRIBE on it is not allowed"
