# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Contact detection: false alarms of a simulated hour, delay of a push, joints that stick."""

from dataclasses import replace

import numpy as np
import pytest
from dynamics_helpers import arm
from export_helpers import identified
from scipy.signal import lfilter

from robotid_ros.identification import TorquePredictor
from robotid_ros.identification.contact import ContactDetector, standstill_friction
from robotid_ros.identification.monitor import TorqueMonitor
from robotid_ros.identification.setup import SetUp

RATE, CUTOFF = 100.0, 10.0


def test_false_alarms_of_a_simulated_hour_are_as_stated() -> None:
    rate, cutoff, spread = 50.0, 5.0, np.array([2.0, 5.0])
    share = 1.0 - np.exp(-2.0 * np.pi * cutoff / rate)
    noise = np.random.default_rng(0).normal(size=(int(3600 * rate) + 200, 2))
    for _ in range(2):
        noise = lfilter([share], [1.0, share - 1.0], noise, axis=0)
    residual = spread * noise[200:] / noise.std(axis=0)
    detector = ContactDetector(spread=1.5 * spread, bandwidth=cutoff, friction=np.zeros(2), alarms_per_hour=20.0)
    alarms, before, moving = 0, np.zeros(2, dtype=bool), np.ones(2)
    for k, row in enumerate(residual):
        touched = detector.update(k / rate, row, moving)
        alarms += int((touched & ~before).sum())
        before = touched
    # Four standard deviations of a count to either side; samples show fewer crossings than the continuous process has.
    assert 5 <= alarms <= 38
    np.testing.assert_allclose(detector.threshold, spread * np.sqrt(2 * np.log(2 * 2 * cutoff * 3600 / 20)), rtol=0.1)
    rare = ContactDetector(spread=spread, bandwidth=cutoff, friction=np.zeros(2), alarms_per_hour=0.01)
    assert (np.abs(residual) < rare.threshold).all()


def test_a_torque_that_the_identification_turned_is_turned_as_it_comes() -> None:
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    names = [model.joint_names[1], model.joint_names[4]]
    sign = np.where(np.isin(model.joint_names, names), -1.0, 1.0)
    described = SetUp.as_described(model)
    sound, turned = (
        TorqueMonitor(TorquePredictor(model, replace(result, setup=setup)), cutoff=CUTOFF)
        for setup in (described, replace(described, torque=np.diag(sign)))
    )
    rng, found = np.random.default_rng(3), []
    for k in range(40):
        q, dq, torque = rng.normal(size=(3, 6))
        found = [sound.update(k / RATE, q, dq, torque), turned.update(k / RATE, q, dq, sign * torque)]
    one, other = found
    for name in ('measured', 'external', 'predicted'):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert np.abs(one.measured).min() > 0.0


def test_a_push_of_20_n_at_the_tip_is_felt_within_a_tenth_of_a_second() -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    predictor = TorquePredictor(model, result)
    monitor = TorqueMonitor(predictor, cutoff=CUTOFF)
    detector = ContactDetector(
        spread=np.full(6, 2.0), bandwidth=CUTOFF, friction=standstill_friction(result.friction, result.friction_values)
    )
    time = np.arange(int(20 * RATE)) / RATE
    phase, middle = np.arange(6.0), np.array([0.0, -1.2, 1.0, -0.5, 0.5, 0.0])
    q = middle + 0.4 * np.sin(1.5 * time[:, None] + phase)
    dq, ddq = 0.6 * np.cos(1.5 * time[:, None] + phase), -0.9 * np.sin(1.5 * time[:, None] + phase)
    whole = pinocchio.buildModelFromXML(model.source)
    data = whole.createData()
    tip = whole.getFrameId('tool0')
    torque = predictor.torque(q, dq, ddq) + np.random.default_rng(1).normal(0.0, 2.0, q.shape)
    start = int(15 * RATE)
    for k in range(start, len(q)):
        jacobian = pinocchio.computeFrameJacobian(whole, data, q[k], tip, pinocchio.LOCAL_WORLD_ALIGNED)
        torque[k] += jacobian[:3].T @ [0.0, 20.0 * 0.6, 20.0 * 0.8]
    felt = []
    for k in range(len(q)):
        seen = monitor.update(time[k], q[k], dq[k], torque[k])
        if seen is not None and detector.update(time[k], seen.external, seen.velocity).any():
            felt.append(time[k])
    assert felt
    assert 0.0 < felt[0] - time[start] < 0.1


def test_a_joint_that_sticks_may_hold_its_friction_and_no_more() -> None:
    result = identified(arm('ur10e'), 'stribeck')
    level = standstill_friction(result.friction, result.friction_values)
    static = result.friction_values[:, result.friction_names.index('static')]
    coulomb = result.friction_values[:, result.friction_names.index('coulomb')]
    assert (level >= 0.95 * np.minimum(static, coulomb)).all()
    assert (level < 1.2 * np.maximum(static, coulomb) + 0.2).all()
    detector = ContactDetector(spread=np.full(6, 0.1), bandwidth=CUTOFF, friction=level)
    limit = detector.threshold
    assert not detector.update(0.0, 0.9 * (level + limit), np.zeros(6)).any()
    assert detector.update(0.01, 1.1 * (level + limit), np.zeros(6)).all()
    assert detector.update(0.02, 0.6 * (level + limit), np.zeros(6)).all()  # it has not ended
    assert not detector.update(0.03, 0.4 * (level + limit), np.zeros(6)).any()
    assert not detector.update(0.04, 1.1 * limit, np.ones(6)).any()  # it has just left its standstill
    assert detector.update(0.2, 1.1 * limit, np.ones(6)).all()  # a joint in motion has no such allowance
    np.testing.assert_array_equal(detector.threshold, limit)  # contacts and standstill teach nothing
