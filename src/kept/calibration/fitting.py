"""Fitting: the curves under which judged pairs are most likely, by numpy alone."""

from dataclasses import dataclass

import numpy as np

from kept.errors import InputError
from kept.signals import Floats

MOST_ROUNDS = 200
HALVINGS = 40
CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Prior:
    """Where the fit starts from and returns to where data are few.

    Moving a step by 1 away from it costs as much as *strength* / 2 of
    log-likelihood. The *intercept* is where the search starts, nothing more.
    """

    intercept: float
    steps: Floats
    strength: float


def probability(odds: Floats) -> Floats:
    """Return the probability of log-odds, without overflow at either end."""
    small = np.exp(-np.abs(odds))
    likely: Floats = np.where(odds >= 0.0, 1.0, small) / (1.0 + small)
    return likely


def fitted(
    columns: Floats, truths: Floats, weights: Floats, prior: Prior
) -> tuple[float, Floats]:
    """Return the intercept and the steps, none below 0, of the likeliest curves.

    Newton's method on the weighted logistic likelihood with the prior's penalty;
    a step that would turn negative is held at 0 as long as the data push it there.
    """
    _demand_both(truths, weights)
    problem = _Problem(
        design=np.column_stack([np.ones(len(columns)), columns]),
        truths=truths,
        weights=weights,
        centre=np.concatenate([[prior.intercept], prior.steps]),
        stiffness=np.concatenate([[0.0], np.full(len(prior.steps), prior.strength)]),
    )
    found = problem.allowed(problem.centre)
    cost = problem.cost(found)
    for _ in range(MOST_ROUNDS):
        tried, new_cost = problem.improved(found, cost)
        gained, found, cost = cost - new_cost, tried, new_cost
        if gained <= CLOSE * (1.0 + abs(cost)):
            break
    return float(found[0]), found[1:]


@dataclass(frozen=True, slots=True)
class _Problem:
    """A penalised likelihood over an intercept and steps that are never negative."""

    design: Floats
    truths: Floats
    weights: Floats
    centre: Floats
    stiffness: Floats

    def allowed(self, found: Floats) -> Floats:
        return np.concatenate([found[:1], np.maximum(found[1:], 0.0)])

    def cost(self, found: Floats) -> float:
        odds = self.design @ found
        surprise = np.logaddexp(0.0, odds) - self.truths * odds
        held = 0.5 * float(self.stiffness @ np.square(found - self.centre))
        return float(self.weights @ surprise) + held

    def improved(self, found: Floats, cost: float) -> tuple[Floats, float]:
        """Go as far towards the full step as makes it no worse."""
        aim = self._newton(found)
        for halving in range(HALVINGS):
            tried = self.allowed(found + (aim - found) * 0.5**halving)
            new_cost = self.cost(tried)
            if new_cost <= cost:
                return tried, new_cost
        return found, cost

    def _newton(self, found: Floats) -> Floats:
        """Return where a full step leads, over the parameters that are free to move."""
        promised = probability(self.design @ found)
        slope = self.design.T @ (self.weights * (promised - self.truths))
        slope += self.stiffness * (found - self.centre)
        free = (found > 0.0) | (slope < 0.0)
        free[0] = True
        active = self.design[:, free]
        doubt = self.weights * promised * (1.0 - promised)
        curvature = active.T @ (active * doubt[:, None])
        curvature[np.diag_indices_from(curvature)] += self.stiffness[free] + CLOSE
        aim = found.copy()
        aim[free] -= np.linalg.solve(curvature, slope[free])
        return aim


def _demand_both(truths: Floats, weights: Floats) -> None:
    relevant = int((truths > 0).sum())
    if relevant == 0 or relevant == len(truths) or weights.min() < 0.0:
        msg = (
            f"{relevant} of {len(truths)} judged pairs are relevant; expected some "
            "that are and some that are not, with weights of 0 or more"
        )
        raise InputError(msg)
