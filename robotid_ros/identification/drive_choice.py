# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Coupled drives: which motors turn with the preceding joint too, as in many wrists, and in which direction."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.cross_validation import Alternative, Decision, Folds, HeldOut, LinearFolds
from robotid_ros.identification.least_squares import weighted_solution
from robotid_ros.identification.samples import Samples, evenly_weighted
from robotid_ros.identification.signal_choice import PLAIN
from robotid_ros.model.robot_model import RobotModel

_SAMPLES = 2000
_GAIN = 0.05  # fall of the held-out error, as a mean over the joints, that a coupling must bring
_WORTH = 0.005  # of a joint's torque: a simulation leaves less, coupled drives leave percents
_SIGNS = (1.0, -1.0)


def choose_drives(
    datasets: Sequence[Dataset], model: RobotModel, config: IdentificationConfig
) -> tuple[RobotModel, Decision]:
    """Return an arm with the coupling of its drives that predicts held-out torque best, and the choice.

    A motor k that is mounted before joint k - 1 turns with both: q_motor,k = q_k + c q_(k-1), with c = 1 or -1 where
    the gear ratios are equal, and both joints are revolute. Its friction and rotor inertia then act on both joints.
    Couplings are tried one by one beside those found, and judged in joint coordinates by the plain model.

    References
    ----------
    A. Janot, P. O. Vandanjon, M. Gautier, "A generic instrumental variable approach for industrial robot
    identification", IEEE Trans. Control Systems Technology 22 (2014): the coupled wrist of the Staubli TX40.
    """
    samples = evenly_weighted(datasets, replace(model, drives=np.eye(model.n)), None).coarse().thinned(_SAMPLES)
    folds = Folds.of(samples)
    found, best = model, _errors(model, samples, folds, config)
    tried = [Alternative(name='none', error=best.rmse)]
    names: list[str] = []
    turns = [kind == 'revolute' for kind in model.joint_types]
    unexplained = best.rmse > _WORTH * np.sqrt(np.mean(samples.measured**2, axis=0))
    open_joints = [k for k in range(1, model.n) if turns[k - 1] and turns[k] and unexplained[k - 1 : k + 1].any()]
    while open_joints:
        candidates = {}
        for k in open_joints:
            for sign in _SIGNS:
                drives = found.drives.copy()
                drives[k, k - 1] = sign
                arm = replace(model, drives=drives)
                candidates[k, sign] = arm, _errors(arm, samples, folds, config)
        k, sign = min(candidates, key=lambda key: _score(candidates[key][1]))
        arm, errors = candidates[k, sign]
        name = f'{model.joint_names[k]} {"+" if sign > 0.0 else "-"} {model.joint_names[k - 1]}'
        tried.append(Alternative(name=name, error=errors.rmse))
        if not best.better(errors, _GAIN):
            break
        found, best = arm, errors
        names.append(f'the motor of {model.joint_names[k]} turns with {name}')
        open_joints.remove(k)
    text = ', '.join(names) or 'none'
    return found, Decision(subject='coupled drives', chosen=text, alternatives=tuple(tried))


def _score(errors: HeldOut) -> float:
    return float(np.mean(np.log(np.maximum(errors.filtered.mean(axis=0), 1e-300))))


def _errors(model: RobotModel, samples: Samples, folds: Folds, config: IdentificationConfig) -> HeldOut:
    """Return the held-out errors, joint by joint, of the plain model with friction and rotors at the motors."""
    drives = model.drives
    q, dq, ddq = (x @ drives.T for x in (samples.q, samples.dq, samples.ddq))
    base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    friction = friction_model(PLAIN)
    own = friction.columns(dq, np.zeros((samples.n, 0)))
    spread = own[:, :, None, :] * np.eye(samples.n)[:, :, None]
    columns = np.concatenate([base.regressor(q, dq, ddq), spread.reshape(len(samples), samples.n, -1)], axis=2)
    rows = np.einsum('mj,Nmp->Njp', drives, columns, optimize=True)
    parts = LinearFolds.of(samples, folds, rows, np.zeros((len(samples), samples.n, 0)))
    return parts.errors(lambda info: weighted_solution(info, None, np.ones(samples.n))[0].parameters)
