# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The drives of the simulated arm: what they add to torque and position, in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from errors_helpers import refused

from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description
from robotid_ros.simulation import Drive, Plant, PlantMotion, nominal_truth, perturb, simulate_trajectory


def _turning(rate: float = 1.0, load: float = 0.0) -> PlantMotion:
    """Return a joint that turns once, at a constant speed, and carries a load."""
    time = np.arange(0.0, 2.0 * np.pi, 2.0 * np.pi / 4096)[:, None]
    still = np.zeros_like(time)
    friction = np.full_like(time, 3.0 * np.sign(rate))
    torque = load + friction
    return PlantMotion(
        position=rate * time,
        velocity=rate + still,
        acceleration=still,
        torque=torque,
        motor_torque=torque,
        friction=friction,
    )


@pytest.mark.parametrize(('rate', 'load'), [(1.0, 20.0), (-1.0, 20.0), (1.0, -20.0), (-1.0, -20.0)])
def test_friction_of_the_load_opposes_the_motion_whatever_the_load(rate: float, load: float) -> None:
    motion = _turning(rate, load)
    shown = replace(Drive.ideal(1), load_friction=np.array([0.05])).shown(motion)
    np.testing.assert_allclose(shown.motor_torque - motion.motor_torque, np.sign(rate) * 1.0, atol=1e-12)
    np.testing.assert_array_equal(shown.position, motion.position)


def test_a_ripple_has_a_hundred_waves_a_turn() -> None:
    motion = _turning()
    added = (replace(Drive.ideal(1), ripple=np.array([0.7])).shown(motion).motor_torque - motion.motor_torque)[:, 0]
    lines = np.abs(np.fft.rfft(added)) * 2.0 / len(added)
    assert lines.argmax() == 100
    assert lines[100] == pytest.approx(0.7, rel=1e-9)
    assert np.delete(lines, 100).max() < 1e-9


def test_the_motor_stands_off_its_link_by_torque_over_stiffness() -> None:
    motion = _turning(load=20.0)
    shown = replace(Drive.ideal(1), compliance=np.array([1.0 / 4600.0])).shown(motion)
    np.testing.assert_allclose(shown.position - motion.position, 23.0 / 4600.0, atol=1e-12)
    np.testing.assert_array_equal(shown.motor_torque, motion.motor_torque)


def test_a_late_effort_is_the_same_effort_later() -> None:
    pytest.importorskip('mujoco', reason='needs the sim extra')
    model = RobotModel.from_urdf(arm_description('ur10e'))
    time = np.arange(0.0, 1.01, 0.02)
    reference = (
        np.sin(time)[:, None] * np.ones(6),
        np.cos(time)[:, None] * np.ones(6),
        -np.sin(time)[:, None] * np.ones(6),
    )
    truth = nominal_truth(model)
    runs = [
        simulate_trajectory(Plant(replace(truth, drive=replace(truth.drive, delay=delay)), model), time, *reference)
        for delay in (0.0, 0.004)
    ]
    at_once, late = (run.recording for run in runs)
    np.testing.assert_allclose(late.effort[2:], at_once.effort[:-2], atol=1e-9)
    assert np.abs(late.effort[2:] - at_once.effort[2:]).max() > 0.1
    np.testing.assert_array_equal(late.position, at_once.position)


def test_link_lengths_are_drawn_within_their_error_and_keep_their_directions() -> None:
    model = RobotModel.from_urdf(arm_description('ur10e'))
    truth = perturb(model, np.random.default_rng(1), 0.0, friction_scale=0.0, geometry_error=0.01)
    described, true = model.placements[:, :3, 3], truth.model.placements[:, :3, 3]
    np.testing.assert_allclose(np.cross(described, true), 0.0, atol=1e-15)
    long = np.linalg.norm(described, axis=1) > 0.0
    ratio = np.linalg.norm(true[long], axis=1) / np.linalg.norm(described[long], axis=1) - 1.0
    assert 0.003 < np.abs(ratio).max() <= 0.01
    np.testing.assert_array_equal(truth.model.placements[:, :3, :3], model.placements[:, :3, :3])


@pytest.mark.parametrize(
    ('change', 'found'),
    [({'load_friction': [-0.1]}, -0.1), ({'ripple': [1.0, 2.0]}, (2,)), ({'delay': -1.0}, -1.0)],
)
def test_numbers_that_mean_nothing_are_refused(change: dict, found: object) -> None:
    given = {'load_friction': [0.0], 'ripple': [0.0], 'compliance': [0.0], **change}
    with refused(ModelError, name=next(iter(change)), found=found):
        Drive(**{name: value if name == 'delay' else np.array(value) for name, value in given.items()})
