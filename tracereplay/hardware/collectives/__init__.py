"""Collectives on a topology: in, a fabric, a collective, its size; out, its time, how it is run, the bytes on every link."""
