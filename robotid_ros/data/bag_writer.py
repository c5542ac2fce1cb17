# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Bags as the recorder node writes them: rosbag2 folders with an MCAP file, readable up to the last chunk."""

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from robotid_ros.data.bag import STRING
from robotid_ros.data.mcap_file import library
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError

VERSION = 8  # of rosbag2's metadata: the last that ROS 2 Humble plays, too
LARGEST_CHUNK = 1 << 19  # [bytes]
CHECKSUM = 33  # place in the record of a chunk: after opcode, length, two times and the size


class BagWriter:
    """Writes serialised messages of some topics, by their types, to a folder of its own, which must hold nothing yet.

    ``ros2 bag play`` gives the last message of ``latched`` topics to late subscribers. ``metadata.yaml`` is written
    when everything else is: a folder without it is not complete. Raises a DataError if it holds something or cannot be
    made, and a MissingDependencyError if ``rosbags`` is not installed.
    """

    def __init__(self, folder: Path, topics: Mapping[str, str], latched: Sequence[str] = ()) -> None:
        self._library, self._types = writing_library()
        self.folder = folder
        self.latched = tuple(latched)
        self.messages: dict[str, int] = {}
        self.size = 0  # [bytes]
        self._connections: dict[str, Any] = {}
        try:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()  # the library makes it
            self._writer = self._library.Writer(
                folder, version=VERSION, storage_plugin=self._library.StoragePlugin.MCAP
            )
            self._writer.open()
        except OSError as cause:
            raise DataError(f'cannot record to {folder}: {cause.strerror}') from cause
        except self._library.WriterError as cause:
            raise DataError(f'{folder} holds a recording already, or something else; expected a new folder') from cause
        for topic, kind in topics.items():
            self.add_topic(topic, kind)

    def add_topic(self, topic: str, kind: str) -> None:
        """Add a topic while others are recorded; a known one is left as it is."""
        if topic not in self._connections:
            latched = topic in self.latched
            from rosbags import interfaces

            forever = interfaces.QosTime(9223372036, 854775807)  # how rosbag2 writes "without end"
            quality = interfaces.Qos(
                interfaces.QosHistory.KEEP_LAST,
                1 if latched else 10,
                interfaces.QosReliability.RELIABLE,
                interfaces.QosDurability.TRANSIENT_LOCAL if latched else interfaces.QosDurability.VOLATILE,
                forever,
                forever,
                interfaces.QosLiveliness.AUTOMATIC,
                forever,
                avoid_ros_namespace_conventions=False,
            )
            self._connections[topic] = self._writer.add_connection(
                topic, kind, typestore=self._types, offered_qos_profiles=[quality]
            )
            self.messages[topic] = 0

    def say(self, topic: str, text: str, stamp: int) -> None:
        """Write a text as a std_msgs/msg/String [ns]; a late subscriber gets it when the bag is played."""
        if topic not in self.latched:
            self.latched = (*self.latched, topic)
        self.add_topic(topic, STRING)
        data = self._types.serialize_cdr(self._types.types[STRING](data=text), STRING)
        self.append(topic, MessageChunk.of([bytes(data)], [stamp]))

    def append(self, topic: str, chunk: MessageChunk) -> None:
        """Write messages, so that they are in the file when this returns; an OSError says the disk is full or gone."""
        if not len(chunk):
            return
        write, connection = self._writer.write, self._connections[topic]
        for message, stamp in zip(chunk.messages(), chunk.arrival.tolist(), strict=True):
            write(connection, stamp, message)
            if self._writer.storage.chunk.bio.tell() > LARGEST_CHUNK:
                self._seal()
        self._seal()
        self._writer.storage.bio.flush()
        self.messages[topic] += len(chunk)

    def _seal(self) -> None:
        """End the present chunk, which a kill would lose, with its checksum, which the library leaves out."""
        storage = self._writer.storage
        start, checksum = storage.bio.tell(), zlib.crc32(storage.chunk.bio.getbuffer())
        storage.close_chunk()
        self.size = storage.bio.tell()
        storage.bio.seek(start + CHECKSUM)
        storage.bio.write(checksum.to_bytes(4, 'little'))
        storage.bio.seek(self.size)

    def close(self, summary: Mapping[str, Any] | None = None) -> None:
        """Write the end of the file, and last ``metadata.yaml``, with a summary as custom data."""
        try:
            if summary is not None:
                self._writer.set_custom_data('robotid_ros', json.dumps(summary))
            self._writer.close()
        except OSError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the file as it is, without its end."""
        storage = self._writer.storage
        if storage is not None:
            with suppress(OSError, ValueError):
                storage.bio.raw.close()  # without flushing what a full disk left in the buffer


def writing_library() -> tuple[Any, Any]:
    """Return the module that writes bags, and the types of messages."""
    typesys = library('rosbags.typesys', 'record')
    return library('rosbags.rosbag2', 'record'), typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
