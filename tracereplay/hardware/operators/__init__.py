"""Operators on other hardware: in, work (flops, bytes, shape) and data sheets; out, times with the errors known of them."""
