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
validation set, and the smallest torque error wins. The winner is tested: friction is fitted again on
the test set, and all joints must be below their thresholds, or the next friction model's turn comes.
That test is one of the dynamic parameters. The result keeps the friction of the validation set, so it
is usable only if that, too, stays below the thresholds on the test set. No trajectory is ever in two
sets, and every decision is written down.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model, parse_friction
from robotid_ros.identification.alternating import fit_friction
from robotid_ros.identification.assembly import thresholds
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.decision import Decision
from robotid_ros.identification.estimation import estimate
from robotid_ros.identification.friction_choice import FrictionChoice
from robotid_ros.identification.least_squares import fit_of_parameters
from robotid_ros.identification.model_choice import Chosen
from robotid_ros.identification.plausibility import remarks, require_radians
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.signal_choice import choose_bandwidth
from robotid_ros.identification.steps import conclude, identify, require_data
from robotid_ros.identification.stroke_friction import stroke_friction
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress
from robotid_ros.settings import Settings, setting

FRICTION_SEQUENCE = ('coulomb', 'coulomb_viscous', 'static', 'stribeck')
_NOT_PASSED = 'no friction model keeps all joints below their thresholds on the test set'
_FRICTION_CHANGES = (
    'with friction fitted again the test is passed, but not with the friction of the validation set: friction differs '
    'from recording to recording'
)
TRAINING = ('auto', 'alternating', 'ols', 'wls', 'irls')


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionConfig(Settings):
    """Settings of the selection among recordings."""

    error = IdentificationError

    select: bool = setting(
        False,
        'deal the recordings out to training, validation and test (70/20/10), and let friction models take turns '
        'until one passes the test; needs torque_threshold',
    )
    friction_sequence: tuple[str, ...] = setting(
        (),
        f"friction models of the selection in the order of their turns; empty: the one asked for as 'friction', or "
        f"{', '.join(FRICTION_SEQUENCE)} where that is 'auto'",
        accepted=parse_friction,
    )

    @property
    def method(self) -> Callable[..., IdentificationResult]:
        """The function that identifies: :func:`select` or :func:`~robotid_ros.identification.identify`.

        Raises
        ------
        IdentificationError
            If there is a sequence of friction models without the selection.
        """
        if self.select:
            return partial(select, friction_models=self.friction_sequence)
        if self.friction_sequence:
            raise self.error('friction_sequence is the order of turns in the selection; it needs select')
        return identify


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Indices of the trajectories for training, validation and test; every index occurs once."""

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
    friction_models: Sequence[str] = (),
    friction_data: Sequence[FrictionStrokes] = (),
    validation: Sequence[Dataset] = (),
    progress: Progress | None = None,
) -> IdentificationResult:
    """Return the model that wins the selection.

    Parameters
    ----------
    datasets : sequence of Dataset
        With three trajectories or more in all.
    model : RobotModel
    config : IdentificationConfig
        Its torque thresholds decide; its seed deals the trajectories out; its estimator trains, which is the
        alternation for ``auto``.
    friction_models : sequence of str
        In the order in which they get their turn; if empty the configuration's, or Coulomb, Coulomb and viscous,
        static, and Stribeck friction where that is ``auto``.
    friction_data : sequence of FrictionStrokes
        Friction sweeps, which every training trajectory is identified with.
    validation : sequence of Dataset
        Trajectories that join the validation set and are not dealt out.
    progress : callable, optional
        Called with a share from 0 to 1 and a text.

    Returns
    -------
    IdentificationResult
        Of the winner, with the decisions. Where no friction model passes the test it is the one with
        the smallest validation error, and not usable.

    Raises
    ------
    IdentificationError
        If there are fewer than three trajectories, no thresholds, or an estimator that does not train within the
        selection.
    """
    if not friction_models:
        friction_models = FRICTION_SEQUENCE if config.friction == 'auto' else (config.friction,)
    if config.estimator not in TRAINING:
        raise IdentificationError(
            f"the selection cannot train with the estimator '{config.estimator}'; it can with: {', '.join(TRAINING)}"
        )
    if any('ripple' in name.split('+') for name in friction_models):
        raise IdentificationError('the selection cannot find the frequencies of a ripple; leave out the option ripple')
    limit = thresholds(config, model)
    if limit is None:
        raise IdentificationError('selection decides by torque thresholds; give torque_threshold')
    runs = [run for dataset in datasets for run in dataset.trajectories()]
    extra = [run for dataset in validation for run in dataset.trajectories()]
    split = split_trajectories(len(runs), np.random.default_rng(config.seed))
    split = replace(split, validation=(*split.validation, *range(len(runs), len(runs) + len(extra))))
    runs += extra
    base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    for k in split.training:
        require_data([runs[k]], model, base, config)
    require_radians(runs, model)
    contest = _Contest(runs, split, model, base, config, limit, friction_data, friction_models)
    best: _Winner | None = None
    for turn, name in enumerate(friction_models):
        if progress is not None:
            progress(turn / len(friction_models), f'selection: {name}')
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
    reason: str


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
        friction_data: Sequence[FrictionStrokes],
        sequence: Sequence[str],
    ) -> None:
        self.runs, self.split, self.model, self.base = runs, split, model, base
        self.config = config if config.estimator != 'auto' else replace(config, estimator='alternating')
        self.limit, self.friction_data, self.sequence = limit, friction_data, sequence
        listed = [each.of_joints(model.joint_names) for each in friction_data]
        self.strokes = FrictionStrokes.joined(listed) if listed else None
        names = {kind: ', '.join(runs[k].sources[0] for k in getattr(split, kind)) for kind in Split.__slots__}
        self.log = [f'{kind}: {text}' for kind, text in names.items()]
        self.log.append(f'estimator: {self.config.estimator}')
        self.bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
        self.decisions: tuple[Decision, ...] = ()
        if self.config.automatic and config.torque_bandwidth == 0.0:
            self.bandwidth, found = choose_bandwidth(base, self._samples([runs[k] for k in split.training]))
            self.decisions = (found,)
        self.validation = self._rows([runs[k] for k in split.validation])
        self.test = self._rows([runs[k] for k in split.test])

    def _samples(self, datasets: list[Dataset]) -> Samples:
        return as_samples(
            datasets,
            self.model,
            standstill_speed=self.config.standstill_speed,
            standstill_weight=self.config.standstill_weight,
        )

    def _rows(self, datasets: list[Dataset]) -> Rows:
        return Rows(self.base, self._samples(datasets).with_bandwidth(self.bandwidth).coarse())

    def round(self, name: str) -> _Winner | None:
        """Train, validate and test with one friction model."""
        candidates: list[_Winner] = []
        for k in self.split.training:
            candidate, errors = self._trained([self.runs[k]], k, name)
            text = f'{name}, {self.runs[k].sources[0]}: {_spelled(errors)} N m'
            if not (errors < self.limit).all():
                self.log.append(f'{text}, not usable')
                continue
            self.log.append(f'{text}, usable; {candidate.error:.4g} N m in the validation')
            candidates.append(candidate)
        if not candidates:
            self.log.append(f'{name}: no usable result; next friction model')
            return None
        winner = min(candidates, key=lambda candidate: candidate.error)
        again = self._errors(self.test, winner, fit_friction(self.test, winner.friction, winner.base_values))
        passed = bool((again < self.limit).all())
        kept = self._errors(self.test, winner, winner.parameters)
        self.log.append(
            f'{name}: {self.runs[winner.run].sources[0]} wins; test {_spelled(again)} N m with friction fitted again, '
            f'{"passed" if passed else "failed; next friction model"}; {_spelled(kept)} N m with the friction of the '
            'validation'
        )
        reason = '' if (kept < self.limit).all() else _FRICTION_CHANGES
        return replace(winner, passed=passed, reason=reason if passed else winner.reason)

    def _trained(self, datasets: list[Dataset], run: int, name: str) -> tuple[_Winner, Array]:
        """Return a model from some trajectories, validated, and its torque errors (n,) in training [N m]."""
        friction, rows = friction_model(name), self._rows(datasets)
        shape = np.zeros((rows.samples.n, 0))
        if friction.shape_names and self.strokes is not None:
            shape = stroke_friction(friction, self.strokes).shape
        elif friction.shape_names and self.config.estimator != 'alternating':  # it finds the shape by itself
            shape = separable_least_squares(rows.rigid(), rows.samples, friction, fit_scale=False).shape
        choice = FrictionChoice(friction=friction, shape=shape, decisions=())
        fit, _ = estimate(Chosen(rows=rows, choice=choice, strokes=self.strokes), self.model, self.config)
        parameters = fit_friction(self.validation, friction, fit.base_values)
        winner = _Winner(
            friction=friction,
            run=run,
            base_values=fit.base_values,
            parameters=parameters,
            error=0.0,
            passed=False,
            reason=_NOT_PASSED,
        )
        residual = self._residual(self.validation, winner, parameters)
        winner = replace(winner, error=float(np.sqrt(np.mean(residual**2))))
        return winner, self._errors(rows, winner, fit.friction_parameters)

    def _residual(self, rows: Rows, winner: _Winner, parameters: Array) -> Array:
        """Return the torque (N, n) that a model with these friction parameters leaves [N m]."""
        load = rows.torque(winner.base_values)
        torque = load + winner.friction.torque(rows.samples.dq, parameters, load, rows.samples.q)
        return np.asarray(rows.samples.target - rows.samples.filtered(torque))

    def _errors(self, rows: Rows, winner: _Winner, parameters: Array) -> Array:
        return np.asarray(np.sqrt(np.mean(self._residual(rows, winner, parameters) ** 2, axis=0)))

    def consolation(self, name: str) -> _Winner:
        """Return the unusable model of all training trajectories and the last friction model, for inspection."""
        winner, _ = self._trained([self.runs[k] for k in self.split.training], self.split.training[0], name)
        self.log.append(
            f'{name}: all training trajectories together, {winner.error:.4g} N m in the validation, not usable'
        )
        return winner

    def result(self, winner: _Winner) -> IdentificationResult:
        """Return the result of the winner."""
        run = self.runs[winner.run]
        rows = self._rows([run])
        fit: TorqueFit = fit_of_parameters(
            rows,
            winner.friction,
            winner.base_values,
            winner.parameters,
            converged=not winner.reason,
            reason=winner.reason,
        )
        sets = {kind: [self.runs[k] for k in getattr(self.split, kind)] for kind in Split.__slots__}
        sets['training'] = [run]
        result = conclude(
            rows,
            fit,
            self.model,
            self.config,
            sets,
            doubt=winner.reason,
            notes=remarks(self.runs, self.model),
            decisions=(*self.decisions, *(Decision(subject='selection', chosen=line) for line in self.log)),
            cutoff=None,
            sources=sets['training'],
            friction_data=self.friction_data,
        )
        return replace(
            result, provenance={**result.provenance, 'selection': {'friction_sequence': list(self.sequence)}}
        )


def _spelled(values: Array) -> str:
    return ' '.join(f'{value:.4g}' for value in values)
