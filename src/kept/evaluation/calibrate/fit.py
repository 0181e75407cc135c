"""The relevance curves under which judged pairs are most likely."""

from dataclasses import dataclass

import numpy as np

from kept._runtime import needing
from kept.errors import InputError
from kept.kernel.calibration.curves import probability
from kept.kernel.signals import Floats

# At SciPy's default tolerances L-BFGS-B stops up to 0.02 from the optimum on 50,000
# pairs (measured); stored parameters have six decimals.
TOLERANCES = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000}


@dataclass(frozen=True, slots=True)
class Prior:
    """Where the fit starts, and what it returns to where data are few.

    Moving a step by 1 away from it costs as much as *strength* / 2 of
    log-likelihood. The *intercept* is only where the search starts.
    """

    intercept: float
    steps: Floats
    strength: float


def fitted(
    columns: Floats, truths: Floats, weights: Floats, prior: Prior
) -> tuple[float, Floats]:
    """Return the intercept and the steps, none below 0, of the likeliest curves.

    They maximise the weighted logistic likelihood less the prior's penalty.
    """
    with needing("eval", "fitting a calibration"):
        from scipy.optimize import minimize  # noqa: PLC0415 -- slow to load

    relevant = int((truths > 0).sum())
    if relevant == 0 or relevant == len(truths) or weights.min() < 0.0:
        msg = (
            f"{relevant} of {len(truths)} judged pairs are relevant; expected some "
            "that are and some that are not, with weights of 0 or more"
        )
        raise InputError(msg)
    design = np.column_stack([np.ones(len(columns)), columns])
    centre = np.concatenate([[prior.intercept], prior.steps])
    stiffness = np.concatenate([[0.0], np.full(len(prior.steps), prior.strength)])

    def cost_and_slope(found: Floats) -> tuple[float, Floats]:
        odds, away = design @ found, found - centre
        surprise = np.logaddexp(0.0, odds) - truths * odds
        slope = design.T @ (weights * (probability(odds) - truths))
        penalty = 0.5 * float(stiffness @ np.square(away))
        return float(weights @ surprise) + penalty, slope + stiffness * away

    result = minimize(
        cost_and_slope,
        centre,
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), *[(0.0, None)] * len(prior.steps)],
        options=TOLERANCES,
    )
    return float(result.x[0]), result.x[1:]
