# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The simulated arm against Pinocchio, closed forms and conservation laws."""

import sys

import numpy as np
import pytest
from errors_helpers import refused
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from scipy.stats import kstest
from simulation_helpers import CRANE, FLYWHEEL, PENDULUM, UR10E, pinocchio_model, pinocchio_torque, sine_reference

from robotid_ros.errors import DataError, MissingDependencyError, ModelError, ModelWarning
from robotid_ros.model import RobotModel
from robotid_ros.simulation import (
    JointFriction,
    Plant,
    Sensors,
    effort_scale,
    nominal_truth,
    perturb,
    simulate_trajectory,
)

pytest.importorskip('mujoco', reason='needs the sim extra')


def lone_plant(urdf: str, friction: JointFriction, rate: float = 1000.0) -> Plant:
    model = RobotModel.from_urdf(urdf)
    return Plant(nominal_truth(model, friction=friction), model, rate=rate, bandwidth=10.0)


@pytest.mark.parametrize('urdf', [UR10E, CRANE, PENDULUM], ids=['ur10e', 'crane', 'pendulum'])
def test_torque_is_pinocchios_inverse_dynamics_of_the_motion_plus_friction(urdf) -> None:
    pytest.importorskip('pinocchio', reason='needs pin')
    model = RobotModel.from_urdf(urdf)
    rng = np.random.default_rng(3)
    truth = perturb(model, rng, 0.2)
    plant = Plant(truth, model, torque_noise=1e-3 * effort_scale(model), rng=rng)
    q, dq, ddq = sine_reference(model, plant.rate, 3.0)
    plant.reset(q[0], dq[0], ddq[0])
    motion = plant.run(q, dq, ddq)

    pin, data = pinocchio_model(urdf, truth.model)
    f = truth.friction
    slipping = np.abs(motion.velocity) > 0.02
    for k in range(0, len(q), 7):
        rigid = pinocchio_torque(pin, data, motion.position[k], motion.velocity[k], motion.acceleration[k])
        np.testing.assert_allclose(rigid + motion.friction[k], motion.torque[k], atol=1e-5)
        v = motion.velocity[k]
        closed_form = f.coulomb * np.sign(v) + f.viscous * v
        np.testing.assert_allclose(motion.friction[k][slipping[k]], closed_form[slipping[k]], atol=1e-9)
    assert slipping.mean() > 0.9


def test_recorded_positions_carry_the_recorded_velocities_and_accelerations() -> None:
    """No half-step delay: second and central differences of the positions are the derivatives."""
    model = RobotModel.from_urdf(CRANE)
    plant = Plant(perturb(model, np.random.default_rng(0)), model)
    q, dq, ddq = sine_reference(model, plant.rate, 2.0)
    plant.reset(q[0], dq[0], ddq[0])
    motion = plant.run(q, dq, ddq)
    h = 1.0 / plant.rate
    second = np.diff(motion.position, n=2, axis=0) / h**2
    central = (motion.position[2:] - motion.position[:-2]) / (2.0 * h)
    np.testing.assert_allclose(second, motion.acceleration[1:-1], atol=1e-7)
    np.testing.assert_allclose(central, motion.velocity[1:-1], atol=1e-10)


def test_energy_is_conserved_without_friction() -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    with pytest.warns(ModelWarning, match='reach'):
        model = RobotModel.from_urdf(CRANE, joints=['turn', 'luff'])
    plant = Plant(nominal_truth(model, friction=JointFriction.none(2)), model)
    plant.reset(np.array([0.3, -1.0]))
    motion = plant.run_torque(np.zeros((5000, 2)))
    # Pinocchio has the prismatic joint too; it rests at zero.
    pin, data = pinocchio_model(CRANE, RobotModel.from_urdf(CRANE))
    kinetic, potential = np.empty((2, 5000))
    for k in range(5000):
        q, dq = (np.append(row[k], 0.0) for row in (motion.position, motion.velocity))
        kinetic[k] = pinocchio.computeKineticEnergy(pin, data, q, dq)
        potential[k] = pinocchio.computePotentialEnergy(pin, data, q)
    assert kinetic.max() > 20.0
    assert np.ptp(kinetic + potential) < 2e-4 * kinetic.max()


@pytest.mark.parametrize('amplitude', [0.1, 1.5, 2.8])
def test_pendulum_swings_with_the_period_of_the_elliptic_integral(amplitude: float) -> None:
    plant = lone_plant(PENDULUM, JointFriction.none(1))
    plant.reset(np.array([amplitude]))
    position = plant.run_torque(np.zeros((12000, 1))).position[:, 0]
    down = np.flatnonzero((position[:-1] > 0.0) & (position[1:] <= 0.0))
    crossing = down + position[down] / (position[down] - position[down + 1])
    inertia, moment = 0.06 + 3.0 * 0.25, 3.0 * 0.5
    exact = 4.0 * np.sqrt(inertia / (moment * 9.81)) * ellipk(np.sin(amplitude / 2.0) ** 2)
    assert len(crossing) > 2
    np.testing.assert_allclose(np.diff(crossing) / plant.rate, exact, rtol=2e-5)


def test_error_falls_with_the_square_of_the_step() -> None:
    """Viscous friction and gravity, against scipy's integrator at tight tolerance."""

    def slope(_: float, state: np.ndarray) -> list[float]:
        return [state[1], (-3.0 * 9.81 * 0.5 * np.sin(state[0]) - 0.4 * state[1]) / 0.81]

    exact = solve_ivp(slope, (0.0, 2.0), [1.0, 0.0], rtol=1e-12, atol=1e-12).y[0, -1]
    errors = []
    for rate in (250.0, 500.0, 1000.0):
        plant = lone_plant(PENDULUM, JointFriction(coulomb=np.zeros(1), viscous=np.array([0.4])), rate)
        plant.reset(np.array([1.0]), None, np.array([-3.0 * 9.81 * 0.5 * np.sin(1.0) / 0.81]))
        errors.append(abs(plant.run_torque(np.zeros((round(2.0 * rate) + 1, 1))).position[-1, 0] - exact))
    assert errors[2] < 1e-5
    assert errors[0] / errors[1] > 3.5
    assert errors[1] / errors[2] > 3.5


class TestFriction:
    inertia = 0.75

    def test_coulomb_friction_stops_a_flywheel_at_a_constant_rate(self) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction(coulomb=np.array([3.0]), viscous=np.zeros(1)))
        plant.reset(np.zeros(1), np.array([2.0]), np.array([-4.0]))
        motion = plant.run_torque(np.zeros((1000, 1)))
        t = np.arange(1000) / plant.rate
        stop = 2.0 * self.inertia / 3.0
        np.testing.assert_allclose(motion.velocity[:, 0], np.maximum(2.0 - 4.0 * t, 0.0), atol=1e-3)
        np.testing.assert_allclose(motion.position[-1, 0], 2.0 * stop / 2.0, atol=1e-5)
        np.testing.assert_allclose(motion.friction[t < stop - 2e-3, 0], 3.0, atol=1e-12)

    def test_viscous_friction_lets_the_velocity_decay_exponentially(self) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction(coulomb=np.zeros(1), viscous=np.array([1.5])))
        plant.reset(np.zeros(1), np.array([2.0]), np.array([-4.0]))
        velocity = plant.run_torque(np.zeros((1000, 1))).velocity[:, 0]
        np.testing.assert_allclose(velocity, 2.0 * np.exp(-2.0 * np.arange(1000) / plant.rate), rtol=1e-5)

    def test_viscous_friction_that_stops_a_joint_within_a_step_is_stable(self) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction(coulomb=np.zeros(1), viscous=np.array([4000.0])))
        plant.reset(np.zeros(1), np.array([2.0]))
        velocity = plant.run_torque(np.zeros((60, 1))).velocity[:, 0]
        assert (np.abs(velocity) <= 2.0).all()
        assert np.abs(velocity[-1]) < 1e-6

    @pytest.mark.parametrize('torque', [2.9, -2.9])
    def test_a_joint_sticks_below_its_dry_friction(self, torque: float) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction(coulomb=np.array([3.0]), viscous=np.zeros(1)))
        motion = plant.run_torque(np.full((2000, 1), torque))
        np.testing.assert_allclose(motion.friction[1:, 0], torque, rtol=1e-3)
        assert np.abs(motion.position).max() < 1e-5

    @pytest.mark.parametrize('torque', [3.6, -3.6])
    def test_a_joint_slips_above_it(self, torque: float) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction(coulomb=np.array([3.0]), viscous=np.zeros(1)))
        motion = plant.run_torque(np.full((500, 1), torque))
        np.testing.assert_allclose(motion.acceleration[:, 0], np.sign(torque) * 0.6 / self.inertia, rtol=1e-9)

    def test_stribeck_friction_has_its_closed_form_at_every_velocity(self) -> None:
        friction = JointFriction(
            coulomb=np.array([3.0]),
            viscous=np.array([0.2]),
            breakaway=np.array([2.0]),
            stribeck_velocity=np.array([0.3]),
            offset=np.array([0.4]),
        )
        plant = lone_plant(FLYWHEEL, friction)
        plant.reset(np.zeros(1), np.array([2.0]))
        motion = plant.run_torque(np.zeros((350, 1)))
        v = motion.velocity
        assert v[-1, 0] > 0.01
        assert v[-1, 0] < 0.4
        closed_form = (3.0 + 2.0 * np.exp(-((v / 0.3) ** 2))) * np.sign(v) + 0.2 * v + 0.4
        np.testing.assert_allclose(motion.friction, closed_form, atol=1e-10)
        np.testing.assert_allclose(friction.torque(v), closed_form, atol=1e-12)

    @pytest.mark.parametrize(('gain', 'rate'), [(2.0, 8.0), (-1.8, 5.0)], ids=['rising', 'falling'])
    def test_arctangent_friction_has_its_closed_form_at_every_velocity(self, gain: float, rate: float) -> None:
        friction = JointFriction(
            coulomb=np.array([3.0]),
            viscous=np.array([0.2]),
            arctan_gain=np.array([gain]),
            arctan_rate=np.array([rate]),
            offset=np.array([0.4]),
        )
        plant = lone_plant(FLYWHEEL, friction)
        plant.reset(np.zeros(1), np.array([2.0]))
        motion = plant.run_torque(np.zeros((180, 1)))
        v = motion.velocity
        assert v[-1, 0] > 0.01
        closed_form = 3.0 * np.sign(v) + 0.2 * v + gain * np.arctan(rate * v) + 0.4
        np.testing.assert_allclose(motion.friction[5:], closed_form[5:], atol=1e-6)
        np.testing.assert_allclose(self.inertia * motion.acceleration, -motion.friction, atol=1e-12)
        np.testing.assert_allclose(friction.torque(v), closed_form, atol=1e-12)

    def test_arctangent_friction_slows_a_flywheel_as_its_equation_of_motion_says(self) -> None:
        gain, rate = np.array([3.0]), np.array([40.0])
        friction = JointFriction(coulomb=np.zeros(1), viscous=np.zeros(1), arctan_gain=gain, arctan_rate=rate)
        plant = lone_plant(FLYWHEEL, friction)
        plant.reset(np.zeros(1), np.array([2.0]), -friction.torque(np.array([2.0])) / self.inertia)
        motion = plant.run_torque(np.zeros((600, 1)))
        t = np.arange(600) / plant.rate
        exact = solve_ivp(
            lambda _, v: -3.0 * np.arctan(40.0 * v) / self.inertia,
            (0.0, t[-1]),
            [2.0],
            t_eval=t,
            rtol=1e-10,
            atol=1e-12,
        )
        assert exact.y[0, -1] < 0.1
        np.testing.assert_allclose(motion.velocity[:, 0], exact.y[0], atol=2e-4)

    @pytest.mark.parametrize('rate', [20.0, 2000.0])
    def test_an_arctangent_that_stops_a_joint_within_a_step_is_stable(self, rate: float) -> None:
        friction = JointFriction(
            coulomb=np.zeros(1), viscous=np.zeros(1), arctan_gain=np.array([200.0]), arctan_rate=np.array([rate])
        )
        plant = lone_plant(FLYWHEEL, friction)
        plant.reset(np.zeros(1), np.array([2.0]))
        velocity = plant.run_torque(np.zeros((200, 1))).velocity[:, 0]
        assert (np.abs(velocity) <= 2.0).all()
        assert np.abs(velocity[-1]) < 1e-6
        assert np.argmax(velocity < 0.01) < 12  # 2 rad/s J / (gain pi/2) = 5 ms

    def test_a_joint_at_its_breakaway_level_needs_more_to_start_than_to_run(self) -> None:
        friction = JointFriction(coulomb=np.array([3.0]), viscous=np.zeros(1), breakaway=np.array([2.0]))
        plant = lone_plant(FLYWHEEL, friction)
        ramp = np.linspace(0.0, 6.0, 3000)[:, None]
        motion = plant.run_torque(ramp)
        started = int(np.argmax(motion.position[:, 0] > 1e-4))
        assert ramp[started, 0] == pytest.approx(5.0, abs=0.15)
        np.testing.assert_allclose(motion.friction[-1], 3.0, atol=1e-6)


class TestController:
    @pytest.mark.parametrize('urdf', [UR10E, CRANE], ids=['ur10e', 'crane'])
    def test_follows_its_reference_with_a_small_error(self, urdf) -> None:
        model = RobotModel.from_urdf(urdf)
        plant = Plant(perturb(model, np.random.default_rng(5), 0.15), model)
        q, dq, ddq = sine_reference(model, plant.rate, 4.0)
        plant.reset(q[0], dq[0], ddq[0])
        error = np.abs(plant.run(q, dq, ddq).position - q).max(axis=0)
        assert (error < 1.5e-3).all()
        assert (error > 1e-6).all()

    def test_holds_still(self) -> None:
        model = RobotModel.from_urdf(UR10E)
        plant = Plant(perturb(model, np.random.default_rng(5)), model)
        pose = np.array([0.1, -1.2, 0.8, 0.3, 0.5, 0.0])
        plant.reset(pose)
        still = np.zeros((2000, 6))
        motion = plant.run(still + pose, still, still)
        assert np.abs(motion.position - pose).max() < 1e-5

    def test_torque_stays_within_the_effort_limits(self) -> None:
        plant = lone_plant(FLYWHEEL, JointFriction.none(1))
        step = np.full((50, 1), 1.0)
        motion = plant.run(step, 0.0 * step, 0.0 * step)
        assert motion.motor_torque.max() == 100.0
        np.testing.assert_allclose(motion.acceleration[0], 100.0 / 0.75, rtol=1e-9)


class TestNoise:
    def test_disturbance_and_sensor_noise_have_their_distributions(self) -> None:
        model = RobotModel.from_urdf(UR10E)
        truth = perturb(model, np.random.default_rng(0))
        plant = Plant(truth, model, torque_noise=np.linspace(0.1, 0.6, 6), rng=np.random.default_rng(1))
        pose = np.array([0.1, -1.2, 0.8, 0.3, 0.5, 0.0])
        still = np.zeros((4000, 6))
        plant.reset(pose)
        motion = plant.run(still + pose, still, still)
        sensors = Sensors.typical(model, truth.drive_gain, encoder_bits=0, position_noise=1e-4, effort_noise=1e-3)
        seen = sensors.measure(motion, np.random.default_rng(2))
        for k in range(6):
            for sample, scale in (
                (motion.torque - motion.motor_torque, plant.torque_noise[k]),
                (seen['position'] - motion.position, 1e-4),
                (seen['velocity'] - motion.velocity, 1e-3),
                (seen['effort'] - motion.motor_torque, 1e-3 * model.limits.effort[k]),
            ):
                assert kstest(sample[:, k] / scale, 'norm').pvalue > 1e-4
        np.testing.assert_allclose(seen['current'] * truth.drive_gain, seen['effort'], rtol=1e-12)
        np.testing.assert_allclose(truth.drive_gain, 0.12 * 101.0)

    def test_positions_lie_on_the_encoders_grid(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        truth = nominal_truth(model)
        plant = Plant(truth, model)
        q, dq, ddq = sine_reference(model, plant.rate, 1.0)
        motion = plant.run(q, dq, ddq)
        sensors = Sensors.typical(model, truth.drive_gain, encoder_bits=12, position_noise=0.0)
        seen = sensors.measure(motion, np.random.default_rng(0))['position']
        for k, step in enumerate((2 * np.pi / 4096, 2 * np.pi / 4096, 1 / 4096)):
            np.testing.assert_allclose(seen[:, k] / step, np.rint(seen[:, k] / step), atol=1e-9)
            assert np.abs(seen[:, k] - motion.position[:, k]).max() <= 0.5 * step * (1 + 1e-9)

    def test_a_gear_that_turns_the_other_way_turns_the_current(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        model = model.with_inertial(model.inertial, gear_ratio=np.array([-100.0, 100.0, 100.0]))
        truth = nominal_truth(model)
        q, dq, ddq = sine_reference(model, 100.0, 1.0)
        sensors = Sensors.typical(model, truth.drive_gain)
        run = simulate_trajectory(Plant(truth, model), np.arange(100) / 100.0, q, dq, ddq, sensors=sensors).recording
        np.testing.assert_allclose(run.current * [-12.0, 12.0, 12.0], run.effort, rtol=1e-9)
        with refused(ModelError, name='drive_gain', found=0.0):
            Sensors.perfect(np.zeros(3))

    def test_equal_seeds_give_equal_recordings(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        q, dq, ddq = sine_reference(model, 100.0, 1.0)

        def run(seed: int) -> np.ndarray:
            rng = np.random.default_rng(seed)
            plant = Plant(perturb(model, rng), model, torque_noise=np.ones(3), rng=rng)
            sensors = Sensors.typical(model, plant.truth.drive_gain)
            result = simulate_trajectory(plant, np.arange(100) / 100.0, q, dq, ddq, sensors=sensors, rng=rng)
            return result.recording.effort

        np.testing.assert_array_equal(run(4), run(4))
        assert np.abs(run(4) - run(5)).max() > 1e-3


class TestSimulateTrajectory:
    def test_records_at_the_rate_asked_for_with_the_truth_beside_it(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        truth = perturb(model, np.random.default_rng(0))
        plant = Plant(truth, model)
        q, dq, ddq = sine_reference(model, 50.0, 2.0)
        run = simulate_trajectory(plant, 5.0 + np.arange(100) / 50.0, q, dq, ddq, rate=250.0)
        np.testing.assert_allclose(run.time, 5.0 + np.arange(496) / 250.0, atol=1e-12)
        assert run.recording.joint_names == ('turn', 'luff', 'reach')
        assert run.recording.rate == pytest.approx(250.0)
        np.testing.assert_array_equal(run.recording.position, run.position)
        np.testing.assert_array_equal(run.recording.effort, run.motor_torque)
        moving = (np.abs(run.velocity) > 0.02).all(axis=1)
        model_torque = truth.torque(run.position, run.velocity, run.acceleration)
        np.testing.assert_allclose(model_torque[moving], run.torque[moving], atol=1e-5)
        np.testing.assert_allclose(run.position[::5], q[: len(run.position[::5])], atol=1e-3)

    @pytest.mark.parametrize(
        ('change', 'about'),
        [
            ({'rate': 300.0}, {'expected': 1000.0, 'found': 300.0}),
            ({'rate': 0.0}, {'expected': 1000.0}),
            ({'time': np.zeros(10)}, {}),
            ({'q_ref': np.zeros((10, 2))}, {'expected': (10, 3), 'found': (10, 2)}),
            ({'dq_ref': np.full((10, 3), np.nan)}, {'expected': None}),
        ],
    )
    def test_refuses_what_it_cannot_follow(self, change: dict, about: dict) -> None:
        model = RobotModel.from_urdf(CRANE)
        plant = Plant(nominal_truth(model), model)
        arguments = {'time': np.arange(10) / 10.0, 'q_ref': np.zeros((10, 3)), 'dq_ref': np.zeros((10, 3))}
        arguments |= {'ddq_ref': np.zeros((10, 3)), 'rate': 500.0} | change
        with refused(DataError, name=next(iter(change)), **about):
            simulate_trajectory(plant, **arguments)


class TestRefusals:
    def test_a_link_without_mass_is_named(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        inertial = model.inertial.copy()
        inertial[1] = 0.0
        with refused(ModelError, name='jib', found=0.0):
            Plant(nominal_truth(model.with_inertial(inertial)), model)

    def test_a_link_that_cannot_exist_is_named(self) -> None:
        model = RobotModel.from_urdf(CRANE)
        inertial = model.inertial.copy()
        inertial[2, :6] *= -1.0
        with refused(ModelError, name='slide'):
            nominal_truth(model.with_inertial(inertial))

    @pytest.mark.parametrize(
        ('options', 'about'),
        [
            ({'rate': 10.0}, {'name': 'rate', 'expected': (100.0, 20000.0), 'found': 10.0}),
            ({'bandwidth': 100.0}, {'name': 'bandwidth', 'expected': 1000.0 / 15.0, 'found': 100.0}),
            ({'torque_noise': np.ones(1)}, {'name': 'rng'}),
            ({'torque_noise': np.ones(2), 'rng': np.random.default_rng(0)}, {'name': 'torque_noise', 'expected': (1,)}),
        ],
    )
    def test_numbers_out_of_range_are_refused(self, options: dict, about: dict) -> None:
        model = RobotModel.from_urdf(PENDULUM)
        with refused(ModelError, **about):
            Plant(nominal_truth(model), model, **options)

    def test_arms_with_other_joints_are_refused(self) -> None:
        with refused(ModelError, expected=('spin',)):
            Plant(nominal_truth(RobotModel.from_urdf(PENDULUM)), RobotModel.from_urdf(FLYWHEEL))

    def test_divergence_is_an_error_and_not_a_recording(self) -> None:
        plant = lone_plant(PENDULUM, JointFriction.none(1))
        with pytest.raises(ModelError, match='diverged: raise the rate'):
            plant.run_torque(np.full((20, 1), 1e12))

    def test_absence_of_mujoco_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = RobotModel.from_urdf(PENDULUM)
        monkeypatch.setitem(sys.modules, 'mujoco', None)
        with pytest.raises(MissingDependencyError, match=r'robotid_ros\[sim\]'):
            Plant(nominal_truth(model), model)
