# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

from pathlib import Path

import numpy as np
import pytest

from robotid_ros.data import ProcessingSettings
from robotid_ros.data.settings import torque_factors
from robotid_ros.errors import DataError
from robotid_ros.signals import check_motor_side, prior_factors


def test_current_times_constant_times_ratio():
    settings = ProcessingSettings(torque_constants={'a': 0.1, 'b': 0.05}, gear_ratios={'a': 100.0, 'b': 50.0})
    assert torque_factors(('a', 'b', 'c'), settings, (True, True, False)).tolist() == [10.0, 2.5, 1.0]


@pytest.mark.parametrize('constant', [0.0, np.nan, np.inf])
def test_useless_constants_are_refused(constant):
    with pytest.raises(DataError, match="'a': expected"):
        torque_factors(('a',), ProcessingSettings(torque_constants={'a': constant}), (True,))


def measured(rng, sign=1.0, scale=1.0):
    time = np.arange(4000) / 200.0
    velocity = np.stack([np.cos(time), np.cos(1.3 * time)], axis=1)
    acceleration = np.stack([-np.sin(time), -1.3 * np.sin(1.3 * time)], axis=1)
    prior = np.stack([20.0 * np.sin(0.7 * time), 8.0 * np.sin(0.4 * time)], axis=1)
    friction = 6.0 * np.sign(velocity) + 3.0 * velocity
    torque = 1.2 * prior + friction + 25.0 * acceleration + 1.0 + 0.5 * rng.standard_normal(prior.shape)
    torque[:, 1] *= sign * scale
    return torque, prior, velocity, acceleration


def test_a_right_sign_gives_no_warning():
    torque, *others = measured(np.random.default_rng(1))
    assert check_motor_side(prior_factors(torque, *others), ('one', 'two')) == ()


def test_a_reversed_sign_is_named():
    torque, *others = measured(np.random.default_rng(2), sign=-1.0)
    (sentence,) = check_motor_side(prior_factors(torque, *others), ('one', 'two'))
    assert 'the torque of two looks reversed' in sentence


def test_a_wrong_scale_is_named():
    torque, *others = measured(np.random.default_rng(3), scale=10.0)
    (sentence,) = check_motor_side(prior_factors(torque, *others), ('one', 'two'))
    assert sentence.startswith('the torque is 12 times at two of what')


def test_a_prior_that_says_nothing_is_not_held_against_the_measurement():
    rng = np.random.default_rng(4)
    torque, *others = measured(rng)
    others[0] = np.stack([np.zeros(len(torque)), 1e-3 * rng.standard_normal(len(torque))], axis=1)
    assert check_motor_side(prior_factors(torque, *others), ('one', 'two')) == ()


UR10 = Path(__file__).parents[3] / 'shared' / 'data' / 'ur10_exciting'


@pytest.mark.skipif(not UR10.exists(), reason='the UR10 recording is not beside this repository')
def test_a_real_arm_against_its_published_urdf():
    from robotid_ros.data import process_file
    from robotid_ros.dynamics import inverse_dynamics
    from robotid_ros.model import RobotModel

    dataset, _ = process_file(UR10)
    model = RobotModel.from_urdf(Path(__file__).parents[1] / 'robots' / 'ur10.urdf')
    prior = inverse_dynamics(model, dataset.q, dataset.dq, dataset.ddq)
    others = (prior, dataset.dq, dataset.ddq)
    assert not any(
        'reversed' in sentence
        for sentence in check_motor_side(prior_factors(dataset.tau, *others), dataset.joint_names)
    )
    for j, joint in enumerate(dataset.joint_names[:4]):
        turned = dataset.tau * np.where(np.arange(6) == j, -1.0, 1.0)
        named = [
            sentence
            for sentence in check_motor_side(prior_factors(turned, *others), dataset.joint_names)
            if 'reversed' in sentence
        ]
        assert len(named) == 1
        assert f'the torque of {joint} looks reversed' in named[0]
