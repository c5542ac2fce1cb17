# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Serialised ROS messages (plain CDR), read field by field with bounds."""

import struct

HEADER = 4  # encapsulation bytes; alignment is relative to their end


class CdrReader:
    """Reads the fields of one message in their order.

    Parameters
    ----------
    data : bytes
        Encapsulation header and plain CDR, either byte order.
    aligned_empty : bool
        Whether the position is aligned to 8 bytes after an empty array of doubles too: implementations differ. Those
        of ``serialize_message`` do not align, but reserve the length of a message that does (:meth:`ended`).

    Raises
    ------
    ValueError
        Here and in every method, if the message is not plain CDR or ends too early.
    """

    def __init__(self, data: bytes, aligned_empty: bool = False) -> None:
        if len(data) < HEADER or data[0] != 0 or data[1] > 1:
            raise ValueError('expected plain CDR')
        self.data = data
        self.at = self.reserved = HEADER
        self.little_endian = data[1] == 1
        self.aligned_empty = aligned_empty
        self.fixed: list[tuple[int, int]] = [(0, 2)]  # encapsulation, lengths and strings: the message's layout

    def align(self, size: int) -> None:
        """Advance to the next multiple of a size."""
        self.at += -(self.at - HEADER) % size
        self.reserved += -(self.reserved - HEADER) % size

    def skip(self, size: int) -> None:
        """Advance by some bytes."""
        self.at += size
        self.reserved += size
        if self.at > len(self.data):
            raise ValueError('the message ends too early')

    def ended(self) -> bool:
        """Return whether all of the message was read, but for padding."""
        return 0 <= len(self.data) - self.at <= 7 or len(self.data) == self.reserved

    def time(self) -> int:
        """Read seconds and nanoseconds [ns]."""
        self.align(4)
        self.skip(8)
        seconds, nanoseconds = struct.unpack_from('<iI' if self.little_endian else '>iI', self.data, self.at - 8)
        return int(seconds) * 1_000_000_000 + int(nanoseconds)

    def length(self, largest: int) -> int:
        """Read the length of an array or string."""
        self.align(4)
        start = self.at
        self.skip(4)
        value = int.from_bytes(self.data[start : self.at], 'little' if self.little_endian else 'big')
        if value > largest:
            raise ValueError('a length exceeds the message')
        self.fixed.append((start, self.at))
        return value

    def string(self) -> str:
        """Read a string."""
        size = self.length(len(self.data))
        start = self.at
        self.skip(size)
        self.fixed.append((start, self.at))
        return self.data[start : self.at].rstrip(b'\0').decode('utf-8')

    def strings(self) -> tuple[str, ...]:
        """Read an array of strings."""
        return tuple(self.string() for _ in range(self.length(len(self.data) // 5)))

    def skip_doubles(self) -> tuple[int, int]:
        """Skip an array of doubles; return their number and the position of the first."""
        count = self.length(len(self.data) // 8)
        if count or self.aligned_empty:
            self.align(8)
        else:
            self.reserved += -(self.reserved - HEADER) % 8
        start = self.at
        self.skip(8 * count)
        return count, start

    def doubles(self, count: int | None = None) -> tuple[float, ...]:
        """Read an array of doubles, or as many as the type says."""
        if count is None:
            count, start = self.skip_doubles()
        else:
            self.align(8)
            start = self.at
            self.skip(8 * count)
        return struct.unpack_from(f'{"<" if self.little_endian else ">"}{count}d', self.data, start)
