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
is usable only if that, too, stays below the thresholds on the test set. Where no friction model stays
below them, the result is the best of all by validation, and says so.

With as many friction sweeps as trajectories, in their order, the two are dealt out in pairs: each set
takes its friction from its own sweeps, as the source has it. Otherwise every training has all sweeps,
and friction is fitted again on the set's trajectories.

No trajectory is ever in two sets, nor are two runs of one reference. Torque errors have the weights of
the fit, in which samples at rest hardly count. Every decision is written down.
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
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.estimation import estimate
from robotid_ros.identification.information import Rows
from robotid_ros.identification.judge import Decision
from robotid_ros.identification.least_squares import fit_of_parameters
from robotid_ros.identification.model_choice import Chosen, few_of
from robotid_ros.identification.plausibility import remarks, require_radians
from robotid_ros.identification.predictor import described_by
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import Samples, samples_of_datasets
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.signal_choice import choose_bandwidth
from robotid_ros.identification.source_methods import fit_friction
from robotid_ros.identification.steps import conclude, identify, provenance_of, require_data
from robotid_ros.identification.stroke_friction import gravity_along, stroke_friction
from robotid_ros.identification.terms import Terms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress
from robotid_ros.settings import Settings, setting

FRICTION_SEQUENCE = ('coulomb', 'coulomb_viscous', 'static', 'stribeck')
_ALIKE = 0.05  # of a motion: two runs that differ by less follow one reference
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


def split_trajectories(references: Sequence[int], rng: np.random.Generator) -> dict[str, tuple[int, ...]]:
    """Deal trajectories out, 70 % for training, 20 % for validation, 10 % for the test, at least one reference each.

    Parameters
    ----------
    references : sequence of int
        The number of the reference that each trajectory runs; all runs of one go to the same set.
    rng : numpy.random.Generator

    Returns
    -------
    dict of tuple of int
        The trajectories for ``training``, ``validation`` and ``test``; every index occurs once.

    Raises
    ------
    IdentificationError
        If there are fewer than three references.
    """
    different = np.unique(references)
    count = len(different)
    if count < 3:
        raise IdentificationError(
            'selection needs at least 3 different trajectories, to train, validate and test on different ones; got '
            f'{len(references)} recordings of {count}: design each with a seed of its own'
        )
    order = rng.permutation(different)
    validation = max(1, round(0.2 * count))
    test = max(1, round(0.1 * count))
    training = count - validation - test
    sets = np.split(order, [training, training + validation])
    return {
        name: tuple(k for each in one for k in np.flatnonzero(np.equal(references, each)).tolist())
        for name, one in zip(('training', 'validation', 'test'), sets, strict=True)
    }


def same_references(runs: Sequence[Dataset]) -> list[int]:
    """Return the number of the reference that each run follows, equal where two move alike.

    Two runs are of one reference if they last equally long and their positions differ by less than 5 % of what the
    first one moves, root mean squares over all joints.
    """
    numbers: list[int] = []
    for k, run in enumerate(runs):
        numbers.append(next((numbers[i] for i in range(k) if _alike(runs[i], run)), k))
    return numbers


def _alike(first: Dataset, second: Dataset) -> bool:
    count = min(len(first.q), len(second.q))
    if first.rate != second.rate or abs(len(first.q) - len(second.q)) > _ALIKE * count:
        return False
    apart = first.q[:count] - second.q[:count, [second.joint_names.index(name) for name in first.joint_names]]
    return float(np.sqrt(np.mean(apart**2))) < _ALIKE * float(np.sqrt(np.mean(np.var(first.q, axis=0))))


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
        Friction sweeps: as many as trajectories, in their order, or any number for all.
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
    if config.prior:
        model = described_by(model, config.prior)
    if not friction_models:
        friction_models = FRICTION_SEQUENCE if config.friction == 'auto' else (config.friction,)
    if config.estimator not in TRAINING:
        raise IdentificationError(
            f"the selection cannot train with the estimator '{config.estimator}'; it can with: {', '.join(TRAINING)}"
        )
    if any('ripple' in name.split('+') for name in friction_models):
        raise IdentificationError('the selection cannot find the frequencies of a ripple; leave out the option ripple')
    limit = config.thresholds(model)
    if limit is None:
        raise IdentificationError('selection decides by torque thresholds; give torque_threshold')
    stated = SetUp.as_described(model)
    runs, extra = (
        [run for dataset in given for run in stated.dataset(dataset, model.joint_names).trajectories()]
        for given in (datasets, validation)
    )
    split = split_trajectories(same_references(runs), np.random.default_rng(config.seed))
    split['validation'] += tuple(range(len(runs), len(runs) + len(extra)))
    runs += extra
    base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    for k in split['training']:
        require_data([runs[k]], model, base, config)
    require_radians(runs, model)
    contest = _Contest(runs, split, model, base, config, limit, friction_data, friction_models)
    best: _Winner | None = None
    for turn, name in enumerate(friction_models):
        if progress is not None:
            progress(turn / len(friction_models), f'selection: {name}')
        winner = contest.round(name)
        if best is None or winner.error < best.error or winner.passed:
            best = winner
        if winner.passed:
            break
    assert best is not None
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
        split: dict[str, tuple[int, ...]],
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
        self.sweeps = [each.of_joints(model.joint_names) for each in friction_data]
        self.paired = len(self.sweeps) == sum(map(len, split.values()))
        self.log = [f'{kind}: {", ".join(runs[k].sources[0] for k in members)}' for kind, members in split.items()]
        self.log.append(f'estimator: {self.config.estimator}')
        self.bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
        self.decisions: tuple[Decision, ...] = ()
        if self.config.automatic and config.torque_bandwidth == 0.0:
            training = few_of(self._samples([runs[k] for k in split['training']]))
            self.bandwidth, found = choose_bandwidth(Terms.plain(base, model.n), training)
            self.decisions = (found,)
        self.validation = self._rows([runs[k] for k in split['validation']])
        self.test = self._rows([runs[k] for k in split['test']])

    def _samples(self, datasets: list[Dataset]) -> Samples:
        return samples_of_datasets(datasets, self.model, self.config)

    def _rows(self, datasets: list[Dataset]) -> Rows:
        return Rows(self.base, self._samples(datasets).with_bandwidth(self.bandwidth).coarse())

    def _strokes(self, members: Sequence[int]) -> FrictionStrokes | None:
        """Return the sweeps of some trajectories; all of them where they are not in pairs."""
        mine = [self.sweeps[k] for k in members] if self.paired else self.sweeps
        return FrictionStrokes.joined(mine) if mine else None

    def _friction(self, rows: Rows, members: Sequence[int], friction: FrictionModel, values: Array) -> Array:
        """Return the friction of a set for given base parameters: of its own sweeps, or of its trajectories."""
        strokes = self._strokes(members)
        if strokes is None or not self.paired:
            return fit_friction(rows, friction, values)
        return stroke_friction(friction, strokes, gravity_along(strokes, self.base, values)).parameters

    def round(self, name: str) -> _Winner:
        """Train, validate and test with one friction model."""
        usable: list[_Winner] = []
        others: list[_Winner] = []
        for k in self.split['training']:
            candidate, errors = self._trained(k, name)
            good = bool((errors < self.limit).all())
            (usable if good else others).append(candidate)
            self.log.append(
                f'{name}, {self.runs[k].sources[0]}: {_spelled(errors)} N m, {"" if good else "not "}usable; '
                f'{candidate.error:.4g} N m in the validation'
            )
        winner = min(usable or others, key=lambda candidate: candidate.error)
        if not usable:
            self.log.append(f'{name}: no usable result; next friction model')
            return winner
        members = self.split['test']
        own = self._friction(self.test, members, winner.friction, winner.base_values)
        again = self._errors(self.test, winner, own)
        passed = bool((again < self.limit).all())
        kept = self._errors(self.test, winner, winner.parameters)
        self.log.append(
            f'{name}: {self.runs[winner.run].sources[0]} wins; test {_spelled(again)} N m with friction fitted again '
            f'({_spelled(self._errors(self.test, winner, own, rest=True))} with samples at rest), '
            f'{"passed" if passed else "failed; next friction model"}; {_spelled(kept)} N m with the friction of the '
            'validation'
        )
        if not passed:
            return winner
        changes = (
            'with friction fitted again the test is passed, but not with the friction of the validation set: friction '
            'differs from recording to recording'
        )
        return replace(winner, passed=True, reason='' if (kept < self.limit).all() else changes)

    def _trained(self, run: int, name: str) -> tuple[_Winner, Array]:
        """Return a model from one trajectory, validated, and its torque errors (n,) in training [N m]."""
        friction, rows, strokes = friction_model(name), self._rows([self.runs[run]]), self._strokes([run])
        samples = rows.samples
        shape = np.zeros((samples.n, 0))
        if friction.shape_names and strokes is not None:
            shape = stroke_friction(friction, strokes).shape
        elif friction.shape_names and self.config.estimator != 'alternating':  # it finds the shape by itself
            rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
            _, _, found, _ = separable_least_squares(rigid, samples, friction, fit_scale=False)
            shape = found[:, len(friction.signed) :]
        chosen = replace(self._chosen(run, rows, friction, shape), strokes=strokes)
        fit, _, _ = estimate(chosen, self.config)
        again = self._friction(self.validation, self.split['validation'], friction, fit.base_values)
        # Sweeps of two sets are both honest judges of the validation; a refit on its own trajectories is not.
        parameters = [fit.friction_parameters, again] if self.paired else [again]
        tried = [
            _Winner(
                friction=friction,
                run=run,
                base_values=fit.base_values,
                parameters=each,
                error=0.0,
                passed=False,
                reason='no friction model keeps all joints below their thresholds on the test set; this is the best '
                'one by validation',
            )
            for each in parameters
        ]
        judged = [
            replace(each, error=float(np.sqrt(np.mean(self._errors(self.validation, each, each.parameters) ** 2))))
            for each in tried
        ]
        winner = min(judged, key=lambda each: each.error)
        return winner, self._errors(rows, winner, fit.friction_parameters)

    def _chosen(self, run: int, rows: Rows, friction: FrictionModel, shape: Array) -> Chosen:
        """Return one trajectory with the rows and the friction of a model."""
        return Chosen(
            datasets=(self.runs[run],),
            setup=SetUp.as_described(self.model),
            model=self.model,
            rows=rows,
            terms=Terms(base=self.base, friction=friction, shape=shape),
            decisions=(),
        )

    def _errors(self, rows: Rows, winner: _Winner, parameters: Array, *, rest: bool = False) -> Array:
        """Return the torque errors that a model with these friction parameters leaves, shape (n,) [N m].

        They have the weights of the fit; with ``rest`` samples at rest count as much as the others.
        """
        load, samples = rows.torque(winner.base_values), rows.samples
        torque = load + winner.friction.torque(samples.dq, parameters, load, samples.q, samples.slide)
        squares = (samples.target - samples.filtered(torque)) ** 2
        weight = np.ones_like(squares) if rest else samples.weight
        return np.asarray(np.sqrt(np.sum(weight * squares, axis=0) / np.maximum(weight.sum(axis=0), 1e-12)))

    def result(self, winner: _Winner) -> IdentificationResult:
        """Return the result of the winner."""
        run = self.runs[winner.run]
        rows = self._rows([run])
        fit = fit_of_parameters(
            rows,
            winner.friction,
            winner.base_values,
            winner.parameters,
            converged=not winner.reason,
            reason=winner.reason,
        )
        judges = {kind: [self.runs[k] for k in self.split[kind]] for kind in ('validation', 'test')}
        decisions = (*self.decisions, *(Decision(subject='selection', chosen=line) for line in self.log))
        chosen = self._chosen(winner.run, rows, winner.friction, winner.parameters[:, :0])
        result = conclude(
            replace(chosen, decisions=decisions),
            fit,
            self.config,
            judges,
            provenance_of([run], judges, self.config, self.friction_data),
            doubt=winner.reason,
        )
        return replace(
            result,
            notes=(*chosen.setup.notes, *remarks(self.runs, self.model), *result.notes),
            provenance={**result.provenance, 'selection': {'friction_sequence': list(self.sequence)}},
        )


def _spelled(values: Array) -> str:
    return ' '.join(f'{value:.4g}' for value in values)
