"""Fitting few coefficients to many measurements: in, residuals as a function of them and a start; out, the best coefficients.

Levenberg-Marquardt (Marquardt 1963) with a numerical Jacobian and Huber's weights, so that outliers count by their size, not
its square.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEP = 1e-4
_ROUNDS, _TRIES = 80, 8


def least_squares(residuals: Callable[[Floats], Floats], start: Floats, bend: float) -> Floats:
    """The coefficients for which Huber's loss of the residuals is least; beyond ``bend`` a residual counts linearly."""
    at, damping = start.copy(), 1e-2
    here = residuals(at)
    for _ in range(_ROUNDS):
        slope = np.stack([(residuals(at + step) - here) / _STEP for step in _STEP * np.eye(len(at))], axis=1)
        weights = 1 / np.maximum(1.0, np.abs(here) / bend)
        curvature, gradient = slope.T @ (slope * weights[:, None]), slope.T @ (here * weights)
        better = None
        for _ in range(_TRIES):
            moved = at - np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-12), gradient)
            there = residuals(moved)
            if _loss(there, bend) < _loss(here, bend):
                better = (moved, there)
                break
            damping *= 4
        if better is None:
            break
        gain = 1 - _loss(better[1], bend) / _loss(here, bend)
        (at, here), damping = better, max(damping / 3, 1e-9)
        if gain < 1e-7:
            break
    return at


def _loss(residuals: Floats, bend: float) -> float:
    size = np.abs(residuals)
    loss = np.where(size < bend, residuals**2 / 2, bend * (size - bend / 2))
    return float(loss.sum()) if np.isfinite(loss).all() else float("inf")
