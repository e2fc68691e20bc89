"""The placement that a job had: in, the FBGEMM lookups of its ranks; out, the tier of each table, checked against the plan."""

from collections.abc import Mapping, Sequence

from tracereplay.errors import NotComparableError
from tracereplay.hardware.memory.placement import Tier
from tracereplay.hardware.memory.tables import Sharding
from tracereplay.synth.sharding import Plan
from tracereplay.trace.embedding import RecordedLookup


def recorded_tiers(plan: Plan, lookups: Mapping[int, Sequence[RecordedLookup]]) -> dict[str, Tier]:
    """The tier of every table-wise table of the ranks in ``lookups``.

    Raises:
        NotComparableError: a rank's weights are not those of the plan, or stand in several memories, so that which table stands
            where is not recorded.
    """
    tiers: dict[str, Tier] = {}
    for rank, found in sorted(lookups.items()):
        own = [lookup for lookup in found if not lookup.replicated]
        tables = plan.of(Sharding.TABLE_WISE, rank)
        recorded = sum(lookup.device_elements + lookup.host_elements for lookup in own)
        planned = sum(table.rows * table.dim for table in tables)
        if recorded != planned:
            raise NotComparableError(
                f"rank {rank} had {recorded:,} weights in its tables, the plan gives it {planned:,}",
                hint="give the architecture and the sharding that were recorded",
            )
        places = {lookup.tier for lookup in own}
        if len(places) > 1 or None in places:
            raise NotComparableError(
                f"the tables of rank {rank} stood in several memories, and which stood where is not recorded",
                hint="write a placement file",
            )
        tiers |= {table.name: Tier(place) for table in tables for place in places if place is not None}
    return tiers
