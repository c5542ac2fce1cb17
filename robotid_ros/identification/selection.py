# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Selection among many trajectories: 70 % train, 20 % validate, 10 % test.

Every training trajectory is identified by itself, by alternation, with the first friction model of
a list. Each usable result is validated: its dynamic parameters stay, friction is fitted again on the
validation set, and the smallest torque error wins. The winner is tested: all joints below their
thresholds on the test set, or the next friction model's turn comes. No trajectory is ever in two
sets, and every decision is written down.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.alternating import alternate, fit_friction
from robotid_ros.identification.assembly import thresholds
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.cross_validation import Decision
from robotid_ros.identification.least_squares import fit_of_parameters, least_squares
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import as_samples
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.steps import conclude, require_data
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.robot_model import RobotModel

__all__ = ['FRICTION_SEQUENCE', 'Split', 'select', 'split_trajectories']

FRICTION_SEQUENCE = ('coulomb', 'coulomb_viscous', 'static', 'stribeck')
TRAINING = ('auto', 'alternating', 'ols', 'wls', 'irls')


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which trajectory serves what; every index occurs once.

    Attributes
    ----------
    training, validation, test : tuple of int
    """

    training: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


def split_trajectories(count: int, rng: np.random.Generator) -> Split:
    """Deal trajectories out, 70 % for training, 20 % for validation, 10 % for the test, at least one each.

    Raises
    ------
    IdentificationError
        If there are fewer than three.
    """
    if count < 3:
        raise IdentificationError(
            f'selection needs at least 3 trajectories, to train, validate and test on different ones; got {count}'
        )
    order = rng.permutation(count).tolist()
    validation = max(1, round(0.2 * count))
    test = max(1, round(0.1 * count))
    training = count - validation - test
    return Split(
        training=tuple(order[:training]),
        validation=tuple(order[training : training + validation]),
        test=tuple(order[training + validation :]),
    )


def select(
    datasets: Sequence[Dataset],
    model: RobotModel,
    *,
    config: IdentificationConfig,
    friction_models: Sequence[str] | None = None,
) -> IdentificationResult:
    """Return the model that training, validation and test agree on.

    Parameters
    ----------
    datasets : sequence of Dataset
        With three trajectories or more in all.
    model : RobotModel
    config : IdentificationConfig
        Its torque thresholds decide; its seed deals the trajectories out; its estimator trains, which is the
        alternation for ``auto``.
    friction_models : sequence of str, optional
        In the order in which they get their turn; by default the configuration's, or Coulomb, Coulomb and viscous,
        static, and Stribeck friction where that is ``auto``.

    Returns
    -------
    IdentificationResult
        Of the winner, with the decisions. Where no friction model passes the test it is the one with
        the smallest validation error, and not usable.

    Raises
    ------
    IdentificationError
        If there are fewer than three trajectories, no thresholds, no friction models, or an estimator that does not
        train within the selection.
    """
    if friction_models is None:
        friction_models = FRICTION_SEQUENCE if config.friction == 'auto' else (config.friction,)
    if config.estimator not in TRAINING:
        raise IdentificationError(
            f"the selection cannot train with the estimator '{config.estimator}'; it can with: {', '.join(TRAINING)}"
        )
    limit = thresholds(config, model)
    if limit is None:
        raise IdentificationError('selection decides by torque thresholds; give torque_threshold')
    if not friction_models:
        raise IdentificationError('selection needs at least one friction model; got none')
    runs = [run for dataset in datasets for run in dataset.trajectories()]
    split = split_trajectories(len(runs), np.random.default_rng(config.seed))
    base = base_parameters(model, rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    for k in split.training:
        require_data([runs[k]], model, base, config)
    contest = _Contest(runs, split, model, base, config, limit)
    best: _Winner | None = None
    for name in friction_models:
        winner = contest.round(name)
        if winner is not None and (best is None or winner.error < best.error or winner.passed):
            best = winner
        if winner is not None and winner.passed:
            break
    if best is None:
        best = contest.consolation(friction_models[-1])
    return contest.result(best)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Winner:
    """A model that won its round."""

    friction: FrictionModel
    run: int
    base_values: Array
    parameters: Array
    error: float
    passed: bool


class _Contest:
    """The rounds of one selection."""

    def __init__(
        self,
        runs: list[Dataset],
        split: Split,
        model: RobotModel,
        base: BaseParameters,
        config: IdentificationConfig,
        limit: Array,
    ) -> None:
        self.runs, self.split, self.model, self.base = runs, split, model, base
        self.config, self.limit = config, limit
        names = {kind: ', '.join(runs[k].sources[0] for k in getattr(split, kind)) for kind in Split.__slots__}
        self.log = [f'{kind}: {text}' for kind, text in names.items()]
        self.validation = self._rows([runs[k] for k in split.validation])
        self.test = self._rows([runs[k] for k in split.test])

    def _rows(self, datasets: list[Dataset]) -> Rows:
        samples = as_samples(
            datasets,
            self.model,
            standstill_speed=self.config.standstill_speed,
            standstill_weight=self.config.standstill_weight,
        )
        bandwidth = self.config.torque_bandwidth if self.config.torque_bandwidth > 0.0 else None
        return Rows(self.base, samples.with_bandwidth(bandwidth).coarse())

    def round(self, name: str) -> _Winner | None:
        """Train, validate and test with one friction model."""
        friction = friction_model(name)
        candidates: list[_Winner] = []
        for k in self.split.training:
            rows = self._rows([self.runs[k]])
            values, errors = self._trained(rows, friction)
            text = f'{name}, {self.runs[k].sources[0]}: {_spelled(errors)} N m'
            if not (errors < self.limit).all():
                self.log.append(f'{text}, not usable')
                continue
            parameters, error = self._validated(friction, values)
            self.log.append(f'{text}, usable; {error:.4g} N m in the validation')
            candidates.append(
                _Winner(
                    friction=friction,
                    run=k,
                    base_values=values,
                    parameters=parameters,
                    error=error,
                    passed=False,
                )
            )
        if not candidates:
            self.log.append(f'{name}: no usable result; next friction model')
            return None
        winner = min(candidates, key=lambda candidate: candidate.error)
        errors = self._errors(self.test, winner)
        passed = bool((errors < self.limit).all())
        verdict = 'passed' if passed else 'failed; next friction model'
        self.log.append(f'{name}: {self.runs[winner.run].sources[0]} wins; test {_spelled(errors)} N m, {verdict}')
        return _Winner(
            friction=friction,
            run=winner.run,
            base_values=winner.base_values,
            parameters=winner.parameters,
            error=winner.error,
            passed=passed,
        )

    def _trained(self, rows: Rows, friction: FrictionModel) -> tuple[Array, Array]:
        """Return base parameters (b,) by the estimator asked for, and the torque error of each joint (n,) [N m]."""
        method = self.config.estimator
        if method in ('auto', 'alternating'):
            found = alternate(rows, friction, thresholds=self.limit, max_iterations=self.config.max_iterations)
            return found.base_values, found.errors[-1]
        shape = np.zeros((rows.samples.n, 0))
        if friction.shape_names:
            shape = separable_least_squares(rows.rigid(), rows.samples, friction, fit_scale=False).shape
        fit = least_squares(rows, friction, shape, estimator=method, covariance=False)  # type: ignore[arg-type]
        load = rows.torque(fit.base_values)
        torque = load + friction.torque(rows.samples.dq, fit.friction_parameters, load, rows.samples.q)
        residual = rows.samples.target - rows.samples.filtered(torque)
        return fit.base_values, np.asarray(np.sqrt(np.mean(residual**2, axis=0)))

    def _validated(self, friction: FrictionModel, values: Array) -> tuple[Array, float]:
        """Fit friction again on the validation set; return it and the mean torque error."""
        rows = self.validation
        load = rows.torque(values)
        parameters = fit_friction(rows, friction, values)
        resisting = rows.samples.filtered(friction.torque(rows.samples.dq, parameters, load, rows.samples.q))
        residual = rows.samples.target - rows.samples.filtered(load) - resisting
        return parameters, float(np.sqrt(np.mean(residual**2)))

    def _errors(self, rows: Rows, winner: _Winner) -> Array:
        load = rows.torque(winner.base_values)
        torque = load + winner.friction.torque(rows.samples.dq, winner.parameters, load, rows.samples.q)
        return np.asarray(np.sqrt(np.mean((rows.samples.target - rows.samples.filtered(torque)) ** 2, axis=0)))

    def consolation(self, name: str) -> _Winner:
        """Return the best unusable model with the last friction model, so that there is something to look at."""
        friction = friction_model(name)
        rows = self._rows([self.runs[k] for k in self.split.training])
        found = alternate(rows, friction, max_iterations=self.config.max_iterations)
        parameters, error = self._validated(friction, found.base_values)
        self.log.append(f'{name}: all training trajectories together, {error:.4g} N m in the validation, not usable')
        return _Winner(
            friction=friction,
            run=self.split.training[0],
            base_values=found.base_values,
            parameters=parameters,
            error=error,
            passed=False,
        )

    def result(self, winner: _Winner) -> IdentificationResult:
        """Put the winner into the form that users get."""
        run = self.runs[winner.run]
        rows = self._rows([run])
        reason = '' if winner.passed else 'no friction model keeps all joints below their thresholds on the test set'
        fit: TorqueFit = fit_of_parameters(
            rows, winner.friction, winner.base_values, winner.parameters, converged=winner.passed, reason=reason
        )
        sets = {kind: [self.runs[k] for k in getattr(self.split, kind)] for kind in Split.__slots__}
        sets['training'] = [run]
        return conclude(
            rows,
            fit,
            self.model,
            self.config,
            sets,
            doubt=reason,
            notes=(),
            decisions=tuple(Decision(subject='selection', chosen=line) for line in self.log),
            cutoff=None,
            sources=sets['training'],
        )


def _spelled(values: Array) -> str:
    return ' '.join(f'{value:.4g}' for value in values)
