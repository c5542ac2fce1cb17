# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Run a trajectory on a simulated arm, faster than real time, and record it."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.data import Recording
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.simulation.controller import Spline, TrajectoryPoints
from robotid_ros.simulation.plant import Plant
from robotid_ros.simulation.sensors import PlantMotion, Sensors

_CLEARANCE = 0.1


def start_position(model: RobotModel) -> Array:
    """Return where an arm starts, shape (n,) [rad or m]: at zero, or the nearest that is clear of the limits.

    The clearance is 0.1 rad (or m), or a quarter of the range where that is less.
    """
    lower, upper = model.limits.lower, model.limits.upper
    clearance = np.minimum(_CLEARANCE, 0.25 * (upper - lower))
    return np.asarray(np.clip(np.zeros(model.n), lower + clearance, upper - clearance))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun(PlantMotion):
    """A recording of a simulated arm, and what really happened: the true motion, and torques without noise of a sensor.

    ``motor_torque`` is what the drives show, as late as it is seen.
    """

    recording: Recording  # what the sensors showed: position, velocity, effort [N m] and current [A]
    time: Array  # shape (N,) [s]


def simulate_trajectory(
    plant: Plant,
    time: Array,
    q_ref: Array,
    dq_ref: Array,
    ddq_ref: Array,
    *,
    rate: float = 500.0,
    sensors: Sensors | None = None,
    rng: np.random.Generator | None = None,
) -> SimulatedRun:
    """Let a simulated arm follow a reference from its first to its last point.

    The arm starts on the reference, in motion if the reference is. Between the points the
    reference is the quintic that meets them, as a trajectory controller has it.

    Parameters
    ----------
    plant : Plant
    time : ndarray, shape (K,)
        Strictly increasing, at any spacing [s].
    q_ref, dq_ref, ddq_ref : ndarray, shape (K, n)
        Reference [rad, rad/s, rad/s^2; or m].
    rate : float
        Of the recording [Hz]; the plant's rate is a multiple of it.
    sensors : Sensors, optional
        Noise and quantisation; perfect by default.
    rng : numpy.random.Generator, optional
        For the sensors' noise; seed 0 by default.

    Raises
    ------
    DataError
        If shapes or times do not fit, or the rate does not divide the plant's.
    ModelError
        If the simulation diverges.
    """
    n = plant.nominal.n
    time = frozen_array(time, 'time', (None,), DataError)
    q_knot, dq_knot, ddq_knot = (
        frozen_array(value, name, (len(time), n), DataError)
        for name, value in (('q_ref', q_ref), ('dq_ref', dq_ref), ('ddq_ref', ddq_ref))
    )
    if len(time) < 2 or (np.diff(time) <= 0.0).any():
        message = f'time: expected at least two strictly increasing instants, got {len(time)}'
        raise DataError(message, name='time', expected=2, found=len(time))
    every = round(plant.rate / rate) if rate > 0.0 else 0
    if every < 1 or abs(every * rate - plant.rate) > 1e-9 * plant.rate:
        message = f'rate: expected a divisor of the rate of the plant, {plant.rate:g} Hz, got {rate:g} Hz'
        raise DataError(message, name='rate', expected=plant.rate, found=rate)
    count = int(np.floor((time[-1] - time[0]) * plant.rate * (1.0 + 1e-12) + 1e-6)) + 1
    instants = time[0] + np.arange(count) / plant.rate
    within = np.minimum(instants, np.nextafter(time[-1], time[0]))
    points = TrajectoryPoints(time=time, position=q_knot, velocity=dq_knot, acceleration=ddq_knot)
    q, dq, ddq = Spline(points).sample(within)
    plant.reset(q[0], dq[0], ddq[0])
    motion = plant.run(q, dq, ddq).rows(slice(None, None, every))
    instants = instants[::every]
    drive = plant.truth.drive
    at_motors = drive.shown(motion)
    late = [np.interp(instants - drive.delay, instants, column) for column in at_motors.motor_torque.T]
    at_motors = replace(at_motors, motor_torque=np.stack(late, axis=1))
    rng = np.random.default_rng(0) if rng is None else rng
    seen = (Sensors.perfect(plant.truth.drive_gain) if sensors is None else sensors).measure(at_motors, rng)
    return SimulatedRun(
        recording=Recording(
            joint_names=plant.joint_names,
            time=instants,
            position=seen['position'],
            velocity=seen['velocity'],
            effort=seen['effort'],
            current=seen['current'],
            provenance={'source': f'simulated {plant.nominal.name}', 'physics_rate': plant.rate},
        ),
        time=instants,
        **{**motion.columns(), 'motor_torque': at_motors.motor_torque},
    )
