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
import time
from pathlib import Path
from typing import Any

import figaroh
import numpy as np
import yaml
from figaroh.identification.base_identification import BaseIdentification
from figaroh.identification.parameter import add_standard_additional_parameters, get_standard_parameters
from figaroh.tools.load_robot import load_robot
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate
from figaroh.tools.robot import Robot
from worker import timed

PARTS = {'friction': True, 'actuator_inertia': True, 'joint_offset': True}
Answer = tuple[dict[str, Any], dict[str, np.ndarray]]


def _robot(urdf: str) -> Robot:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'robot.urdf'
        path.write_text(urdf, encoding='utf-8')
        return load_robot(str(path), package_dirs=folder)


def _settings(robot: Robot, **enabled: bool) -> dict[str, Any]:
    return {'is_joint_torques': True, 'act_idxv': list(range(robot.model.nv)), **enabled}


def regressor(arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Answer:
    """Return seconds for the standard regressor with the columns asked for, and for the base parameters."""
    robot = _robot(settings['urdf'])
    config = _settings(robot, has_friction=settings['friction'], has_actuator_inertia=settings['rotor_inertia'],
                       has_joint_offset=settings['offset'])  # fmt: skip
    motion = arrays['q'], arrays['dq'], arrays['ddq']
    times = timed(lambda: build_regressor_basic(robot, *motion, config), settings['runs'])
    version = figaroh.__version__
    if not settings.get('base'):
        return {'version': version, 'regressor': times}, {}

    def base() -> int:
        few = tuple(part[: settings['base']] for part in motion)
        full = build_regressor_basic(robot, *few, config)
        names = get_standard_parameters(robot.model, config)
        names.update(add_standard_additional_parameters(robot.model, config))
        dropped, kept = get_index_eliminate(full, names, 1e-6)
        return int(QRDecomposer().decompose(build_regressor_reduced(full, dropped), kept).rank)

    return {'version': version, 'regressor': times, 'base': timed(base, settings['runs']), 'rank': base()}, {}


class _Arrays(BaseIdentification):
    """FIGAROH's identification, fed with arrays instead of files."""

    def feed(self, **signals: np.ndarray) -> None:
        self._signals = signals

    def load_trajectory_data(self, data_source: str | None = None) -> dict[str, np.ndarray]:
        return self._signals

    def filter_kinematics_data(self, filter_config: object = None) -> None:
        """Take the signals as they are: both sides get the same ones, which are filtered already."""
        self.processed_data = {name: value for name, value in self.raw_data.items() if name != 'torques'}


def identify(arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Answer:
    """Return the torques of the second motion that ordinary and weighted least squares on the first predict."""
    robot = _robot(settings['urdf'])
    names = list(robot.model.names)[1:]
    config = {
        'robot': {'name': 'arm', 'properties': {'joints': {'active_joints': names}, 'mechanics': {}}},
        'tasks': {
            'identification': {
                'enabled': True,
                'type': 'identification',
                'signal_processing': {
                    'sampling_frequency': settings['rate'],
                    'cutoff_frequency': 0.4 * settings['rate'],  # not used: the signals come filtered
                },
                'problem': {'use_joint_torques': True, 'model_components': PARTS},
            }
        },
    }
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'config.yaml'
        path.write_text(yaml.safe_dump(config), encoding='utf-8')
        seconds = {}
        for name, weighted in (('ordinary', False), ('weighted', True)):
            processor = time.process_time()
            task = _Arrays(robot, str(path))
            every = list(range(robot.model.nv))
            task.identif_config.update(act_idxq=every, act_idxv=every, active_joints=names)
            task.feed(
                timestamps=arrays['time'].reshape(-1, 1),
                positions=arrays['q'],
                velocities=arrays['dq'],
                accelerations=arrays['ddq'],
                torques=arrays['tau'],
            )
            task.initialize()
            task.solve(decimate=False, plotting=False, wls=weighted)
            seconds[name] = time.process_time() - processor
            motion = (arrays[f'validation_{part}'] for part in ('q', 'dq', 'ddq'))
            rows = build_regressor_basic(robot, *motion, task.identif_config)
            reduced = build_regressor_reduced(rows, task._idx_eliminated)
            predicted = reduced[:, task._base_indices] @ task.phi_base
            found[name] = predicted.reshape(robot.model.nv, -1).T
    return {'version': figaroh.__version__, 'seconds': seconds, 'parameters': len(task.phi_base)}, found
