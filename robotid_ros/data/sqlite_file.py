# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Data files of rosbag2 that are sqlite3 databases."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError

ROWS = 16384  # messages fetched at a time


@dataclass(slots=True)
class SqliteFile:
    """One database.

    Attributes
    ----------
    path : Path
    topics : dict of str to str
        Types of the topics.
    unpack : callable, optional
        Undoes the compression of each message.
    metadata, complete, faults
        As those of :class:`robotid_ros.data.mcap_file.McapFile`.
    """

    path: Path
    topics: dict[str, str]
    unpack: Callable[[bytes], bytes] | None = None
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    complete: bool = True
    faults: dict[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, unpack: Callable[[bytes], bytes] | None = None) -> 'SqliteFile':
        """Return a database with its topics; refuse what is no database of rosbag2, or is damaged."""
        with _reading(path), closing(_connect(path)) as database:
            # Topics of trajectories only where they have messages.
            used = "type NOT LIKE '%JointTrajectory' OR EXISTS (SELECT 1 FROM messages WHERE topic_id = topics.id)"
            rows = database.execute(f'SELECT name, type FROM topics WHERE {used}').fetchall()
        return cls(path, {str(name): str(kind) for name, kind in rows}, unpack)

    def messages(self, topics: Collection[str]) -> Iterator[tuple[int, Mapping[str, MessageChunk]]]:
        """Yield the messages of some topics, block by block: the bytes read (estimated), and chunks by topic."""
        size = self.path.stat().st_size
        with _reading(self.path), closing(_connect(self.path)) as database:
            # Pages have no checksum: this checks the structure; altered numbers cannot be found.
            ((found,),) = database.execute('PRAGMA quick_check(1)')
            self.faults['damaged_databases'] = int(found != 'ok')
            names = {key: name for key, name in database.execute('SELECT id, name FROM topics') if name in topics}
            choice = f'FROM messages WHERE topic_id IN ({", ".join("?" * len(names))})'
            ((count,),) = database.execute(f'SELECT count(*) {choice}', tuple(names))
            rows = database.execute(f'SELECT topic_id, timestamp, data {choice} ORDER BY timestamp, id', tuple(names))
            done = 0
            while block := rows.fetchmany(ROWS):
                done += len(block)
                yield size * done // max(count, 1), self._chunks(block, names)

    def _chunks(self, rows: list[tuple[Any, Any, Any]], names: Mapping[Any, str]) -> dict[str, MessageChunk]:
        # A damaged database can hold anything in a column; what is not a message counts as undecodable.
        chunks = {}
        for key in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == key and isinstance(row[1], int)]
            data = [row[2] if isinstance(row[2], bytes) else b'' for row in own]
            if self.unpack is not None:
                data = [self._unpacked(message) for message in data]
            chunks[names[key]] = MessageChunk.of(data, [row[1] for row in own])
        return chunks

    def _unpacked(self, message: bytes) -> bytes:
        assert self.unpack is not None
        try:
            return self.unpack(message)
        except Exception:  # of the library; an empty message is counted as undecodable
            return b''


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f'{path.absolute().as_uri()}?mode=ro', uri=True)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of sqlite3 into a DataError of one line."""
    try:
        yield
    except (sqlite3.Error, OverflowError, UnicodeDecodeError, MemoryError) as cause:
        raise DataError(f'{path}: this bag cannot be read: {str(cause)[:200]}') from cause
