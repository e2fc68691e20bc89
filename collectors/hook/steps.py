"""Where a training step ends: in, the optimizers in the order in which they step; out, whether a step has ended with one.

Theory of operation. A job with one optimizer ends a step with each of its calls. One with several (dense and sparse,
generator and discriminator) calls them in turn, and all of that is one step: the first optimizer that is seen again shows
that a round is over, and the one before it was the last of the round. From then on a step ends with that last one.

    calls        A  B  A  B  A  B
    step ends          .  *     *      '.' the round is known from here on, too late to mark its end

So the first step that can be marked is number 2. Where the turns change (an optimizer is dropped, another comes first) a
step has an optimizer twice; the round is learnt again from there. An optimizer that steps every few rounds only belongs to
the step it falls into.
"""


class StepFinder:
    """Learns the round of a job's optimizers; ``seen`` counts the steps that have ended."""

    def __init__(self) -> None:
        self.seen = 0
        self._last: int | None = None
        self._since: list[int] = []

    def stepped(self, optimizer: int) -> bool:
        """Take note that an optimizer, named by its ``id``, has stepped; whether a step ends here and can be marked."""
        if optimizer in self._since:
            self._last = self._since[-1]
            self._since.clear()
            self.seen += 1
        self._since.append(optimizer)
        if optimizer != self._last:
            return False
        self._since.clear()
        self.seen += 1
        return True
