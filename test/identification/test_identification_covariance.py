# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Deviations that are told are those of repeated experiments: neither too small nor too large."""

from dataclasses import replace

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_torque
from scipy import signal, stats

from robotid_ros.dynamics import base_parameters
from robotid_ros.dynamics.recursion import standard_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.identification.information import Rows
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.samples import as_samples
from robotid_ros.model import RobotModel

ARM = RobotModel.from_urdf(TWO_LINKS, tip='tool')
COULOMB, VISCOUS, OFFSET = np.array([2.0, 1.0]), np.array([1.5, 0.7]), np.array([0.1, -0.2])
NOISE = np.array([0.5, 0.1])  # N m; the joints differ, so that their weights matter
REPETITIONS = 60
CHANCE = 1e-4  # of a sound covariance to miss one of the two bounds


@pytest.mark.slow
@pytest.mark.parametrize('correlation', [0.0, 0.9], ids=['white', 'correlated'])
def test_repeated_experiments_scatter_as_told(correlation: float) -> None:
    """The sum of e^T C^-1 e over independent experiments is chi-square distributed; both its tails are refused.

    With correlated noise the covariance itself is estimated, from 600 samples of a memory of some ten: the bounds
    are widened by the 15 % that this costs.
    """
    motion = fourier_motion(2, np.random.default_rng(1), seconds=6.0)
    torque = pinocchio_torque(ARM, *motion[1:])
    torque = torque + COULOMB * np.sign(motion[2]) + VISCOUS * motion[2] + OFFSET
    base, friction = base_parameters(ARM, rotor_inertia=True), friction_model('coulomb_viscous+offset')
    inertial = base.map @ standard_parameters(ARM, rotor_inertia=True)
    true = np.concatenate([inertial, np.stack([COULOMB, VISCOUS, OFFSET], axis=1).ravel()])
    rng = np.random.default_rng(2)
    squares, relative = [], []
    for _ in range(REPETITIONS):
        white = rng.normal(0.0, NOISE, (len(torque) + 200, 2))
        noise = signal.lfilter([np.sqrt(1.0 - correlation**2)], [1.0, -correlation], white, axis=0)[200:]
        samples = as_samples(
            [dataset(ARM, motion, torque + noise)], ARM, standstill_speed=0.0, standstill_weight=1.0
        )  # fmt: skip
        fit = least_squares(Rows(base, samples), friction, np.zeros((2, 0)), dissipative=False)
        error = np.concatenate([fit.base_values, fit.friction_parameters.ravel()]) - true
        assert fit.determined.all()
        squares.append(error @ np.linalg.solve(fit.covariance, error))
        relative.append(error / np.sqrt(np.diag(fit.covariance)))
    count = REPETITIONS * len(true)
    low, high = stats.chi2.ppf([0.5 * CHANCE, 1.0 - 0.5 * CHANCE], count) / count
    slack = 1.15 if correlation else 1.03
    assert low / slack < np.sum(squares) / count < high * slack
    # each parameter by itself: one that is told too small may not hide behind one that is told too large
    share = 0.5 * CHANCE / len(true)
    low, high = stats.chi2.ppf([share, 1.0 - share], REPETITIONS) / REPETITIONS
    each = np.mean(np.square(relative), axis=0)
    assert (low / slack < each).all()
    assert (each < high * slack).all()


@pytest.mark.slow
def test_what_a_joint_at_rest_leaves_open_is_said() -> None:
    """The elbow stands still: its friction acts on no sample, its rotor inertia neither; the shoulder's are told."""
    time, *motion = fourier_motion(2, np.random.default_rng(1), seconds=6.0)
    motion = [values * np.array([1.0, 0.0]) for values in motion]
    torque = pinocchio_torque(ARM, *motion) + COULOMB * np.sign(motion[1]) + VISCOUS * motion[1]
    torque += np.random.default_rng(2).normal(0.0, 0.02, torque.shape)
    data = dataset(ARM, (time, *motion), torque)
    base, friction = base_parameters(ARM, rotor_inertia=True), friction_model('coulomb_viscous')
    samples = as_samples([data], ARM, standstill_speed=0.0, standstill_weight=1.0)
    fit = least_squares(Rows(base, samples), friction, np.zeros((2, 0)))
    determined = fit.determined[len(base.names) :].reshape(2, 2)
    assert determined.tolist() == [[True, True], [False, False]]
    assert np.isinf(fit.std[len(base.names) + 2 :]).all()
    result = identify(data, ARM, friction='coulomb_viscous')
    assert [verdict.usable for verdict in result.joints] == [True, False]
    assert 'it did not move' in result.joints[1].reason


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_the_default_fit_covers_the_truth_as_often_as_it_tells() -> None:
    """With a description as wrong as descriptions are, 95 % intervals hold the truth in 90 to 99 %."""
    rng = np.random.default_rng(3)
    config = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)
    base = base_parameters(ARM, rotor_inertia=config.rotor_inertia)
    true = base.map @ standard_parameters(ARM, rotor_inertia=config.rotor_inertia)
    inside = []
    for _ in range(20):
        motion = fourier_motion(2, rng, seconds=6.0)
        torque = pinocchio_torque(ARM, *motion[1:]) + COULOMB * np.sign(motion[2]) + VISCOUS * motion[2] + OFFSET
        torque += rng.normal(0.0, NOISE, torque.shape)
        wrong = replace(ARM, inertial=ARM.inertial * (1.0 + 0.3 * rng.standard_normal((ARM.n, 1))))
        result = identify(dataset(ARM, motion, torque), wrong, config=config)
        values, deviations = np.array(result.base_values), np.array(result.base_std)
        inside.append(np.abs(values - true) < 1.96 * deviations)
    assert 0.90 < np.mean(inside) < 0.99, np.mean(inside, axis=0)
