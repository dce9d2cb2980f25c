"""One set of limits: what the fit prints, the unit has and the switch waits."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.catalogue import CATALOGUE, MINIMAX_M25
from inventory.engine import Vllm
from inventory.fit.fit import Fit, fit
from inventory.fit.fitted_service import completed
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.known import known_architecture
from inventory.fit.settings.card import parse_cards
from inventory.fit.settings.settings_of import settings_of
from inventory.placement import Chosen
from inventory.service import Model, Placement, Service
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile
from inventory.start_limits import start_limits
from operations.switch_request import switch_request
from operations.unit_text import unit_text
from tests.inventory.fit.data import KIMI_NVFP4, LLAMA_8B, MINIMAX

CONFIG = SnapshotFile(path="config.json", size=10, digest=f"git-sha1:{'0' * 40}")
LISTING = Snapshot(repo="o/n", revision="main", commit="a" * 40, files=(CONFIG,))
SNAPSHOT = LocalSnapshot(LISTING, "/m")
SECONDS = st.none() | st.integers(1, 86_400)
MODELS = st.sampled_from([MINIMAX, KIMI_NVFP4, read_architecture(LLAMA_8B), read_architecture({})])


@st.composite
def services(draw: st.DrawFn) -> Service:
    ways = draw(st.sampled_from([(1, 1), (2, 1), (4, 1), (4, 2), (8, 1)]))
    engine = Vllm(
        version=draw(st.sampled_from(["0.19.0", "0.32.0"])),
        data_parallel_size=ways[1],
        enforce_eager=draw(st.booleans()),
        max_num_seqs=draw(st.none() | st.integers(1, 512)),
    )
    return Service(
        name="x",
        model=Model(repo="o/n"),
        engine=engine,
        placement=Placement(gpus=ways[0]),
        load_seconds=draw(SECONDS),
    )


def numbers_of_unit(service: Service) -> tuple[int, ...]:
    text = unit_text(service, folder="/m", gpu_environment={})
    names = ("StartLimitIntervalSec", "StartLimitBurst", "TimeoutStopSec", "RestartSec")
    return tuple(int(re.findall(rf"^{name}=(\d+)$", text, re.MULTILINE)[0]) for name in names)


def wait_of_switch(service: Service) -> int:
    chosen = Chosen(
        gpus=(),
        numa_nodes=(),
        closeness="cpu",
        why=(),
        environment={},
        numa_bind_nodes=None,
        numa_bind_reason="",
    )
    request = switch_request(
        service, [service], placement=chosen, snapshot=SNAPSHOT, driver=None, rollback=True
    )
    assert request.replaces[0].timeout == request.start_seconds
    return int(request.start_seconds)


def printed(answer: Fit) -> tuple[int, ...]:
    """Interval, burst, seconds to stop and to wait, as people read them."""
    found = re.search(
        r"wait (\d+) s; StartLimitIntervalSec=(\d+) StartLimitBurst=(\d+) TimeoutStopSec=(\d+)",
        answer.explain(),
    )
    assert found is not None
    wait, interval, burst, stop = (int(number) for number in found.groups())
    return interval, burst, stop, wait


@settings(max_examples=60, deadline=None)
@given(services(), MODELS, st.sampled_from(["RTX PRO 6000", "H200", "L4"]))
def test_fit_unit_and_switch_say_the_same(
    service: Service, architecture: Architecture, card: str
) -> None:
    cards = parse_cards(f'{service.placement.gpus}x"{card}"')
    whole, _ = completed(service, architecture, cards)
    *unit, _restart = numbers_of_unit(whole)
    asked, answer = (fit(architecture, settings_of(one), cards) for one in (service, whole))
    if isinstance(answer.derived.load, Unknown):
        assert whole.load_seconds is None
        assert tuple(unit) == (3294, 3, 60)
        return
    # Asked before or after the service was completed: the same numbers.
    assert printed(asked) == printed(answer) == (*unit, wait_of_switch(whole))
    if service.load_seconds is not None:
        assert wait_of_switch(whole) == 2 * service.load_seconds
    assert completed(whole, architecture, cards)[0] == whole


def test_the_catalogue_says_its_own_load_times() -> None:
    for service in CATALOGUE:
        cards = parse_cards(f'{service.placement.gpus}x"RTX PRO 6000"')
        answer = fit(known_architecture(service.model.repo), settings_of(service), cards)
        assert printed(answer)[:3] == numbers_of_unit(service)[:3]
        assert printed(answer)[3] == wait_of_switch(service)


def test_the_numbers_of_minimax() -> None:
    assert (*numbers_of_unit(MINIMAX_M25), wait_of_switch(MINIMAX_M25)) == (1134, 3, 60, 15, 600)


@given(SECONDS)
def test_three_failing_loads_fall_into_the_interval(seconds: int | None) -> None:
    limits = start_limits(seconds)
    assert limits.load == (seconds or 900)
    assert limits.interval > limits.burst * (limits.load + limits.restart)
    assert limits.patience == 2 * limits.load
