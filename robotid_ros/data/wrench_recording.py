# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings of a force-torque sensor beside the joint states: bags and CSV.

The six axes become six more channels of a recording, efforts of joints that never move, so that they go through the
screening and the filter that joint torques go through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.data.bag import Bag, opened, read_bag
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.processing import process_recording
from robotid_ros.data.recording import Recording
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash
from robotid_ros.tables import read_table

WRENCH = 'geometry_msgs/msg/WrenchStamped'
AXES = ('force/x', 'force/y', 'force/z', 'torque/x', 'torque/y', 'torque/z')


def read_wrench(
    path: str | Path, joints: Sequence[str], *, topic: str | None = None, cutoff: float | None = None
) -> Dataset:
    """Return joint motion and the wrench of a sensor, the latter as torques of the channels :data:`AXES`.

    Parameters
    ----------
    path : str or Path
        A bag with ``sensor_msgs/JointState`` and ``geometry_msgs/WrenchStamped``, or a CSV file with the columns
        ``time,position/<joint>,...,force/x,...,torque/z`` [s, rad, N, N m].
    joints : sequence of str
        Of the arm, in its order.
    topic : str, optional
        Of the wrench, where the bag has several.
    cutoff : float, optional
        Of the low-pass [Hz]; by default chosen from the data.

    Raises
    ------
    DataError
        If it cannot be read, or an axis or a joint is not in it.
    """
    bag, path, names = opened(path), Path(path), (*joints, *AXES)
    provenance: Mapping[str, Any]
    if isinstance(bag, Bag):
        moving = read_bag(bag, joints=tuple(joints))
        stamps, values = bag.numbers(bag.choose(topic, WRENCH, '; set wrench_topic of the recorder'))
        inside, there = moving.at(stamps)
        if len(there) < 32:
            raise DataError(
                f'{bag.path}: expected at least 32 wrenches while there are joint states, got {len(there)}; are their '
                'stamps of the same clock?'
            )
        time, q, wrench, provenance = there.time, there.position, values[inside], moving.provenance
    else:
        layout = {'time': ['time'], 'q': [f'position/{joint}' for joint in joints], 'wrench': AXES}
        arrays = read_table(path, layout, blank=('wrench',)).arrays
        time, q, wrench = arrays['time'][:, 0], arrays['q'], arrays['wrench']
        provenance = {'file': path.name, 'sha256': file_hash(path)}
    recording = Recording(
        joint_names=names,
        time=time,
        position=np.hstack([q, np.zeros_like(wrench)]),
        effort=np.hstack([np.zeros_like(q), wrench]),
        provenance=provenance,
    )
    settings = ProcessingSettings(joints=names, effort=dict.fromkeys(names, 'torque'), average=False, cutoff=cutoff)
    dataset = process_recording(recording, settings)
    return replace(dataset, sources=(path.name,)) if len(dataset.sources) == 1 else dataset
