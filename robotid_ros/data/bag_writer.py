# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags as the recorder node writes them: rosbag2 folders with MCAP files, readable up to the last chunk at any time."""

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any

import yaml

from robotid_ros.data.bag import DESCRIPTION, JOINT_STATE, TRAJECTORY
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.files import write_text

LARGEST_FILE = 1 << 30  # [bytes]; about an hour at 1 kHz. The writer keeps an index of the present file in memory.
LARGEST_CHUNK = 1 << 20  # [bytes]
DESCRIBE = 10.0  # [s] between versions of metadata.yaml, so that a bag can be played after a crash
# Version 5 is that of ROS 2 Humble; later releases read it too. Durations of this length mean "without end".
VERSION = 5
FOREVER = {'sec': 9223372036, 'nsec': 854775807}

DUMPER = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)

HEADER = 'std_msgs/Header header\n'
PARTS = {
    'geometry_msgs/Vector3': 'float64 x\nfloat64 y\nfloat64 z\n',
    'geometry_msgs/Twist': 'geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n',
    'geometry_msgs/TwistWithCovariance': 'geometry_msgs/Twist twist\nfloat64[36] covariance\n',
    'geometry_msgs/Point': 'float64 x\nfloat64 y\nfloat64 z\n',
    'geometry_msgs/Quaternion': 'float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n',
    'geometry_msgs/Pose': 'geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n',
    'geometry_msgs/PoseWithCovariance': 'geometry_msgs/Pose pose\nfloat64[36] covariance\n',
    'std_msgs/Header': 'builtin_interfaces/Time stamp\nstring frame_id\n',
    'builtin_interfaces/Time': 'int32 sec\nuint32 nanosec\n',
    'builtin_interfaces/Duration': 'int32 sec\nuint32 nanosec\n',
    'trajectory_msgs/JointTrajectoryPoint': 'float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\n'
    'float64[] effort\nbuiltin_interfaces/Duration time_from_start\n',
}
_WITH_COVARIANCE = 'geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist\n'
DEFINITIONS = {
    JOINT_STATE: f'{HEADER}string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n',
    TRAJECTORY: f'{HEADER}string[] joint_names\ntrajectory_msgs/JointTrajectoryPoint[] points\n',
    'geometry_msgs/msg/TwistStamped': f'{HEADER}geometry_msgs/Twist twist\n',
    'geometry_msgs/msg/PoseStamped': f'{HEADER}geometry_msgs/Pose pose\n',
    'nav_msgs/msg/Odometry': f'{HEADER}string child_frame_id\n{_WITH_COVARIANCE}',
}


class BagWriter:
    """Writes serialised messages of some topics to a folder of its own, which must not hold a recording yet.

    Types of topics are those in :data:`DEFINITIONS`. The description, plain values, is kept as a metadata record in
    each file. ``ros2 bag play`` gives the last message of ``latched`` topics to late subscribers. Raises a DataError if
    the folder cannot be made or has a recording already, and a MissingDependencyError if ``mcap`` is not installed.
    """

    def __init__(
        self, folder: Path, topics: Mapping[str, str], description: Mapping[str, Any], latched: Sequence[str] = ()
    ) -> None:
        self._library = writing_library()
        self.folder = folder
        self.topics = dict(topics)
        self.description = dict(description)
        self.latched = tuple(latched)
        self.messages = dict.fromkeys(topics, 0)
        self.size = 0  # [bytes], of all files
        self._files: list[dict[str, Any]] = []
        self._written = 0  # [bytes] of the present file that are whole records
        self._described = -math.inf  # when metadata.yaml was written last [s]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.glob('*.mcap')):
                raise DataError(f'{folder} holds a recording already; expected a new folder')
            self._open()
        except OSError as cause:
            raise DataError(f'cannot record to {folder}: {cause.strerror}') from cause

    def add_topic(self, topic: str, kind: str) -> None:
        """Add a topic while others are recorded; a known one is left as it is."""
        if topic not in self.topics:
            self._register(topic, kind)
            self.topics[topic], self.messages[topic] = kind, 0

    def append(self, topic: str, chunk: MessageChunk) -> None:
        """Write messages, so that they are in the file when this returns.

        An OSError says that the disk is full or gone; the file then ends with the last messages that were written
        whole.
        """
        if not len(chunk):
            return
        if self._written > LARGEST_FILE:
            self._finish()
            self._open()
        add, channel, file = self._writer.add_message, self._channels[topic], self._files[-1]
        arrival = chunk.arrival.tolist()
        # A channel has one sequence of numbers: with several publishers it gets none (0). DDS counts from 1.
        sequence = [max(0, number) & 0xFFFFFFFF for number in chunk.sequence.tolist()]
        if chunk.publisher.any():
            sequence = [0] * len(sequence)
        try:
            for message, stamp, number in zip(chunk.messages(), arrival, sequence, strict=True):
                add(channel, stamp, message, stamp, number)
            self._writer.flush()
        except OSError:
            self._cut()
            raise
        self._advance()
        self.messages[topic] += len(chunk)
        file['message_count'] += len(chunk)
        file['first'] = min(file['first'] or arrival[0], *arrival)
        file['last'] = max(file['last'], *arrival)
        if time.monotonic() - self._described > DESCRIBE:
            self._write_metadata()

    def close(self, summary: Mapping[str, Any] | None = None) -> None:
        """Write the end of the file and ``metadata.yaml``; a summary, plain values, is kept as a metadata record."""
        if summary is not None:
            self._writer.add_metadata(f'{DESCRIPTION}_summary', {'summary': json.dumps(summary)})
        self._finish()

    def abandon(self) -> None:
        """Close the file as it is, without its end."""
        with suppress(OSError, ValueError):
            self._file.raw.close()  # without flushing what a full disk left in the buffer

    def _open(self) -> None:
        path = self.folder / f'{self.folder.name}_{len(self._files)}.mcap'
        self._file: BufferedWriter = open(path, 'xb')  # noqa: SIM115  # closed by _finish()
        self._files.append({'path': path.name, 'first': 0, 'last': 0, 'message_count': 0})
        library = self._library
        # Compression takes more processor time than it saves: doubles hardly shrink.
        self._writer = library.Writer(
            self._file, chunk_size=LARGEST_CHUNK, compression=library.CompressionType.NONE, enable_data_crcs=False
        )
        self._written = 0
        self._writer.start('ros2', library.LIBRARY_IDENTIFIER)
        self._writer.add_metadata(DESCRIPTION, {'description': json.dumps(self.description)})
        self._channels: dict[str, int] = {}
        for topic, kind in self.topics.items():
            self._register(topic, kind)
        self._writer.flush()
        self._advance()

    def _register(self, topic: str, kind: str) -> None:
        schema = self._writer.register_schema(kind, 'ros2msg', _definition(kind).encode())
        quality = {'offered_qos_profiles': self._quality(topic)}
        self._channels[topic] = self._writer.register_channel(topic, 'cdr', schema, quality)

    def _finish(self) -> None:
        try:
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self._cut()
            raise
        finally:
            self.abandon()
        self._write_metadata()

    def _cut(self) -> None:
        """Remove an incomplete record at the end of the file."""
        with suppress(OSError):  # if this fails too, the first error is the one to report
            os.ftruncate(self._file.fileno(), self._written)

    def _advance(self) -> None:
        place = self._file.tell()
        self.size += place - self._written
        self._written = place

    def _write_metadata(self) -> None:
        self._described = time.monotonic()
        files = [file for file in self._files if file['message_count']]
        first = min((file['first'] for file in files), default=0)
        last = max((file['last'] for file in files), default=0)
        content = {
            'version': VERSION,
            'storage_identifier': 'mcap',
            'duration': {'nanoseconds': last - first},
            'starting_time': {'nanoseconds_since_epoch': first},
            'message_count': sum(self.messages.values()),
            'topics_with_message_count': [
                {
                    'topic_metadata': {
                        'name': topic,
                        'type': kind,
                        'serialization_format': 'cdr',
                        'offered_qos_profiles': self._quality(topic),
                    },
                    'message_count': self.messages[topic],
                }
                for topic, kind in self.topics.items()
            ],
            'compression_format': '',
            'compression_mode': '',
            'relative_file_paths': [file['path'] for file in self._files],
            'files': [
                {
                    'path': file['path'],
                    'starting_time': {'nanoseconds_since_epoch': file['first']},
                    'duration': {'nanoseconds': file['last'] - file['first']},
                    'message_count': file['message_count'],
                }
                for file in self._files
            ],
        }
        text = yaml.dump({'rosbag2_bagfile_information': content}, Dumper=DUMPER, sort_keys=False)
        write_text(self.folder / 'metadata.yaml', text)

    def _quality(self, topic: str) -> str:
        """Return the quality of service with which a topic is to be played, in the format of rosbag2."""
        profile = {
            'history': 1,  # keep last
            'depth': 1 if topic in self.latched else 10,
            'reliability': 1,  # reliable
            'durability': 1 if topic in self.latched else 2,  # transient local or volatile
            'deadline': FOREVER,
            'lifespan': FOREVER,
            'liveliness': 1,  # automatic
            'liveliness_lease_duration': FOREVER,
            'avoid_ros_namespace_conventions': False,
        }
        return str(yaml.dump([profile], Dumper=DUMPER, sort_keys=False))


def _definition(kind: str) -> str:
    """Return a message definition, followed by those of the types in it, as MCAP's encoding "ros2msg" has them."""
    used: dict[str, str] = {}
    waiting = [DEFINITIONS[kind]]
    while waiting:
        text = waiting.pop()
        inside = {name: part for name, part in PARTS.items() if f'{name} ' in text or f'{name}[] ' in text}
        waiting += [part for name, part in inside.items() if name not in used]
        used |= inside
    return DEFINITIONS[kind] + ''.join(f'{"=" * 80}\nMSG: {name}\n{part}' for name, part in used.items())


def writing_library() -> Any:
    """Return the module ``mcap.writer``; its import takes about 0.1 s."""
    try:
        import mcap.writer
    except ImportError as cause:
        raise MissingDependencyError.of('mcap', 'bag', 'record') from cause
    return mcap.writer
