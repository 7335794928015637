"""What every assignor promises, whatever the group."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from analytics.assignors import ASSIGNORS, assign
from analytics.assignors.group import (
    Assignment,
    Group,
    Member,
    bucket,
    measure,
    sharing,
    string_hash,
)
from analytics.assignors.in_member_order import desired_counts, desired_sharing
from tests.support.examples import examples

TOPICS = ("orders", "parcels", "returns", "späte-züge")
EXCLUSIVE = [name for name in ASSIGNORS if name != "share-simple"]
COMPLETE = [name for name in EXCLUSIVE if name != "cooperative-sticky"]
EVEN = ["roundrobin", "sticky", "server-uniform"]
STICKY = ["sticky", "server-uniform"]
RACKS = st.sampled_from(["a", "b", "c"])


@st.composite
def groups(draw: st.DrawFn, *, equal: bool | None = None, shared: bool = False) -> Group:
    """Return a group whose members own partitions they may have lost the subscription of."""
    topics = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1))
    ids = draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8, unique=True))
    if equal is None:
        equal = draw(st.booleans())
    subscriptions = st.sets(st.sampled_from(sorted(topics)), min_size=1)
    together = draw(subscriptions)
    everything = [(topic, p) for topic, count in topics.items() for p in range(count)]
    owners = draw(
        st.lists(
            st.sets(st.sampled_from(ids), max_size=3 if shared else 1),
            min_size=len(everything),
            max_size=len(everything),
        )
    )
    members = []
    for name in ids:
        current: dict[str, tuple[int, ...]] = {}
        for (topic, partition), holders in zip(everything, owners, strict=True):
            if name in holders:
                current[topic] = (*current.get(topic, ()), partition)
        subscription = frozenset(together if equal else draw(subscriptions))
        instance = draw(st.none() | st.just(f"instance-{name}"))
        rack = draw(st.none() | RACKS)
        members.append(Member(name, subscription, current, instance, rack))
    racks = {
        topic: tuple(frozenset(draw(st.sets(RACKS, max_size=2))) for _ in range(min(count, 3)))
        for topic, count in topics.items()
    }
    return Group(topics, tuple(members), replica_racks=draw(st.sampled_from([None, racks])))


def sizes_of(group: Group, assignment: Assignment) -> list[int]:
    return list(measure(group, assignment).sizes.values())


def held(assignment: Assignment, member: Member, topic: str) -> int:
    return len(assignment.get(member.id, {}).get(topic, ()))


@examples(30, 100, group=groups(), name=st.sampled_from(list(ASSIGNORS)))
def test_nobody_gets_what_it_does_not_want_or_what_is_not_there(group: Group, name: str) -> None:
    assignment = assign(name, group)
    wants = {member.id: member.subscription for member in group.members}
    for member, topics in assignment.items():
        assert topics.keys() <= wants[member]
        for topic, partitions in topics.items():
            assert partitions == sorted(set(partitions))
            assert set(partitions) <= set(range(group.topics[topic]))


@examples(30, 100, group=groups(), name=st.sampled_from(COMPLETE))
def test_every_partition_has_one_reader(group: Group, name: str) -> None:
    shared = sharing(assign(name, group))
    assert set(shared.values()) <= {1}
    assert len(shared) == sum(group.topics[topic] for topic in group.subscribed_topics())


@examples(30, 100, group=groups(), name=st.sampled_from(list(ASSIGNORS)))
def test_the_order_of_members_does_not_matter(group: Group, name: str) -> None:
    """Unless they share a bucket of Java's maps: there they keep the order they came in."""
    members = tuple({bucket(string_hash(m.id), 16): m for m in group.members}.values())
    straight = replace(group, members=members)
    turned = replace(group, members=members[::-1])
    assert assign(name, straight) == assign(name, turned)


@examples(30, 100, group=groups(equal=True), name=st.sampled_from(EVEN))
def test_equal_subscriptions_give_sizes_one_apart_at_most(group: Group, name: str) -> None:
    sizes = sizes_of(group, assign(name, group))
    assert max(sizes) - min(sizes) <= 1


@examples(30, 100, group=groups(), name=st.sampled_from(["range", "server-range"]))
def test_range_gives_sizes_one_apart_at_most_within_a_topic(group: Group, name: str) -> None:
    assignment = assign(name, group)
    for topic in group.subscribed_topics():
        sizes = [held(assignment, m, topic) for m in group.members if topic in m.subscription]
        assert max(sizes) - min(sizes) <= 1


@examples(30, 100, group=groups(), name=st.sampled_from(["sticky"]))
def test_no_partition_of_sticky_could_go_to_somebody_with_two_less(group: Group, name: str) -> None:
    assignment = assign(name, group)
    before = sizes_of(group, {m.id: wanted(group, m) for m in group.members})
    sizes = measure(group, assignment).sizes
    uneven = [
        (topic, owner.id, other.id)
        for topic in group.subscribed_topics()
        for owner in group.members
        for other in group.members
        if held(assignment, owner, topic)
        and topic in other.subscription
        and sizes[owner.id] - sizes[other.id] > 1
    ]
    # Kafka goes back to what there was when the moves it tried did not pay.
    assert not uneven or any(before)


@examples(30, 100, group=groups(equal=True), name=st.sampled_from(STICKY))
def test_equal_subscriptions_move_no_more_than_the_sizes_ask_for(group: Group, name: str) -> None:
    if name == "sticky":
        # Racks are worth moves to the client.
        group = Group(group.topics, group.members)
    assignment = assign(name, group)
    for member in group.members:
        owned = wanted(group, member)
        now = assignment[member.id]
        kept = sum(len(set(held) & set(now.get(topic, ()))) for topic, held in owned.items())
        size = sum(map(len, now.values()))
        assert kept == min(size, sum(map(len, owned.values())))


@examples(30, 100, group=groups(), name=st.sampled_from(STICKY))
def test_assigning_again_moves_nothing(group: Group, name: str) -> None:
    """Without racks: for them the client takes partitions away again and again."""
    settled = assign(name, Group(group.topics, group.members))
    members = tuple(
        Member(m.id, m.subscription, {t: tuple(ps) for t, ps in settled.get(m.id, {}).items()})
        for m in group.members
    )
    again = Group(group.topics, members)
    assert measure(again, assign(name, again)).moved == 0


@examples(30, 100, group=groups())
def test_cooperative_sticky_aims_where_sticky_does_and_waits_for_owners(group: Group) -> None:
    target, now = assign("sticky", group), assign("cooperative-sticky", group)
    owner = {
        (topic, p): member.id
        for member in group.members
        for topic, partitions in group.owned(member).items()
        for p in partitions
    }
    for member, topics in target.items():
        for topic, partitions in topics.items():
            gets = now[member].get(topic, [])
            assert set(gets) <= set(partitions)
            for partition in partitions:
                others = owner.get((topic, partition), member) != member
                assert (partition in gets) is not others


@examples(30, 100, group=groups(equal=True))
def test_a_fresh_share_group_shares_evenly(group: Group) -> None:
    members = tuple(Member(member.id, member.subscription) for member in group.members)
    assignment = assign("share-simple", Group(group.topics, members))
    partitions = sum(group.topics[topic] for topic in group.subscribed_topics())
    shared = sharing(assignment)
    assert len(shared) == partitions
    assert set(shared.values()) <= {desired_sharing(len(members), partitions)}
    sizes = sizes_of(group, assignment)
    assert sorted(sizes) == sorted(desired_counts(len(members), partitions))
    assert max(sizes) - min(sizes) <= 1


@examples(30, 100, group=groups(equal=True, shared=True))
def test_a_share_group_reads_everything_and_nobody_too_much(group: Group) -> None:
    """A partition may lack a member: those that have room may all have it already."""
    assignment = assign("share-simple", group)
    partitions = sum(group.topics[topic] for topic in group.subscribed_topics())
    shared = sharing(assignment)
    assert len(shared) == partitions
    assert max(shared.values(), default=0) <= desired_sharing(len(group.members), partitions)
    largest = max(desired_counts(len(group.members), partitions))
    assert max(sizes_of(group, assignment)) <= largest


@examples(30, 100, group=groups(shared=True), data=st.data())
def test_share_groups_get_only_what_is_assignable(group: Group, data: st.DataObject) -> None:
    assignable = {
        topic: frozenset(data.draw(st.sets(st.integers(0, count - 1)))) if count else frozenset()
        for topic, count in group.topics.items()
    }
    some = Group(group.topics, group.members, assignable)
    wanted_topics = frozenset[str]().union(*(m.subscription for m in group.members))
    assert sharing(assign("share-simple", some)).keys() == {
        (topic, partition) for topic in wanted_topics for partition in assignable[topic]
    }


def wanted(group: Group, member: Member) -> dict[str, list[int]]:
    """Return what the member owns of what it wants."""
    return {t: ps for t, ps in group.owned(member).items() if t in member.subscription}
