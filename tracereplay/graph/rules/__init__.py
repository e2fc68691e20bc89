"""One file a reason why one task waits for another."""
