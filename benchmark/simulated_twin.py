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
from benchmark.area import Options
from benchmark.arms import ur10e_with_acceleration_limit
from benchmark.row import Anchor, Row
from robotid_ros.data import Recording, process_recording
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.identification import IdentificationResult, identify
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.simulation import perturb
from robotid_ros.simulation.mjcf import mjcf_of

AREA = 'identification'
STEP = 0.002  # [s]
SERVOS = {'stiffness': [20e3, 20e3, 15e3, 3e3, 3e3, 3e3]}  # [N m/rad]
DRIVES = {
    'damping': np.array([10.0, 10.0, 6.0, 2.0, 2.0, 2.0]),  # [N m s/rad]
    'frictionloss': np.array([8.0, 8.0, 5.0, 2.0, 2.0, 2.0]),  # [N m]
}
NOISE = {'q': 2e-5, 'dq': 1e-3, 'torque': 0.5}  # [rad, rad/s, N m]
Motion = tuple[np.ndarray, np.ndarray, np.ndarray]


def simulated_twin(options: Options) -> Iterator[Row]:
    """Identify a UR10e-like arm that differs from its description by 10 %, with viscous and Coulomb friction.

    Servos of known gains follow an excitation trajectory. MuJoCo is told trajectory and gains, ours only what a real
    arm's joint states tell; neither knows the friction.
    """
    prior = ur10e_with_acceleration_limit()
    truth = perturb(prior, np.random.default_rng(0)).model
    stamps = np.arange(0.0, 10.0 + STEP / 2, STEP)
    design = ExcitationConfig(period=10.0, starts=1, iterations=60)
    training, validation = (
        optimize_excitation(prior, replace(design, seed=seed)).trajectory.evaluate(stamps) for seed in (1, 11)
    )
    signals = _measured(truth, training[0])
    other = _twin(prior, signals | {'command': training[0], 'command_time': stamps}, options.runs(10))
    begun = time.process_time()
    result = _own(prior, signals)
    spent = time.process_time() - begun
    exact = _torque(truth, DRIVES, validation)
    bodies = zip(*(other.arrays[name] for name in ('mass', 'centre', 'inertia')), strict=True)
    twin = prior.with_inertial(
        np.array([inertial_parameters(*body) for body in bodies]), rotor_inertia=other.arrays['armature']
    )
    predicted = {
        'twin': _torque(twin, other.arrays, validation),
        'own': TorquePredictor(prior, result).torque(*validation),
    }
    share = {
        name: 100.0 * float(np.linalg.norm(torque - exact) / np.linalg.norm(exact))
        for name, torque in predicted.items()
    }
    values: dict[str, Any] = other.values
    name = f'MuJoCo {values["version"]} sysid, {values["parameters"]} parameters, {values["iterations"]} iterations'
    text = f'one run of 10 s at {1.0 / STEP:.0f} Hz'
    yield Row(
        area=AREA,
        what='UR10e-like arm in MuJoCo, physically consistent parameters: signals to result',
        unit='s',
        values=(spent,),
        anchor=Anchor(name=name, values=(values['processor'],)),
        runs=f'{text}, processor time',
    )
    yield Row(
        area=AREA,
        what='the same: torque error on another trajectory, relative to the noise-free torque',
        unit='%',
        values=(share['own'],),
        anchor=Anchor(name=name, values=(share['twin'],)),
        runs=text,
        note='the anchor simulates the servos and is told their gains and command',
    )


def _measured(truth: RobotModel, command: np.ndarray) -> dict[str, np.ndarray]:
    """Return the noisy joint states of the arm following a command."""
    clean = anchor.run(
        'mujoco_sysid.simulate', {'command': command, **DRIVES}, mjcf=mjcf_of(truth, time_step=STEP), **SERVOS
    ).arrays
    rng = np.random.default_rng(5)
    noisy = {name: clean[name] + level * rng.standard_normal(clean[name].shape) for name, level in NOISE.items()}
    return {'time': clean['time'], **noisy}


def _twin(prior: RobotModel, given: dict[str, np.ndarray], iterations: int) -> anchor.Answer:
    """Return what MuJoCo identifies, from the description and a guess of every drive."""
    guess = {
        'armature': np.maximum(prior.rotor_inertia, 0.1),
        'damping': np.full(prior.n, 5.0),
        'frictionloss': np.full(prior.n, 5.0),
    }
    text = mjcf_of(prior, time_step=STEP)
    return anchor.run('mujoco_sysid.identify', given | guess, mjcf=text, iterations=iterations, **SERVOS)


def _own(prior: RobotModel, signals: dict[str, np.ndarray]) -> IdentificationResult:
    recording = Recording(
        joint_names=prior.joint_names,
        time=signals['time'],
        position=signals['q'],
        velocity=signals['dq'],
        effort=signals['torque'],
    )
    return identify(process_recording(recording), prior, friction='coulomb_viscous', estimator='physical')


def _torque(model: RobotModel, drives: dict[str, np.ndarray], at: Motion) -> np.ndarray:
    """Return inverse dynamics with viscous and Coulomb friction."""
    return inverse_dynamics(model, *at) + drives['damping'] * at[1] + drives['frictionloss'] * np.sign(at[1])
