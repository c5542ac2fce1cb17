# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A payload from ten seconds of any motion: Pinocchio's torques, friction that sticks at rest and grows with load."""

from dataclasses import replace

import numpy as np
import pytest
from identification_helpers import UR10E, as_described, dataset, fourier_motion, pinocchio_torque

from robotid_ros.data import Dataset
from robotid_ros.errors import IdentificationError
from robotid_ros.identification import IdentificationResult, identify
from robotid_ros.loads import identify_payload
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters, split_inertial_parameters

ARM = RobotModel.from_urdf(UR10E)
NOISE = np.array([0.6, 0.6, 0.4, 0.15, 0.15, 0.15])
COULOMB = np.array([8.0, 8.0, 5.0, 2.0, 2.0, 2.0])


def recorded(motion: tuple, rng: np.random.Generator, arm: RobotModel = ARM, loss: float = 0.05):
    """Return what an arm shows that moves so: at rest a joint holds any torque within its friction."""
    time, q, dq, ddq = motion
    rigid = pinocchio_torque(arm, q, dq, ddq)
    moving = np.sign(dq) * (COULOMB + loss * np.abs(rigid)) + 1.5 * dq
    stuck = rng.uniform(-0.8, 0.8, ARM.n) * COULOMB
    torque = rigid + np.where(dq == 0.0, stuck, moving) + rng.normal(0.0, 1.0, q.shape) * NOISE
    return dataset(ARM, (time, q, dq, ddq), torque)


def carrying(payload: np.ndarray) -> RobotModel:
    inertial = np.array(ARM.inertial)
    inertial[-1] += payload
    return ARM.with_inertial(inertial)


def only(motion: tuple, *joints: int) -> tuple:
    """Return a motion in which the other joints rest."""
    time, q, dq, ddq = (np.array(each) for each in motion)
    still = [k for k in range(ARM.n) if k not in joints]
    q[:, still], dq[:, still], ddq[:, still] = [0.3, -1.1, 1.2, 0.4, 0.9, 0.2][: ARM.n] @ np.eye(ARM.n)[:, still], 0, 0
    return time, q, dq, ddq


def drawn(rng: np.random.Generator) -> np.ndarray:
    mass, side = rng.uniform(0.5, 4.0), rng.uniform(0.03, 0.12, 3)
    inertia = mass / 12.0 * np.diag(np.sum(side**2) - side**2)
    return inertial_parameters(mass, rng.uniform([-0.08, -0.08, -0.03], [0.08, 0.08, 0.13]), inertia)


@pytest.fixture(scope='module')
def alone() -> IdentificationResult:
    runs = [
        recorded(fourier_motion(6, np.random.default_rng(seed), size=0.9), np.random.default_rng(seed))
        for seed in (1, 2)
    ]
    with as_described():
        return identify(runs, ARM, friction='coulomb_viscous+load+offset')


@pytest.mark.slow
@pytest.mark.parametrize('joints', [(0, 1, 2, 3, 4, 5), (1, 3, 4, 5)])
def test_the_truth_is_within_two_deviations(alone: IdentificationResult, joints: tuple[int, ...]) -> None:
    deviations = []
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        payload = drawn(rng)
        run = recorded(only(fourier_motion(6, rng, size=0.7), *joints), rng, carrying(payload))
        found = identify_payload(run, ARM, alone)
        assert 'mass' not in found.undetermined
        mass, centre, inertia = found.deviations
        truth = split_inertial_parameters(payload)
        upper = np.triu_indices(3)
        away = np.concatenate(
            [
                [(found.mass - truth[0]) / mass],
                (found.centre_of_mass - truth[1]) / centre,
                ((found.inertia - truth[2]) / inertia)[upper],
            ]
        )
        deviations.append(away)
        assert mass < 0.05 * truth[0] + 0.05  # and they say something
    away = np.array(deviations)
    assert np.mean(np.abs(away) < 2.0) >= 0.9
    rms = np.sqrt(np.mean(away**2, axis=0))  # of twelve runs each
    assert rms.max() < 1.75, rms
    assert np.median(rms) > 0.4, rms


def test_a_motion_that_tells_nothing_is_named_and_the_motion_it_asks_for_tells(alone: IdentificationResult) -> None:
    """Turning about the vertical axis shows no weight: the arm is asked to move other joints, and then it is known."""
    rng = np.random.default_rng(5)
    payload = inertial_parameters(2.5, np.array([0.03, -0.02, 0.1]), np.diag([0.01, 0.012, 0.008]))
    run = recorded(only(fourier_motion(6, rng), 0), rng, carrying(payload))
    found = identify_payload(run, ARM, alone)
    assert 'mass' in found.undetermined
    assert 'does not determine: mass' in found.said()
    motion = found.motion
    assert motion is not None
    assert 'mass' not in motion.leaves
    time, *moves = motion.sample(100.0)
    q, dq, ddq = (np.tile(row, (len(time), 1)) for row in (run.q[-1], np.zeros(6), np.zeros(6)))
    for whole, part in zip((q, dq, ddq), moves, strict=True):
        whole[:, [ARM.joint_names.index(name) for name in motion.joints]] = part
    assert (np.abs(dq) <= ARM.limits.velocity).all()
    assert (q >= ARM.limits.lower).all()
    assert (q <= ARM.limits.upper).all()
    np.testing.assert_allclose(np.diff(q, axis=0) * 100.0, 0.5 * (dq[1:] + dq[:-1]), atol=2e-3)
    again = identify_payload([run, recorded((time, q, dq, ddq), rng, carrying(payload))], ARM, alone)
    assert set(again.undetermined) <= set(motion.leaves)
    assert again.mass == pytest.approx(2.5, abs=3.0 * again.deviations[0])
    assert found.to_dict()['motion']['joints'].keys() == set(motion.joints)


@pytest.mark.slow
@pytest.mark.parametrize(('length', 'mass'), [(0.01, 1e-6), (30.0, 1e5)])
def test_an_arm_of_any_size_is_told_the_same_of_its_payload(
    alone: IdentificationResult, length: float, mass: float
) -> None:
    """The same arm in other units of length and mass: what is known of the payload is known, and nothing else."""
    torque = mass * length**2
    units = np.array([torque] * 6 + [mass * length] * 3 + [mass])
    space = np.ones((4, 4))
    space[:3, 3] = length
    attached = tuple(
        tuple(replace(each, placement=each.placement * space, inertial=each.inertial * units) for each in some)
        for some in ARM.attached
    )
    rotors = torque * ARM.rotor_inertia
    limits = replace(ARM.limits, effort=torque * ARM.limits.effort)
    scaled_arm = {
        'limits': limits,
        'placements': ARM.placements * space,
        'tip': ARM.tip * space,
        'gravity': length * ARM.gravity,
    }
    other = ARM.with_inertial(ARM.inertial * units, attached=attached, rotor_inertia=rotors, **scaled_arm)

    def scaled(run: Dataset) -> Dataset:
        return replace(run, tau=torque * run.tau, tau_filtered=torque * run.tau_filtered)

    rng = np.random.default_rng(5)
    payload = inertial_parameters(0.7, np.array([0.03, -0.02, 0.1]), np.diag([0.004, 0.005, 0.003]))
    runs = [recorded(only(fourier_motion(6, rng), *joints), rng, carrying(payload)) for joints in ((0,), (2, 4, 5))]
    empty = [
        recorded(fourier_motion(6, np.random.default_rng(seed), size=0.9), np.random.default_rng(seed))
        for seed in (1, 2)
    ]
    with as_described():
        own = identify([scaled(run) for run in empty], other, friction='coulomb_viscous+load+offset')
    for run in runs:
        found, usual = identify_payload(scaled(run), other, own), identify_payload(run, ARM, alone)
        assert found.undetermined == usual.undetermined
        told = np.isfinite(usual.std)
        away = (found.free / units - usual.free)[told] / usual.std[told]
        np.testing.assert_allclose(away, 0.0, atol=0.1)
    assert 'mass' not in usual.undetermined


def test_an_arm_at_rest_is_refused(alone: IdentificationResult) -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(IdentificationError, match='no joint moves faster than'):
        identify_payload(recorded(only(fourier_motion(6, rng)), rng), ARM, alone)


def test_friction_by_load_that_was_hardly_seen_is_hardly_believed(alone: IdentificationResult) -> None:
    """A last joint that carried nothing may show any; it must not be multiplied by the payload."""
    rng = np.random.default_rng(8)
    payload = drawn(rng)
    run = recorded(fourier_motion(6, rng, size=0.7), rng, carrying(payload))
    where = alone.friction_names.index('load')
    values, std = np.array(alone.friction_values), np.array(alone.friction_std)
    values[5, where], std[5, where] = 5.0, 3.0
    found = identify_payload(run, ARM, replace(alone, friction_values=values, friction_std=std))
    assert found.mass == pytest.approx(payload[9], rel=0.03)
    assert found.rmse_with[5] < 0.7
    np.testing.assert_allclose(found.centre_of_mass, payload[6:9] / payload[9], atol=0.01)


def test_what_is_not_known_of_the_arm_is_not_known_of_the_payload(alone: IdentificationResult) -> None:
    """Variances add: with twice the deviations of the arm's parameters, what they add is four times as large."""
    rng = np.random.default_rng(9)
    run = recorded(fourier_motion(6, rng, size=0.7), rng, carrying(drawn(rng)))
    none, once, twice = (
        np.diag(identify_payload(run, ARM, replace(alone, base_std=size * alone.base_std)).covariance)
        for size in (0.0, 1.0, 2.0)
    )
    assert (once > none).all()
    np.testing.assert_allclose(twice - none, 4.0 * (once - none), rtol=1e-6)
