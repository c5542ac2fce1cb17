# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Weight of the robot description in a fit, chosen by held-out torque."""

from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.cross_validation import Alternative, Decision, Folds, HeldOut, LinearFolds
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.least_squares import joint_precision, weighted_solution
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples

_SUBJECT = 'weight of the description'
_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
_ALLOWED = 0.02  # rise of the held-out error at which a stronger prior is still taken
_REGIONS_GAIN = 0.10  # fall of the error in regions left out that another prior than that of the stretches must bring


def total_error(errors: HeldOut) -> float:
    """Return the root-mean-square error over all joints [N m]."""
    return float(np.sqrt(np.mean(errors.rmse**2)))


def choose_prior(
    base: BaseRegressor,
    samples: Samples,
    friction: FrictionModel,
    shape: Array,
    load: Array | None,
    prior: Prior,
    *,
    dissipative: bool = True,
    equal: bool = False,
) -> tuple[Prior | None, tuple[HeldOut, HeldOut], tuple[Decision, Decision]]:
    """Return the prior with the strength chosen by held-out torque, its errors and the decisions: stretches, regions.

    A prior hardly changes parameters that the data determine; for the others least squares fits noise, which the
    prior prevents. The strongest prior whose held-out error is within 2 % of
    the best, joint by joint in the geometric mean and over all joints in the root mean square, is taken. Stretches of
    time are held out first. The prior chosen by regions of joint space takes its place where it predicts these
    regions better by more than 10 % and one standard error: one trajectory can be fitted by parameters that fail on
    the next.

    Parameters
    ----------
    base : BaseRegressor
    samples : Samples
    friction : FrictionModel
    shape : ndarray, shape (n, s)
    load : ndarray, shape (N, n), optional
        For load-dependent friction [N m].
    prior : Prior
    dissipative : bool
        Keep the friction from driving a joint.
    equal : bool
        All joints count alike; by default each by its inverse residual variance.
    """
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    own = friction.columns(samples.dq, shape, load, samples.q)
    rows = [passed(values) for passed in (samples.filtered, samples.recorded) for values in (rigid, own)]
    # The normal equations count every sample; the prior is scaled to independent ones.
    unit = 1.0 / samples.independent_per_sample
    stretches, regions = (
        LinearFolds.of_rows(samples, folds, *rows) for folds in (Folds.of(samples), Folds.of_regions(samples))
    )
    bounds = friction if dissipative else None
    if equal:  # the equations are then in the torque's own unit, not in that of the log-likelihood
        whole = stretches.whole
        plain, _ = weighted_solution(whole, bounds, np.ones(samples.n), equal=True)
        unit *= float(np.mean(1.0 / joint_precision(whole, plain.parameters)))
    names = ['none', *(f'{strength:g}' for strength in _STRENGTHS)]
    candidates = [None, *(replace(prior, strength=strength * unit) for strength in _STRENGTHS)]

    def errors(parts: LinearFolds) -> list[HeldOut]:
        def held_out(candidate: Prior | None) -> HeldOut:
            return parts.errors(
                lambda info: (
                    weighted_solution(info, bounds, np.ones(samples.n), equal=equal, prior=candidate)[0].parameters
                )
            )

        return [held_out(candidate) for candidate in candidates]

    in_time, in_space = errors(stretches), errors(regions)
    best, farther = _strongest(in_time), _strongest(in_space)
    taken = in_space[best].better(in_space[farther], _REGIONS_GAIN)
    decisions = (
        _decision(_SUBJECT, f'{names[best]}, but for regions left out' if taken else names[best], names, in_time),
        _decision(
            f'{_SUBJECT}, regions left out', names[farther] if taken else 'no clear gain by another', names, in_space
        ),
    )
    best = farther if taken else best
    return candidates[best], (in_time[best], in_space[best]), decisions


def _decision(subject: str, chosen: str, names: list[str], tried: list[HeldOut]) -> Decision:
    alternatives = tuple(Alternative(name=name, error=found.rmse) for name, found in zip(names, tried, strict=True))
    return Decision(subject=subject, chosen=chosen, alternatives=alternatives)


def _strongest(tried: list[HeldOut]) -> int:
    """Return the last alternative within 2 % of the best, in the geometric mean and over all joints."""
    scores = np.array([np.mean(np.log(np.maximum(found.rmse, 1e-300))) for found in tried])
    totals = np.log([max(total_error(found), 1e-300) for found in tried])
    good = (scores <= scores.min() + np.log1p(_ALLOWED)) & (totals <= totals.min() + np.log1p(_ALLOWED))
    return int(np.flatnonzero(good)[-1]) if good.any() else int(np.argmin(totals))
