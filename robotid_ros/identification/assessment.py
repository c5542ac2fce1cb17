# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Errors of a fit: on the data that judge, in states left out, on other motions, at rest, and beside its rivals."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction.terms import DISTANCES
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.estimation import Candidate, fit_of, fits_to_compare
from robotid_ros.identification.information import Rows, solved
from robotid_ros.identification.judge import (
    Alternative,
    Bench,
    Decision,
    Score,
    groups,
    predicted_by_others,
)
from robotid_ros.identification.model_choice import Chosen
from robotid_ros.identification.samples import ENOUGH, LEAST_RANGE, Samples, evenly_weighted, samples_of_datasets
from robotid_ros.identification.terms import Terms
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.identification.verdict import Metrics, beaten_by_plain, torque_metrics
from robotid_ros.model.robot_model import RobotModel

_BEYOND = 1.5  # times the range: where another motion goes


def first_answer(datasets: Sequence[Dataset], model: RobotModel, base: BaseParameters) -> float:
    """Return what weighted least squares with Coulomb and viscous friction leave of the torque in states left out [%].

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel
    base : BaseParameters
        Of the model at its motors.
    """
    samples = evenly_weighted(datasets, model, None).thinned(ENOUGH)
    score = Terms.plain(base, samples.n).score(samples, groups(samples))
    recorded = float(np.sum(samples.weight * samples.measured**2))
    return 100.0 * float(np.sqrt(score.squares.sum() / max(recorded, 1e-300)))


def _measured_and_predicted(chosen: Chosen, fit: TorqueFit, samples: Samples) -> tuple[Array, Array]:
    """Return the torque of the joints as recorded, and as a fit predicts it, shape (N, n) each [N m]."""
    samples, drives = samples.with_bandwidth(fit.bandwidth), chosen.model.drives
    return samples.measured @ drives, fit.torque(chosen.rows.base, samples) @ drives


def fit_metrics(chosen: Chosen, fit: TorqueFit, datasets: Sequence[Dataset]) -> Metrics:
    """Return the errors against the torque as recorded, on every sample."""
    samples = evenly_weighted(datasets, chosen.model, None)
    return torque_metrics(chosen.model.joint_names, *_measured_and_predicted(chosen, fit, samples))


def errors_in_motion(
    chosen: Chosen, fit: TorqueFit, datasets: Sequence[Dataset], config: IdentificationConfig
) -> Array:
    """Return the errors against the torque as recorded, shape (n,) [N m], with the weights that a fit gives samples."""
    samples = samples_of_datasets(datasets, chosen.model, config)
    measured, predicted = _measured_and_predicted(chosen, fit, samples)
    squares, weight = (measured - predicted) ** 2, samples.weight
    return np.asarray(np.sqrt(np.sum(weight * squares, axis=0) / np.maximum(weight.sum(axis=0), 1e-12)))


def left_by_bodies(judged: Metrics, seen: Metrics, solid: Metrics) -> float:
    """Return what physically consistent parameters leave of the torque on the data that judge [%].

    They are not fitted anew without each group of states: there they lose what they lose on the data that were seen.
    """
    lost = solid.relative_error_total**2 - seen.relative_error_total**2
    return float(np.sqrt(max(judged.relative_error_total**2 + lost, 0.0)))


class HeldOut(NamedTuple):
    """Each group of states, predicted by a fit without it.

    ``metrics``: errors [N m, %]. ``without``, shape (K, b + n k): base and linear friction parameters of the others.
    ``score``: of the recorded efforts, which all set-ups share.
    """

    metrics: Metrics
    without: Array
    score: Score


def held_out(chosen: Chosen, fit: TorqueFit) -> HeldOut:
    """Return the errors in groups of states that were held out.

    The friction's shape and the weights are those of the fit, which saw all groups.
    """
    model, base, setup = chosen.model, chosen.rows.base, chosen.setup
    samples = chosen.rows.samples.excerpts(ENOUGH).with_bandwidth(fit.bandwidth)
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    own = samples.friction_columns(fit.friction, fit.shape, rigid @ fit.base_values)
    label = groups(samples)
    solve = partial(solved, precision=fit.precision, friction=fit.friction if fit.bounded else None, prior=fit.prior)
    found = Bench.of(samples, label, rigid, own).without(solve)
    predicted = predicted_by_others(label, samples.recorded(rigid), samples.recorded(own), found)
    measured, predicted = samples.measured @ model.drives, predicted @ model.drives
    return HeldOut(
        metrics=torque_metrics(model.joint_names, measured, predicted),
        without=found,
        score=Score.of_errors(setup.efforts(measured - predicted), label),
    )


def spread_elsewhere(fit: TorqueFit, rows: Rows, without: Array) -> float:
    """Return the uncertainty of the torque on another motion, as a share of the torque there [%].

    The parameters' covariance carries what the noise leaves open. What the model's own errors leave open shows in the
    parameters that come out without each group of states, by the jackknife: (K - 1) / K times the sum of squared
    changes of the torque (Efron and Stein, Annals of Statistics 9 (1981), 586-596). Other motions are random states, in
    one and a half times the range of each joint, with the speeds and accelerations of this one.

    Parameters
    ----------
    fit : TorqueFit
    rows : Rows
    without : ndarray, shape (K, b + n k)
        Base and linear friction parameters without each group.
    """
    samples, rng, friction = rows.samples, np.random.default_rng(0), fit.friction
    low, high = samples.q.min(axis=0), samples.q.max(axis=0)
    reach = np.maximum(_BEYOND * 0.5 * (high - low), LEAST_RANGE)
    shape = (ENOUGH // 4, samples.n)
    q = 0.5 * (low + high) + reach * rng.uniform(-1.0, 1.0, shape)
    dq, ddq = (rng.standard_normal(shape) * signal.std(axis=0) for signal in (samples.dq, samples.ddq))
    linear, b = len(friction.linear_names), len(fit.base_values)
    rigid = rows.base.regressor(q, dq, ddq)
    slide = np.zeros((*shape, len(DISTANCES)))  # what builds up after a reversal comes to nothing in the mean
    own = friction.columns(dq, fit.shape, rigid @ fit.base_values, q, slide)
    changes, spread = without - without.mean(axis=0), 0.0
    for j in range(samples.n):
        columns, place = np.concatenate([rigid[:, j], own[:, j]], axis=1), np.arange(b + linear)
        known = np.where(place < b, place, place + j * fit.friction_parameters.shape[1])
        spread += float(np.sum((columns @ fit.covariance[np.ix_(known, known)]) * columns))
        changed = changes[:, np.where(place < b, place, place + j * linear)] @ columns.T
        spread += float(np.sum(changed**2)) * (len(without) - 1) / len(without)
    torque = rigid @ fit.base_values + np.einsum('Nnk,nk->Nn', own, fit.linear)
    return float(100.0 * np.sqrt(max(spread, 0.0) / max(float(np.sum(torque**2)), 1e-300)))


def error_at_rest(
    chosen: Chosen, fit: TorqueFit, judging: Sequence[Dataset] = (), without: Array | None = None
) -> tuple[Array, Array]:
    """Return the error of the torque that holds the arm at rest, and that torque, root mean squares, shape (n,) [N m].

    An arm that is held by its model goes wherever it is led: places are random ones between the joint limits, within pi
    [rad or m] of the middle of the motion where these are further away, or there are none. The error is what the
    parameters' covariance and the jackknife leave open there, see :func:`spread_elsewhere`, and what the model leaves
    of the torque in the mean of each group of states, of the recordings that are ``judging`` where there are some.

    Parameters
    ----------
    chosen : Chosen
    fit : TorqueFit
    judging : sequence of Dataset
    without : ndarray, shape (K, b + n k), optional
        Base and linear friction parameters without each group.
    """
    model, rows, samples = chosen.model, chosen.rows, chosen.rows.samples
    drives, limits = model.drives, model.limits
    middle = 0.5 * (samples.q.min(axis=0) + samples.q.max(axis=0))
    low, high = np.maximum(limits.lower, middle - np.pi), np.minimum(limits.upper, middle + np.pi)
    q = np.random.default_rng(0).uniform(np.minimum(low, high), np.maximum(low, high), (ENOUGH // 4, samples.n))
    still, b = np.zeros_like(q), len(fit.base_values)
    holding = np.einsum('mj,Nmb->Njb', drives, rows.base.regressor(q, still, still), optimize=True)
    covariance = fit.covariance[:b, :b]
    if without is not None:
        changes = without[:, :b] - without[:, :b].mean(axis=0)
        covariance = covariance + (len(changes) - 1) / len(changes) * changes.T @ changes
    left_open = np.einsum('Nnb,bc,Nnc->n', holding, covariance, holding, optimize=True) / len(q)
    judged = evenly_weighted(judging, model, fit.bandwidth) if judging else samples.thinned(ENOUGH)
    missed, label = (judged.measured - fit.torque(rows.base, judged)) @ drives, groups(judged)
    means = np.array([missed[label == k].mean(axis=0) for k in np.unique(label)])
    error = np.sqrt(np.maximum(left_open, 0.0) + np.mean(means**2, axis=0))
    return error, np.sqrt(np.mean((holding @ fit.base_values) ** 2, axis=0))


def preferred_in_validation(
    chosen: Chosen, fit: TorqueFit, ways: Sequence[Candidate], datasets: Sequence[Dataset]
) -> tuple[Rows, TorqueFit, Decision, str]:
    """Return the fit that a validation prefers, of all ways to fit the parameters that were compared without it.

    That is the one with the least score, see :mod:`robotid_ros.identification.judge`. Plain friction drives no joint
    here. The decision also tells the error where each group of states is predicted by the fit that all other groups
    prefer, which no choice has seen.

    Parameters
    ----------
    chosen : Chosen
    fit : TorqueFit
        Of the first way, which was taken without the validation.
    ways : sequence of Candidate
    datasets : sequence of Dataset
        Of the validation.

    Returns
    -------
    rows : Rows
        Of the fit.
    fit : TorqueFit
    decision : Decision
    beaten : str
        See :func:`robotid_ros.identification.verdict.beaten_by_plain`.
    """
    samples = evenly_weighted(datasets, chosen.model, None)
    label = groups(samples)

    def score_of(each: TorqueFit) -> Score:
        measured, predicted = _measured_and_predicted(chosen, each, samples)
        return Score.of_errors(measured - predicted, label, np.ones_like(measured) * (np.ptp(measured, axis=0) > 0.0))

    def scores(of: Sequence[Candidate], *, dissipative: bool = True) -> list[Score]:
        return [score_of(each) for each in fits_to_compare(chosen, fit, of, dissipative=dissipative)]

    tried = [score_of(fit), *scores(ways[1:])]
    free = scores([way for way in ways if way.plain], dissipative=False)
    taken = min(range(len(tried)), key=lambda k: tried[k].value)
    by_others = [min(tried, key=lambda each: each.without(k).value) for k in range(len(tried[0].squares))]
    power = max(float(np.sum((samples.measured @ chosen.model.drives) ** 2)), 1e-300)

    def left(squares: Array) -> float:
        return 100.0 * float(np.sqrt(np.sum(squares) / power))

    errors = [left(each.squares) for each in tried]
    unseen = left(np.array([each.squares[k] for k, each in enumerate(by_others)]))
    beside = [f'{way.name}: {error:.3g} %' for way, error in zip(ways, errors, strict=True) if way.plain]
    decision = Decision(
        subject='by validation',
        chosen=f'{ways[taken].name}; left of the torque there: {errors[taken]:.3g} %, '
        + ', '.join([f'{ways[0].name}: {errors[0]:.3g} %'] * bool(taken) + beside)
        + f'; where states choose for each other: {unseen:.3g} %',
        alternatives=tuple(Alternative(name=way.name, error=each.rmse) for way, each in zip(ways, tried, strict=True)),
    )
    beaten = beaten_by_plain(min(errors), min(left(each.squares) for each in free)) if free else ''
    if taken:
        return *fit_of(chosen, ways[taken]), decision, beaten
    return chosen.rows, fit, decision, beaten
