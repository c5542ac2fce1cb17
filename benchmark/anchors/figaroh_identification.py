# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""FIGAROH: regressor, base parameters, least squares."""

import logging
import tempfile
from pathlib import Path
from typing import Any

import figaroh
import numpy as np
import yaml
from figaroh.identification.base_identification import BaseIdentification
from figaroh.tools.load_robot import load_robot
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced
from figaroh.tools.robot import Robot

NAME = f'FIGAROH {figaroh.__version__}'
PARTS = {'friction': True, 'actuator_inertia': True, 'joint_offset': True}


def _robot(urdf: str) -> Robot:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'robot.urdf'
        path.write_text(urdf, encoding='utf-8')
        return load_robot(str(path), package_dirs=folder)


class _Arrays(BaseIdentification):
    """FIGAROH's identification, fed with arrays instead of files."""

    def feed(self, **signals: np.ndarray) -> None:
        self._signals = signals

    def load_trajectory_data(self, data_source: str | None = None) -> dict[str, np.ndarray]:
        return self._signals

    def filter_kinematics_data(self, filter_config: object = None) -> None:
        """Take the signals as they are: both sides get the same ones, which are filtered already."""
        self.processed_data = {name: value for name, value in self.raw_data.items() if name != 'torques'}


def identify(given: dict[str, Any]) -> dict[str, Any]:
    """Return the torques of the second motion that weighted least squares on the first predict."""
    robot = _robot(given['urdf'])
    names, every = list(robot.model.names)[1:], list(range(robot.model.nv))
    # The cutoff is not used: the signals are filtered already.
    signals = {'sampling_frequency': given['rate'], 'cutoff_frequency': 0.4 * given['rate']}
    problem = {'use_joint_torques': True, 'model_components': PARTS}
    task = {'enabled': True, 'type': 'identification', 'signal_processing': signals, 'problem': problem}
    config = {
        'robot': {'name': 'arm', 'properties': {'joints': {'active_joints': names}, 'mechanics': {}}},
        'tasks': {'identification': task},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'config.yaml'
        path.write_text(yaml.safe_dump(config), encoding='utf-8')
        found = _Arrays(robot, str(path))
    found.identif_config.update(act_idxq=every, act_idxv=every, active_joints=names)
    found.feed(
        timestamps=given['time'].reshape(-1, 1),
        positions=given['q'],
        velocities=given['dq'],
        accelerations=given['ddq'],
        torques=given['tau'],
    )
    found.initialize()
    found.solve(decimate=False, plotting=False, wls=True)
    motion = (given[f'validation_{part}'] for part in ('q', 'dq', 'ddq'))
    rows = build_regressor_reduced(build_regressor_basic(robot, *motion, found.identif_config), found._idx_eliminated)
    torque = rows[:, found._base_indices] @ found.phi_base
    return {'name': f'{NAME}, weighted least squares', 'torque': torque.reshape(robot.model.nv, -1).T}
