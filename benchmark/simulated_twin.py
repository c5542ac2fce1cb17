# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""MuJoCo's system identification and ours on the same noisy signals of the same arm."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmark import anchor
from benchmark.arms import limited
from benchmark.row import Row
from robotid_ros.data import Recording, process_recording
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.identification import identify
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.simulation import perturb
from robotid_ros.simulation.mjcf import mjcf_of

STEP = 0.002  # [s]
STIFFNESS = (20e3, 20e3, 15e3, 3e3, 3e3, 3e3)  # [N m/rad]
DRIVES = {
    'damping': np.array([10.0, 10.0, 6.0, 2.0, 2.0, 2.0]),  # [N m s/rad]
    'frictionloss': np.array([8.0, 8.0, 5.0, 2.0, 2.0, 2.0]),  # [N m]
}
GUESS = {'damping': np.full(6, 5.0), 'frictionloss': np.full(6, 5.0)}
NOISE = {'q': 2e-5, 'dq': 1e-3, 'torque': 0.5}  # [rad, rad/s, N m]
RUN = f'one run of 10 s at {1.0 / STEP:.0f} Hz'


def simulated_twin(quick: bool) -> Iterator[Row]:
    """Identify a UR10e-like arm that differs from its description by 10 %, with viscous and Coulomb friction.

    Servos of known gains follow an excitation trajectory. MuJoCo is told trajectory and gains, ours only what a real
    arm's joint states tell; neither knows the friction.
    """
    prior = limited('ur10e')
    truth = perturb(prior, np.random.default_rng(0)).model
    stamps = np.arange(0.0, 10.0 + STEP / 2, STEP)
    design = ExcitationConfig(period=10.0, starts=1, iterations=60, start_at_rest=True)
    training, validation = (
        optimize_excitation(prior, replace(design, seed=seed)).trajectory.evaluate(stamps) for seed in (1, 11)
    )
    servos: dict[str, Any] = {'stiffness': STIFFNESS, 'command': training[0]}
    shown = anchor.run('mujoco_sysid.simulate', mjcf=mjcf_of(truth, time_step=STEP), **servos, **DRIVES)
    rng = np.random.default_rng(5)
    for name, level in NOISE.items():
        shown[name] += level * rng.standard_normal(shown[name].shape)
    twin = anchor.run(
        'mujoco_sysid.identify',
        **{**shown, **servos, **GUESS},
        mjcf=mjcf_of(prior, time_step=STEP),
        command_time=stamps,
        armature=np.maximum(prior.rotor_inertia, 0.1),
        iterations=1 if quick else 10,
    )
    recording = Recording(
        joint_names=prior.joint_names,
        time=shown['time'],
        position=shown['q'],
        velocity=shown['dq'],
        effort=shown['torque'],
    )
    begun = time.process_time()
    result = identify(process_recording(recording), prior, friction='coulomb_viscous', estimator='physical')
    spent = time.process_time() - begun
    bodies = [inertial_parameters(*body) for body in zip(twin['mass'], twin['centre'], twin['inertia'], strict=True)]
    theirs = _torque(prior.with_inertial(np.array(bodies), rotor_inertia=twin['armature']), twin, validation)
    own, exact = TorquePredictor(prior, result).torque(*validation), _torque(truth, DRIVES, validation)
    yield Row(
        what='UR10e-like arm in MuJoCo, physically consistent parameters: signals to result',
        unit='s',
        values=spent,
        anchor=twin['name'],
        theirs=twin['processor'],
        runs=f'{RUN}, processor time',
    )
    yield Row(
        what='the same: torque error on another trajectory, relative to the noise-free torque',
        unit='%',
        values=100.0 * np.linalg.norm(own - exact) / np.linalg.norm(exact),
        anchor=twin['name'],
        theirs=100.0 * np.linalg.norm(theirs - exact) / np.linalg.norm(exact),
        runs=RUN,
        note='the anchor simulates the servos and is told their gains and command',
    )


def _torque(model: RobotModel, drives: dict[str, np.ndarray], at: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return inverse dynamics with viscous and Coulomb friction."""
    q, dq, ddq = at
    return inverse_dynamics(model, q, dq, ddq) + drives['damping'] * dq + drives['frictionloss'] * np.sign(dq)
