"""Acts that are no change of a list, and what drivers answer: their bytes, and what they add up to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.acts import (
    Command,
    CommandKind,
    CommandState,
    Scope,
    Shift,
    act_id,
    decode,
    encode,
    pause_of,
)
from srm_spark.core.answers import Answer, Answers, shifted_record, taken_record
from srm_spark.core.codec import decode_progress_key
from srm_spark.core.lists import Act, Change, ListKind, act_key, encode_act
from srm_spark.core.model import Flow
from srm_spark.errors import ActNotUnderstood, CodecError

KEY = act_key("6f0c")
FLOW = Flow("A", "B")
SCOPES = st.builds(Scope, st.sampled_from(["t", "t-ü"]), st.none() | st.integers(0, 5)) | st.just(Scope())
SHIFTS = st.builds(Shift, st.integers(0, 2**40), st.integers(0, 2**40), st.text())
PARTITIONS = st.builds(Scope, st.sampled_from(["t", "t-ü"]), st.integers(0, 1))
OFFSETS = st.builds(
    Command, st.just(CommandKind.OFFSETS), PARTITIONS, st.integers(0, 2**42), st.text(), st.text(), SHIFTS
)
COMMANDS = OFFSETS | st.builds(
    Command,
    st.sampled_from([CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RESTART]),
    SCOPES,
    st.integers(0, 2**42),
    st.text(),
    st.text(),
)


@pytest.mark.parametrize(
    ("command", "value", "said"),
    [
        (
            Command(CommandKind.PAUSE, Scope("t-ü", 3), 1700, "ann@host", "maintenance"),
            '{"v":1,"kind":"pause","topic":"t-ü","partition":3,"at":1700,"who":"ann@host","why":"maintenance"}',
            "pause t-ü-3 by ann@host (maintenance)",
        ),
        (
            Command(CommandKind.RESUME, Scope("t"), 1700, "ann@host"),
            '{"v":1,"kind":"resume","topic":"t","at":1700,"who":"ann@host"}',
            "resume t by ann@host",
        ),
        (
            Command(CommandKind.RESTART, Scope(), 1700, "ann@host"),
            '{"v":1,"kind":"restart","at":1700,"who":"ann@host"}',
            "restart the flow by ann@host",
        ),
        (
            Command(CommandKind.OFFSETS, Scope("t", 3), 1700, "ann@host", "", Shift(100, 50, "Xy")),
            '{"v":1,"kind":"offsets","topic":"t","partition":3,"shift":[100,50,"Xy"],"at":1700,"who":"ann@host"}',
            "offsets t-3 100 to 50 by ann@host",
        ),
        (
            Command(CommandKind.DRAIN, Scope(), 1700, "ann@host", "new kernel", host="h1"),
            '{"v":1,"kind":"drain","host":"h1","at":1700,"who":"ann@host","why":"new kernel"}',
            "drain h1 by ann@host (new kernel)",
        ),
        (
            Command(CommandKind.RETURN, Scope(), 1700, "ann@host", host="h1"),
            '{"v":1,"kind":"return","host":"h1","at":1700,"who":"ann@host"}',
            "return h1 by ann@host",
        ),
    ],
)
def test_a_command_has_these_bytes_and_these_words(command: Command, value: str, said: str) -> None:
    assert encode(command).decode() == value
    assert decode(KEY, value.encode()) == command
    assert str(command) == said
    assert act_id(KEY) == "6f0c"


def test_acts_on_lists_stay_as_they_were() -> None:
    act = Act(ListKind.TOPICS, Change(("t",)), 1700, "ann@host")
    assert encode(act) == encode_act(act) == b'{"v":1,"kind":"topics","add":["t"],"at":1700,"who":"ann@host"}'
    assert decode(KEY, encode(act)) == act


@given(COMMANDS)
def test_a_command_is_read_back(command: Command) -> None:
    assert decode(KEY, encode(command)) == command


@pytest.mark.parametrize(
    "value",
    [
        b"x",
        b'{"v":1,"kind":"pause"}',
        b'{"v":1,"kind":["pause"],"at":1,"who":"a"}',
        b'{"v":1,"kind":"stop","at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","partition":1,"at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","topic":7,"at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","topic":"t","partition":-1,"at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","topic":"t","partition":true,"at":1,"who":"a"}',
        b'{"v":1,"kind":"offsets","topic":"t","partition":0,"at":1,"who":"a"}',
        b'{"v":1,"kind":"offsets","topic":"t","shift":[1,2,"x"],"at":1,"who":"a"}',
        b'{"v":1,"kind":"offsets","topic":"t","partition":0,"shift":[1,2],"at":1,"who":"a"}',
        b'{"v":1,"kind":"offsets","topic":"t","partition":0,"shift":[1,-2,"x"],"at":1,"who":"a"}',
        b'{"v":1,"kind":"offsets","topic":"t","partition":0,"shift":[1,2,null],"at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","at":1.5,"who":"a"}',
        b'{"v":1,"kind":"drain","at":1,"who":"a"}',
        b'{"v":1,"kind":"drain","host":"","at":1,"who":"a"}',
        b'{"v":1,"kind":"return","host":7,"at":1,"who":"a"}',
        b'{"v":1,"kind":"pause","at":1,"who":7}',
        b'{"v":1,"kind":"pause","at":100000000000000000000,"who":"a"}',
    ],
)
def test_garbage_is_no_command(value: bytes) -> None:
    with pytest.raises(CodecError) as caught:
        decode(KEY, value)
    assert type(caught.value) is CodecError


def test_what_only_a_newer_version_can_read_is_not_passed_over() -> None:
    with pytest.raises(ActNotUnderstood, match="upgrade this one"):
        decode(KEY, b'{"v":2,"kind":"pause","until":"noon"}')


@given(st.lists(COMMANDS, max_size=10), SCOPES)
def test_what_is_paused_is_what_was_not_resumed_since(commands: list[Command], scope: Scope) -> None:
    state = CommandState()
    for number, command in enumerate(commands):
        state.take(str(number), command)
    newest = {one.scope: one for one in commands if one.kind in (CommandKind.PAUSE, CommandKind.RESUME)}
    assert state.pauses == {s: one for s, one in newest.items() if one.kind is CommandKind.PAUSE}
    around = [Scope(), *([Scope(scope.topic)] if scope.topic else []), scope]
    assert pause_of(state.pauses, scope) == next((state.pauses[one] for one in around if one in state.pauses), None)
    assert len(state.restarts) == sum(one.kind is CommandKind.RESTART for one in commands)


@given(st.lists(COMMANDS, max_size=12))
def test_an_act_on_offsets_counts_while_the_pause_lasts_in_which_it_was_written(commands: list[Command]) -> None:
    state = CommandState()
    counting: dict[str, Command] = {}
    for number, command in enumerate(commands):
        state.take(str(number), command)
        counting = {act: one for act, one in counting.items() if pause_of(state.pauses, one.scope) is not None}
        if command.kind is CommandKind.OFFSETS and pause_of(state.pauses, command.scope) is not None:
            counting[str(number)] = command
        assert state.shifts == counting


# Answers


def test_answers_have_these_bytes_and_are_passed_over_by_others() -> None:
    taken = taken_record(FLOW, Answer("6f0c", "host pid 7", 1700))
    assert taken == (
        b'["srm-spark",{"flow":"A->B","acts":"taken"}]',
        b'{"v":1,"act":"6f0c","driver":"host pid 7","at":1700}',
    )
    done, declined = Answer("6f0d", "host pid 7", 1701), Answer("6f0e", "host pid 7", 1702, "it stands at 9")
    assert shifted_record(FLOW, done) == (
        b'["srm-spark",{"flow":"A->B","offsets":"6f0d"}]',
        b'{"v":1,"act":"6f0d","driver":"host pid 7","at":1701}',
    )
    assert shifted_record(FLOW, declined)[1] == (
        b'{"v":1,"act":"6f0e","driver":"host pid 7","at":1702,"declined":"it stands at 9"}'
    )
    answers = Answers(FLOW)
    for record in (taken, shifted_record(FLOW, done), shifted_record(FLOW, declined)):
        assert answers.take(*record)
        assert decode_progress_key(record[0]) is None, "a driver that does not know it passes it over"
    assert answers.taken == Answer("6f0c", "host pid 7", 1700)
    assert answers.shifted == {"6f0d": done, "6f0e": declined}
    answers.forget()
    assert answers.taken is None
    assert not answers.shifted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"x", b"{}"),
        (b"[]", b"{}"),
        (b'["srm-spark",7]', b"{}"),
        (b'["srm-spark",{"flow":"A->B"}]', b'{"v":1,"run":"clean"}'),
        (b'["srm-spark",{"flow":"A->C","acts":"taken"}]', b'{"v":1,"act":"x","driver":"d","at":1}'),
        (b'["other",{"flow":"A->B","acts":"taken"}]', b'{"v":1,"act":"x","driver":"d","at":1}'),
        (b'["srm-spark",{"flow":"A->B","acts":"taken"}]', None),
        (b'["srm-spark",{"flow":"A->B","acts":"taken"}]', b'{"v":2,"act":"x","driver":"d","at":1}'),
        (b'["srm-spark",{"flow":"A->B","acts":"taken"}]', b'{"v":1,"driver":"d","at":1}'),
        (b'["srm-spark",{"flow":"A->B","offsets":"x"}]', b'{"v":1,"driver":"d","at":1}'),
    ],
)
def test_what_is_no_answer_says_nothing(key: bytes | None, value: bytes | None) -> None:
    answers = Answers(FLOW)
    assert not answers.take(key, value)
    assert answers.taken is None


def test_control_characters_of_a_command_are_told_escaped() -> None:
    command = Command(CommandKind.PAUSE, Scope("t\x00"), 1, "ann\n", "\x1b[2J")
    assert str(command) == r"pause t\x00 by ann\n (\x1b[2J)"
    assert command.held == r"paused by ann\n: \x1b[2J"


def test_a_host_is_drained_until_it_is_returned() -> None:
    state = CommandState()
    first, second = (
        Command(CommandKind.DRAIN, Scope(), at, "ann@host", host=host) for at, host in ((1, "a"), (2, "b"))
    )
    for number, act in enumerate([first, second, Command(CommandKind.RETURN, Scope(), 3, "bob@host", host="a")]):
        state.take(str(number), act)
    assert state.drained == {"b": second}
