from collections.abc import Iterator

import pytest

from tracereplay.trace.scan import Scanner, split_events

FIRST = b'{"ph":"X","name":"a}],[{\\"b","args":{"x":[1,{"y":2}]}}'
SECOND = b'{"ph": "X", "name": "ends in a backslash \\\\", "ts": 1}'
THIRD = '{"name":"µs"}'.encode()
DOCUMENT = b'{"schemaVersion": 1, "traceEvents" : [\n' + FIRST + b",\n" + SECOND + b" , " + THIRD + b'\n], "rank": 5}\n'


def scanned(*blocks: bytes) -> tuple[Scanner, list[bytes]]:
    """The scanner after the last chunk, and the elements."""
    scanner = Scanner(iter(blocks))
    return scanner, [c.text[a:b] for c in scanner.chunks() for a, b in zip(c.starts, c.ends, strict=True)]


@pytest.mark.parametrize("cut", range(len(DOCUMENT) + 1))
def test_events_are_the_same_wherever_a_block_ends(cut: int) -> None:
    scanner, elements = scanned(*(part for part in (DOCUMENT[:cut], DOCUMENT[cut:]) if part))

    assert elements == [FIRST, SECOND, THIRD]
    assert (scanner.found, scanner.closed, scanner.bare, scanner.rest) == (True, True, False, b"")
    assert (scanner.head, scanner.tail) == (b'{"schemaVersion": 1, "traceEvents" : [', b', "rank": 5}\n')
    assert scanner.tail_offset == DOCUMENT.index(b', "rank"')


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_events_are_the_same_in_blocks_of_a_few_bytes(size: int) -> None:
    _, elements = scanned(*(DOCUMENT[i : i + size] for i in range(0, len(DOCUMENT), size)))

    assert elements == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize("cut", range(len(DOCUMENT)))
def test_a_document_cut_anywhere_gives_its_whole_elements_and_the_rest(cut: int) -> None:
    scanner, elements = scanned(DOCUMENT[:cut])

    assert elements == [e for e in (FIRST, SECOND, THIRD) if DOCUMENT.index(e) + len(e) <= cut]
    assert DOCUMENT[:cut].endswith(scanner.rest)


def test_chunks_know_their_place_in_the_document() -> None:
    cut = DOCUMENT.index(SECOND) + 4
    chunks = list(Scanner(iter([DOCUMENT[:cut], DOCUMENT[cut:]])).chunks())

    places = [c.offset + int(start) for c in chunks for start in c.starts]
    assert places == [DOCUMENT.index(FIRST), DOCUMENT.index(SECOND), DOCUMENT.index(THIRD)]


def test_a_chunks_array_is_its_elements_as_one_json_array() -> None:
    (chunk,) = Scanner(iter([b'[ {"a":1} , {"b":2} ]'])).chunks()

    assert (chunk.array, chunk.doubtful) == (b'[{"a":1} , {"b":2}]', False)


@pytest.mark.parametrize(
    ("text", "elements", "closed"),
    [
        (b'[{"a":1},{"b":2}]', [b'{"a":1}', b'{"b":2}'], True),
        (b' \n[{"a":1},\n', [b'{"a":1}'], False),
        (b'[{"a":1}', [b'{"a":1}'], False),
        (b"[", [], False),
        (b"[]", [], True),
        (b"[1, 2]", [], True),
    ],
)
def test_the_document_may_be_the_array_itself(text: bytes, elements: list[bytes], closed: bool) -> None:
    scanner, found = scanned(text)

    assert (found, scanner.bare, scanner.closed, scanner.head) == (elements, True, closed, b"")


def test_white_space_may_fill_whole_blocks_before_the_array() -> None:
    _, found = scanned(b" \n", b"\t", b' [{"a":1}]')

    assert found == [b'{"a":1}']


@pytest.mark.parametrize("blocks", [[], [b'{"a": 1}'], [b'{"trace', b'Evil": []}']])
def test_without_an_event_array_all_text_is_the_head(blocks: list[bytes]) -> None:
    scanner, found = scanned(*blocks)

    assert (found, scanner.found, scanner.head) == ([], False, b"".join(blocks))


def test_an_unfinished_element_is_the_rest_with_its_place() -> None:
    scanner, found = scanned(b'[{"a":1},{"b"', b':2,"c"')

    assert (found, scanner.rest, scanner.rest_offset, scanner.closed) == ([b'{"a":1}'], b'{"b":2,"c"', 9, False)


def test_a_quote_that_does_not_pair_leaves_the_rest_of_the_text() -> None:
    scanner, found = scanned(b'[{"name":"a"},{"name":"say "hi"},{"name":"c"}]')

    assert found == [b'{"name":"a"}']
    assert scanner.rest == b'{"name":"say "hi"},{"name":"c"}]'


def test_an_element_that_grows_too_long_is_cut_where_events_begin() -> None:
    def blocks() -> Iterator[bytes]:
        yield b'[{"name":"say "hi"},'
        yield from [b'{"name":"c", "ts": 1},' + b" " * (1 << 18)] * 40
        yield b'{"name":"d"}]'

    chunks = list(Scanner(blocks()).chunks())

    doubtful = [c.text[a:b].strip(b", ") for c in chunks if c.doubtful for a, b in zip(c.starts, c.ends, strict=True)]
    assert doubtful[0] == b'{"name":"say "hi"}'
    assert doubtful[1:] == [b'{"name":"c", "ts": 1}'] * len(doubtful[1:])
    assert len(doubtful) > 30


def test_text_is_cut_where_an_event_begins_and_not_within_its_args() -> None:
    text = b'{"ph":"X","args":{"a":{"b":1}, "c":{"d":2}}} , {"name":"x"},\n{"ts":1}, '

    assert split_events(text) == [b'{"ph":"X","args":{"a":{"b":1}, "c":{"d":2}}}', b'{"name":"x"}', b'{"ts":1}']


def test_nothing_but_separators_is_no_event() -> None:
    assert split_events(b" ,\n") == []
