"""Hardware models: in, operators, bytes and knobs; out, factors on durations. Knows no traces."""
