# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The three main axes of an ER-16-like arm with Daemi-Heimann friction: excitation, simulation, averaging."""

import numpy as np

from robotid_ros.data import Dataset, ProcessingSettings, process_recording
from robotid_ros.excitation import ExcitationConfig, ExcitationDesign, optimize_excitation
from robotid_ros.model import JointLimits, RobotModel
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.simulation import (
    ArmTruth,
    JointFriction,
    Plant,
    Sensors,
    effort_scale,
    perturb,
    simulate_trajectory,
)

PERIOD = 25.0  # [s], five harmonics of 0.04 Hz


def er16() -> RobotModel:
    """Return the arm as its maker would describe it: column, lower arm, upper arm with wrist and a load of 16 kg.

    Modified DH rows and limits are the published ones; masses and inertias are those of solid bodies of
    that size.
    """
    rows = [(np.pi, 0.0, 0.0, 0.0), (np.pi / 2, 0.16, 0.0, -np.pi / 2), (0.0, 0.68, 0.0, 0.0)]
    bodies = [
        inertial_parameters(60.0, np.array([0.06, 0.02, -0.1]), np.diag([1.6, 1.5, 1.3])),
        inertial_parameters(40.0, np.array([0.3, 0.01, 0.08]), np.diag([0.4, 2.1, 2.0])),
        inertial_parameters(65.0, np.array([0.1, -0.25, 0.02]), np.diag([6.5, 0.9, 6.3])),
    ]
    limits = JointLimits(
        lower=np.radians([-180.0, -60.0, -170.0]),
        upper=np.radians([180.0, 60.0, 80.0]),
        velocity=np.radians([145.0, 105.0, 170.0]),
        acceleration=np.radians([50.0, 40.0, 65.0]),
        jerk=np.full(3, np.inf),
        effort=np.array([1200.0, 1000.0, 600.0]),
    )
    return RobotModel.from_mdh(
        rows, inertial=np.array(bodies), rotor_inertia=np.zeros(3), limits=limits, gravity=(0, 0, -9.81)
    )


def er16_truth(seed: int) -> ArmTruth:
    """Return an arm that differs from its description by 10 %, with Daemi-Heimann friction.

    Friction of the second joint falls with speed.
    """
    friction = JointFriction(
        coulomb=np.array([40.0, 60.0, 25.0]),
        viscous=np.array([25.0, 40.0, 12.0]),
        arctan_gain=np.array([20.0, -15.0, 12.0]),
        arctan_rate=np.array([20.0, 12.0, 25.0]),
    )
    return perturb(er16(), np.random.default_rng(seed), 0.1, friction=friction)


def er16_design(seed: int, *, start_at_rest: bool = False) -> ExcitationDesign:
    """Return an optimal excitation trajectory of five harmonics of 0.04 Hz within the limits.

    Without a rest the joints stand still at reversals only. While one rests its friction is anything
    between two bounds: then the true model itself has a match of 95 to 97 % at the first joint.
    """
    config = ExcitationConfig(
        period=PERIOD, harmonics=5, seed=seed, starts=2, iterations=60, start_at_rest=start_at_rest
    )
    return optimize_excitation(er16(), config)


def er16_data(
    truth: ArmTruth,
    design: ExcitationDesign,
    seed: int,
    *,
    periods: int = 4,
    effort_noise: float = 1e-3,
    rate: float = 500.0,
) -> Dataset:
    """Return the average of some periods of a simulated run, after one that settles.

    ``effort_noise`` is a share of the effort limit. The mean of 4 periods with noise of 0.1 % is a little
    noisier than that of 50 periods, as published, with 0.3 %, which is typical. The joints have a
    disturbance that the motors do not see.
    """
    model, rng = er16(), np.random.default_rng(seed)
    plant = Plant(truth, model, rate=rate, torque_noise=1e-3 * effort_scale(model), rng=rng)
    time = np.arange(0.0, (periods + 1) * PERIOD + 0.005, 0.01)
    sensors = Sensors.typical(model, truth.drive_gain, effort_noise=effort_noise)
    run = simulate_trajectory(plant, time, *design.trajectory.evaluate(time), rate=rate, sensors=sensors, rng=rng)
    return process_recording(run.recording, ProcessingSettings(period=PERIOD))
