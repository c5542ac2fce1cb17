# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Bags that the library ``rosbags`` reads: sqlite3 databases, and folders whose messages are compressed one by one."""

import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, MissingDependencyError

BLOCK = 16384  # messages fetched at a time


@dataclass(slots=True)
class StandardFile:
    """A database, or the folder of a bag; attributes as those of :class:`robotid_ros.data.mcap_file.McapFile`."""

    path: Path
    topics: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    faults: dict[str, int] = field(default_factory=dict)
    _whole: Path = field(default_factory=Path)
    _reader: Any = None
    _copy: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def open(cls, path: Path) -> 'StandardFile':
        """Return it with the topics that have messages; refuse what is no bag, or is damaged."""
        file = cls(path, _whole=path)
        with _reading(path):
            file._take_in_journal()
            file._reader = _library().Reader(file._whole)
            file._reader.open()  # it counts all messages, once is enough
            file.topics = {each.topic: each.msgtype for each in file._reader.connections if each.msgcount}
        return file

    def messages(self, topics: Collection[str]) -> Iterator[tuple[int, Mapping[str, MessageChunk]]]:
        """Yield the messages of some topics, block by block: the bytes read (estimated), and chunks by topic."""
        with _reading(self.path):
            wanted = [each for each in self._reader.connections if each.topic in topics]
            size, total, done = self.path.stat().st_size, sum(each.msgcount for each in wanted), 0
            messages = self._reader.messages(wanted) if wanted else iter(())
            while block := list(islice(messages, BLOCK)):
                done += len(block)
                chunks = {}
                for each in wanted:
                    own = block if len(wanted) == 1 else [item for item in block if item[0].id == each.id]
                    if own:
                        chunks[each.topic] = MessageChunk.of([item[2] for item in own], [item[1] for item in own])
                yield size * done // max(total, 1), chunks

    def _take_in_journal(self) -> None:
        """Read a copy where a killed recorder left messages in a journal, which the library passes over."""
        if self.path.suffix != '.db3':
            return
        journal = self.path.with_name(f'{self.path.name}-wal')
        if journal.is_file() and journal.stat().st_size:
            self._copy = tempfile.TemporaryDirectory(prefix='robotid-bag-')
            self._whole = Path(self._copy.name) / self.path.name
            for file in (self.path, journal):
                shutil.copyfile(file, self._whole.with_name(file.name))
            self.complete = False
        with closing(sqlite3.connect(f'{self._whole.absolute().as_uri()}', uri=True)) as database:
            if self._copy is not None:
                database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            # Pages have no checksum: this checks the structure; altered numbers cannot be found.
            ((found,),) = database.execute('PRAGMA quick_check(1)')
        self.faults['damaged_databases'] = int(found != 'ok')


def _library() -> Any:
    try:
        import rosbags.rosbag2
    except ImportError as cause:
        raise MissingDependencyError.of('rosbags', 'bag', 'read and write bags') from cause
    return rosbags.rosbag2


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of the library, of many classes, into a DataError of one line."""
    try:
        yield
    except (DataError, MissingDependencyError, KeyboardInterrupt, OSError):
        raise
    except Exception as cause:
        raise DataError(f'{path}: this bag cannot be read: {" ".join(str(cause).split())[:200]}') from cause
