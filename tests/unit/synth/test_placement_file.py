from pathlib import Path

import pytest

from tracereplay.errors import NotComparableError, UsageError
from tracereplay.hardware.memory.placement import Tier
from tracereplay.synth.architecture import parse_architecture
from tracereplay.synth.placement_file import ChosenPlacement, read_placement
from tracereplay.synth.recorded import recorded_tiers
from tracereplay.synth.sharding import plan_on
from tracereplay.trace.embedding import RecordedLookup

ARCH = parse_architecture("3-4/1/100,100,50,6")
BASE = plan_on(ARCH, 2, (0, 0, 1, None))


def read(folder: Path, body: str) -> ChosenPlacement:
    path = folder / "placement.toml"
    path.write_text(body)
    return read_placement(path, ARCH, BASE)


def test_entries_change_what_they_name_and_the_last_one_wins(tmp_path: Path) -> None:
    chosen = read(
        tmp_path,
        """
        schema = "tracereplay/placement/1"
        load_factor = 0.5
        [[table]]
        name = "t*"
        tier = "cached"
        [[table]]
        name = "t[12]"
        tier = "host"
        sharding = "row-wise"
        [[table]]
        name = "t3"
        rank = 1
        """,
    )

    assert [(p.sharding.value, p.rank) for p in chosen.plan.tables] == [
        ("table-wise", 0),
        ("row-wise", None),
        ("row-wise", None),
        ("table-wise", 1),
    ]
    assert chosen.tiers == {"t0": Tier.CACHED, "t1": Tier.HOST, "t2": Tier.HOST, "t3": Tier.HBM}
    assert chosen.load_factor == 0.5


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    chosen = read(tmp_path, 'schema = "tracereplay/placement/1"')

    assert chosen.plan == BASE
    assert set(chosen.tiers.values()) == {Tier.HBM}


def test_what_is_of_recorded_jobs_has_no_place_beside_an_architecture(tmp_path: Path) -> None:
    for body in ('[[table]]\nname = "t0"\nrows = 5', "[besides]\nactivations = 5"):
        with pytest.raises(UsageError, match="are of a recorded job"):
            read(tmp_path, f'schema = "tracereplay/placement/1"\n{body}')


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "schema"),
        ('schema = "tracereplay/placement/2"', "schema"),
        ("a = ", "not TOML"),
        ('schema = "tracereplay/placement/1"\nrows = 3', "rows"),
        ('schema = "tracereplay/placement/1"\n[[table]]\nname = "x9"', "no table 'x9'"),
        ('schema = "tracereplay/placement/1"\n[[table]]\nname = "t0"\ntier = "tape"', "tier"),
        ('schema = "tracereplay/placement/1"\n[[table]]\nname = "t0"\nrank = 7', "the ranks are 0 to 1"),
        ('schema = "tracereplay/placement/1"\n[[table]]\nname = "t0"\nrank = 0\nsharding = "row-wise"', "leave out rank"),
        ('schema = "tracereplay/placement/1"\nload_factor = 2', "load_factor"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, body)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the placement file"):
        read_placement(tmp_path / "none.toml", ARCH, BASE)


def lookup(device: int, host: int = 0, cached: int = 0, *, replicated: bool = False) -> RecordedLookup:
    return RecordedLookup("fbgemm", "sgd", replicated, device, host, cached, 1, 5, 5, None, None)


def test_recorded_lookups_give_the_tier_of_each_rank_s_tables() -> None:
    recorded = {0: [lookup(0, 800, 40), lookup(24, replicated=True)], 1: [lookup(200)]}

    assert recorded_tiers(BASE, recorded) == {"t0": Tier.CACHED, "t1": Tier.CACHED, "t2": Tier.HBM}


def test_several_memories_of_one_rank_and_another_size_are_not_guessed_at() -> None:
    with pytest.raises(NotComparableError, match="several memories"):
        recorded_tiers(BASE, {0: [lookup(400), lookup(0, 400)]})
    with pytest.raises(NotComparableError, match="several memories"):
        recorded_tiers(BASE, {0: [lookup(400, 400)]})
    with pytest.raises(NotComparableError, match="rank 1 had 10 weights"):
        recorded_tiers(BASE, {1: [lookup(10)]})
