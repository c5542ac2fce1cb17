# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings from rosbag2 (sqlite3 or MCAP), without ROS."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.joint_state_cdr import INCOMPLETE, OTHER_JOINTS, UNDECODABLE, JointStateBatch, JointStateDecoder
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.files import file_hash

__all__ = ['assemble', 'read_rosbag']

JOINT_STATE = 'sensor_msgs/msg/JointState'


def read_rosbag(path: str | Path, topic: str | None = None, joints: Sequence[str] | None = None) -> Recording:
    """Read the joint states of a bag.

    Parameters
    ----------
    path : str or Path
        The bag's folder, its ``metadata.yaml``, or its ``.db3`` or ``.mcap`` file.
    topic : str, optional
        Needed where the bag has several topics of joint states.
    joints : sequence of str, optional
        Joints to take; those of the first message otherwise.

    Returns
    -------
    Recording
        Times are the header stamps (those of the bag where no header has one), from the first.

    Raises
    ------
    DataError
        If it is no readable bag, or the topic or a joint is not in it.
    MissingDependencyError
        If ``rosbags`` is not installed.
    """
    path = Path(path)
    folder, files = _locate(path)
    bag_time, messages, chosen = _messages(folder, topic)
    decoder = JointStateDecoder(joints=tuple(joints or ()))
    batch = decoder.decode(messages)
    if not decoder.joints:
        raise DataError(f'{path}: no message of topic {chosen} could be read as {JOINT_STATE}')
    if not (batch.reason == 0).any():
        have = sorted({name for layout in decoder.layouts for name in layout.names})
        raise DataError(
            f'{path}: no message has all of the joints {", ".join(decoder.joints)}; there are: {", ".join(have)}'
        )
    provenance = {
        'file': path.parent.name if path.name == 'metadata.yaml' else path.name,
        'sha256': {file.name: file_hash(file) for file in files},
        'format': f'rosbag2 {files[0].suffix[1:]}' if files else 'rosbag2',
        'topic': chosen,
    }
    arrival = np.asarray(bag_time, dtype=np.int64)
    return assemble(decoder, [batch], arrival, provenance)


def assemble(
    decoder: JointStateDecoder, batches: Sequence[JointStateBatch], arrival: Any, provenance: dict[str, Any]
) -> Recording:
    """Return decoded messages as one recording; those without all joints or without stamp are counted and left out.

    Where no message has a stamp, the times of arrival stand in for them.

    Parameters
    ----------
    decoder : JointStateDecoder
        Knows the joints and layouts.
    batches : sequence of JointStateBatch
        In the order of arrival.
    arrival : ndarray of int64
        When each message was written or received [ns].
    provenance : dict
        What is known already; counts are added.
    """
    reason = np.concatenate([b.reason for b in batches])
    stamps = np.concatenate([b.stamp for b in batches])
    complete = reason == 0
    unstamped = complete & (stamps == 0)
    if (complete & ~unstamped).any():
        complete &= ~unstamped
    stamp = stamps[complete]
    order = np.concatenate([b.order for b in batches])[complete]
    arrived = np.asarray(arrival, dtype=np.int64)[complete]
    counts = {
        'messages': len(reason),
        'undecodable': int((reason == UNDECODABLE).sum()),
        'other_joints': int((reason == OTHER_JOINTS).sum()),
        'missing_joints': int((reason == INCOMPLETE).sum()),
        'order_changes': int((np.diff(order) != 0).sum()),
        'unstamped': int(unstamped.sum()),
    }
    extra = sorted({name for item in decoder.layouts for name in item.names} - set(decoder.joints))
    if not stamp.any():
        stamp = arrived
    origin = int(stamp[0]) if len(stamp) else 0

    def collect(name: str) -> Array | None:
        value: Array = np.concatenate([getattr(b, name) for b in batches])[complete]
        return None if np.isnan(value).all() else value

    position = collect('position')
    if position is None:
        raise DataError('no joint state has a position; expected one for each joint')
    return Recording(
        joint_names=decoder.joints,
        time=(stamp - origin) * 1e-9,
        position=position,
        velocity=collect('velocity'),
        effort=collect('effort'),
        origin=origin,
        arrival=(arrived - arrived[0]) * 1e-9 if len(arrived) else None,
        provenance={**provenance, 'counts': counts, 'extra_joints': extra},
    )


def _locate(path: Path) -> tuple[Path, list[Path]]:
    """Return what the library shall open, and the data files to be named in the provenance."""
    if not path.exists():
        raise DataError(f'{path} does not exist')
    if path.name == 'metadata.yaml' or (path.is_file() and (path.parent / 'metadata.yaml').exists()):
        path = path.parent
    if path.is_file():
        return path, [path]
    files = sorted(file for file in path.iterdir() if '.db3' in file.name or '.mcap' in file.name)
    if not files:
        raise DataError(
            f'{path}: expected a bag (a folder with metadata.yaml and .db3 or .mcap files), got none of these'
        )
    return (path, files) if (path / 'metadata.yaml').exists() else (files[0], files[:1])


def _messages(folder: Path, topic: str | None) -> tuple[list[int], list[bytes], str]:
    try:
        from rosbags.rosbag2 import Reader, ReaderError
    except ImportError as cause:
        raise MissingDependencyError.of('rosbags', 'bag', 'read ROS bags') from cause
    try:
        with Reader(folder) as reader:
            found = [c for c in reader.connections if c.msgtype == JOINT_STATE]
            connections = _choose(found, topic, folder)
            pairs = [(stamp, bytes(raw)) for _, stamp, raw in reader.messages(connections)]
    except DataError:
        raise
    except (ReaderError, OSError, ValueError, AssertionError) as cause:
        raise DataError(f'{folder}: this bag cannot be read: {cause}') from cause
    if not pairs:
        raise DataError(f'{folder}: topic {connections[0].topic} has no messages')
    return [stamp for stamp, _ in pairs], [raw for _, raw in pairs], connections[0].topic


def _choose(found: list[Any], topic: str | None, folder: Path) -> list[Any]:
    names = sorted({connection.topic for connection in found})
    if not names:
        raise DataError(f'{folder}: expected a topic of {JOINT_STATE}, the bag has none')
    if topic is None:
        short = [name for name in names if name.rsplit('/', 1)[-1] == 'joint_states']
        if len(names) > 1 and len(short) != 1:
            raise DataError(f'{folder}: say which topic to read; joint states are on: {", ".join(names)}')
        topic = names[0] if len(names) == 1 else short[0]
    chosen = [connection for connection in found if connection.topic == topic]
    if not chosen:
        raise DataError(f"{folder}: topic '{topic}' has no joint states; they are on: {', '.join(names)}")
    return chosen
