"""What of a model fits where, and how fast it is read from there: tables, capacities, caches, placements."""
