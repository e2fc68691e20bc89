from tracereplay.replay.places import places


def test_without_hosts_ranks_fill_nodes_in_the_order_of_their_numbers() -> None:
    found = places(range(10), {}, 8)

    assert [found.endpoint[rank] for rank in range(10)] == list(range(10))
    assert found.nodes == 2


def test_ranks_of_two_hosts_stand_on_two_nodes() -> None:
    found = places([0, 1], {0: "a", 1: "b"}, 8)

    assert (dict(found.endpoint), found.nodes) == ({0: 0, 1: 8}, 2)


def test_a_host_with_more_ranks_than_a_node_takes_goes_on_to_the_next() -> None:
    found = places([0, 1, 2, 3], {0: "a", 2: "a", 1: "b", 3: "a"}, 2)

    assert dict(found.endpoint) == {0: 0, 2: 1, 3: 2, 1: 4}
    assert found.nodes == 3


def test_ranks_of_unknown_hosts_fill_what_is_free() -> None:
    found = places([0, 1, 2, 3], {0: "a", 3: "b"}, 2)

    assert dict(found.endpoint) == {0: 0, 3: 2, 1: 1, 2: 3}
    assert found.nodes == 2
