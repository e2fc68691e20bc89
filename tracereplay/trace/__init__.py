"""Files written by profilers become event tables: in, trace files; out, EventTable and Job."""
