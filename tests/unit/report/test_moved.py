from tracereplay.replay.sharing import Lost
from tracereplay.report.moved import shared_line


def test_what_is_lost_to_sharing_is_a_sentence_with_the_busiest_link() -> None:
    found = Lost(2, 20_000, 10_000, 5_000, "nic0>rail0", 0.25)

    assert shared_line(found) == (
        "2 transfers overlap on links and lose 20.0 µs to sharing them, the step 10.0 µs; 5.0 µs of sharing in the recording "
        "is taken out; the busiest link is nic0>rail0, 25.0 % of the time"
    )


def test_nothing_lost_is_said_too() -> None:
    assert shared_line(Lost(0, 0, 0, 0, None, None)) == "no transfers slow each other down on a link"
