# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The fits of a calibration, which the cross-validation repeats for every fold."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import IntArray
from robotid_ros.calibration.config import CalibrationConfig
from robotid_ros.calibration.identifiability import independent_columns
from robotid_ros.calibration.joint_terms import JointTerms
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.calibration.solver import Fit, fit
from robotid_ros.calibration.term_selection import folds_of, select_terms

_SELECTION_FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Start, parameters and settings of the fits.

    Attributes
    ----------
    start : State
        Frames and targets in closed form, nominal geometry.
    placed : ndarray of int
        Identifiable frame and target parameters.
    free : ndarray of int
        All identifiable parameters, without joint terms.
    candidates : JointTerms
    groups : tuple of tuple of int
        Candidates that enter together.
    config : CalibrationConfig
    """

    start: State
    placed: IntArray
    free: IntArray
    candidates: JointTerms
    groups: tuple[tuple[int, ...], ...]
    config: CalibrationConfig

    def nominal(self, problem: Problem) -> Fit:
        """Fit frames and targets to the nominal geometry."""
        return fit(problem, self.start, self.placed, loss=self.config.loss)

    def geometric(self, problem: Problem, nominal: Fit) -> Fit:
        """Fit geometry, frames and targets."""
        return self._fit(problem, nominal.state, self.free)

    def _fit(self, problem: Problem, start: State, free: IntArray) -> Fit:
        return fit(problem, start, free, loss=self.config.loss, prior=self.config.prior)

    def with_terms(self, problem: Problem, geometric: Fit) -> tuple[Problem, Fit]:
        """Add the joint terms that lower the cross-validated error, and fit all again."""
        if not self.groups:
            return problem, geometric
        rng = np.random.default_rng(1)
        count = min(_SELECTION_FOLDS, len(problem))
        blocks = np.arange(len(problem)) * count // len(problem)
        splits = [folds_of(problem.q, problem.set_index, count, rng), blocks]
        chosen = select_terms(problem.with_terms(self.candidates), geometric, self.groups, splits)
        if not chosen:
            return problem, geometric
        extended = problem.with_terms(self.candidates.selected(chosen))
        start = replace(geometric.state, coefficients=np.zeros(len(chosen)))
        jacobian = extended.linearise(start)[1] * extended.scale[:, :, None]
        terms = extended.blocks[3]
        free, _ = independent_columns(
            jacobian.reshape(-1, jacobian.shape[2]), [self.free, np.arange(terms.start, terms.stop)], smallest=0.0
        )
        return extended, self._fit(extended, start, free)
