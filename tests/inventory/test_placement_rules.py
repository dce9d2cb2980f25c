"""What holds for every box: a subset of the candidates, the right count, always the same."""

from __future__ import annotations

import time
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.errors import PlacementError
from inventory.hardware import Gpu, Hardware, Link
from inventory.placement import Chosen, place
from inventory.placement.candidates import Terms, objection
from inventory.service import Placement
from tests.inventory.boxes import GIB, box, gpu, links, node, process, uuid

NO_WORD = Unknown(unknown="[N/A]")
OURS = "ours.service"
UUIDS = [uuid(n) for n in range(9)]
NODES: list[int | Unknown] = [0, 0, 1, 1, 2, NO_WORD]
SOCKETS: list[int | Unknown] = [0, 1, NO_WORD]


@st.composite
def cards(draw: st.DrawFn, n: int) -> Gpu:
    return gpu(
        n,
        draw(st.sampled_from(NODES)),
        name=draw(st.sampled_from(["A", "A", "A", "B", NO_WORD])),
        health=draw(st.sampled_from(["ok"] * 8 + ["lost", "reset-required"])),
        mig_enabled=draw(st.sampled_from([False] * 8 + [True, NO_WORD])),
        memory_total=draw(st.sampled_from([96 * GIB, 96 * GIB, NO_WORD])),
        memory_used=draw(st.sampled_from([0, 0, 0, 90 * GIB, NO_WORD])),
        memory_free=draw(st.sampled_from([95 * GIB, 95 * GIB, 5 * GIB, NO_WORD])),
        pcie_width_current=draw(st.sampled_from([16, 8, NO_WORD])),
        reset_pending=draw(st.sampled_from([False, True, NO_WORD])),
    )


@st.composite
def hardware(draw: st.DrawFn) -> Hardware:
    count = draw(st.integers(1, 8))
    gpus = [draw(cards(n)) for n in range(count)]
    made = tuple(
        Link(
            a=link.a,
            b=link.b,
            kind=draw(st.sampled_from(["NV18", "NV18", "PIX", "NODE", "SYS", NO_WORD])),
            p2p=draw(st.sampled_from([True, True, False, NO_WORD])),
        )
        for link in links(gpus)
    )
    told = draw(
        st.lists(
            st.builds(
                process,
                st.integers(0, count),
                st.sampled_from([OURS, OURS, "theirs.service", None, NO_WORD]),
                st.sampled_from([90 * GIB, NO_WORD]),
            ),
            max_size=2,
        )
    )
    return box(
        gpus,
        made,
        [node(0, 0), node(1, draw(st.sampled_from(SOCKETS))), node(2, 1)],
        processes=draw(st.sampled_from([tuple(told), tuple(told), NO_WORD])),
        numactl=draw(st.sampled_from([True, False, NO_WORD])),
        bindable_nodes=draw(st.sampled_from([(0, 1, 2), (0,), NO_WORD])),
        virtual_machine=draw(st.sampled_from([True, False, NO_WORD])),
    )


wishes = st.builds(
    Placement,
    gpus=st.integers(1, 8),
    within=st.sampled_from(["numa-node", "socket", "nvlink", "host"]),
    exclude=st.sampled_from([(), (uuid(0),)]),
)
needs = st.sampled_from([None, 50 * GIB])


def outcome(
    wish: Placement, box_: Hardware, need: int | None, keep: tuple[str, ...] = ()
) -> object:
    try:
        return place(wish, box_, own_units=[OURS], memory_needed=need, keep=keep)
    except PlacementError as error:
        return error.message


@settings(max_examples=100, deadline=None)
@given(wishes, hardware(), needs, st.randoms(use_true_random=False))
def test_a_choice_is_sound_and_the_same_in_any_order(
    wish: Placement, found: Hardware, need: int | None, random: Random
) -> None:
    first = outcome(wish, found, need)
    shuffled = found.model_copy(
        update={
            "gpus": tuple(random.sample(found.gpus, len(found.gpus))),
            "links": tuple(
                Link(a=link.b, b=link.a, kind=link.kind, p2p=link.p2p)
                for link in random.sample(found.links, len(found.links))
            ),
            "numa_nodes": tuple(random.sample(found.numa_nodes, len(found.numa_nodes))),
        }
    )
    assert outcome(wish, shuffled, need) == first
    if not isinstance(first, Chosen):
        return
    terms = Terms(frozenset({OURS}), need, wish.exclude)
    free = [card.uuid for card in found.gpus if not objection(card, found, terms)]
    assert len(first.gpus) == wish.gpus
    assert set(first.gpus) <= set(free)
    assert list(first.gpus) == sorted(first.gpus)  # these bus ids rise with the UUID
    assert {one.gpu for one in first.rejected} == {card.uuid for card in found.gpus} - set(
        first.gpus
    )
    assert outcome(wish, found, need, first.gpus) == first
    if wish.within == "nvlink" and wish.gpus > 1:
        assert first.closeness == "nvlink"
    if wish.within in ("numa-node", "socket") and wish.gpus > 1:
        assert first.closeness != "host"
    if first.numa_bind_nodes is not None:
        assert first.numa_bind_nodes == first.numa_nodes
    assert Chosen.model_validate(first.to_json()) == first


@given(
    wishes, hardware(), needs, st.lists(st.sampled_from([uuid(n) for n in range(9)]), max_size=8)
)
def test_what_is_kept_stays_kept(
    wish: Placement, found: Hardware, need: int | None, keep: list[str]
) -> None:
    first = outcome(wish, found, need, tuple(keep))
    if isinstance(first, Chosen):
        assert outcome(wish, found, need, first.gpus) in (
            first,
            first.model_copy(update={"why": first.why[:-1]}),  # without why it was not kept
        )


def test_large_boxes_are_quick() -> None:
    gpus = [gpu(n, n // 8) for n in range(16)]
    started = time.perf_counter()
    chosen = place(Placement(gpus=8), box(gpus))
    assert chosen.gpus == tuple(uuid(n) for n in range(8))
    many = [gpu(n, n // 32) for n in range(64)]
    chosen = place(Placement(gpus=16), box(many))
    assert chosen.gpus == tuple(uuid(n) for n in range(16))
    assert time.perf_counter() - started < 5  # a bound against 10^14 groups, not a measurement
