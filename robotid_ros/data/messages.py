# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Serialised ROS messages (plain CDR) without ROS: in chunks, any field by field, joint states by the thousand.

Messages of one layout (same joint names in the same order, same array lengths, same frame) differ
only in their stamp and their doubles, at fixed places. The first message of a layout is read field
by field; the others are recognised by comparing their fixed bytes and read as one block.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import IntArray

FAULTS = (
    'lost_before_capture',
    'gaps',
    'missing',
    'repeated',
    'late_stamps',
    'backward',
    'stray',
    'unstamped',
    'clock_jumps',
    'displaced',
    'not_a_number',
    'undecodable',
    'missing_joints',
    'missing_effort',
    'order_changes',
)
"""What may be wrong with a stream of joint states: names of the counts that a recorder keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChunk:
    """Serialised messages of one topic, in the order of their arrival."""

    payload: NDArray[np.uint8]  # shape (sum of lengths,): the messages, concatenated
    lengths: IntArray  # shape (M,), as the next: bytes of each
    arrival: IntArray  # time at which each was sent, where the middleware gives it, or received [ns]
    sequence: IntArray  # the publisher's sequence numbers; -1 where unknown
    publisher: IntArray  # number of the publisher, in order of appearance

    @classmethod
    def of(
        cls,
        messages: Sequence[bytes],
        arrival: Sequence[int],
        sequence: Sequence[int] | None = None,
        publisher: Sequence[int] | None = None,
    ) -> 'MessageChunk':
        """Pack messages as they were received."""
        count = len(messages)
        return cls(
            payload=np.frombuffer(b''.join(messages), dtype=np.uint8),
            lengths=np.fromiter(map(len, messages), dtype=np.int64, count=count),
            arrival=np.array(arrival, dtype=np.int64),
            sequence=np.full(count, -1, dtype=np.int64) if sequence is None else np.array(sequence, dtype=np.int64),
            publisher=np.zeros(count, dtype=np.int64) if publisher is None else np.array(publisher, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def messages(self) -> list[bytes]:
        """Return the messages one by one."""
        data = self.payload.tobytes()
        ends = np.cumsum(self.lengths).tolist()
        return [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


LARGEST = 1 << 20  # [bytes] of a joint state, of any arm's some kB
HEADER = 4  # encapsulation bytes; alignment is relative to their end
ByteArray = NDArray[np.uint8]
FIELDS = ('position', 'velocity', 'effort')
# Why a message gave no sample.
COMPLETE, UNDECODABLE, OTHER_JOINTS, INCOMPLETE = 0, 1, 2, 3
COUNTS = ('messages', 'undecodable', 'other_joints', 'missing_joints', 'order_changes')


class CdrReader:
    """Reads the fields of one message in their order: encapsulation header and plain CDR, in either byte order.

    Implementations differ in whether the position is aligned to 8 bytes after an empty array of doubles too
    (``aligned_empty``). Those of ``serialize_message`` do not align, but reserve the length of a message that does
    (:meth:`ended`). Every method raises a ValueError if the message is not plain CDR or ends too early.
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


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of the fields in a message, and the bytes that are the same in all messages of its kind."""

    names: tuple[str, ...]  # joints, in the message's order
    offsets: tuple[int, int, int]  # first byte of positions, velocities and efforts; -1 where that array is empty
    fixed: IntArray  # indices of the bytes that are the layout: encapsulation, strings, lengths
    pattern: ByteArray  # these bytes
    little_endian: bool

    def fits(self, rows: ByteArray) -> NDArray[np.bool_]:
        """Return which messages of its length, shape (M, length), have this layout."""
        return np.asarray((rows[:, self.fixed] == self.pattern).all(axis=1))


def decode_layout(data: bytes) -> Layout | None:
    """Return the layout of one serialised message, or None where it is not a JointState.

    The data are the encapsulation header and plain CDR, in either byte order. Both ways in which implementations align
    an empty array of doubles are tried.
    """
    if len(data) < HEADER + 24:
        return None
    for aligned_empty in (False, True):
        try:
            reader = CdrReader(data, aligned_empty)
            reader.skip(8)  # the stamp
            reader.string()
            names = reader.strings()
            arrays = [reader.skip_doubles() for _ in FIELDS]
        except ValueError:
            continue
        # An array is empty or as long as the list of names; nothing but padding may follow the last one.
        if reader.ended() and all(count in (0, len(names)) for count, _ in arrays):
            fixed = np.concatenate([np.arange(a, b) for a, b in reader.fixed])
            offsets = [start if count else -1 for count, start in arrays]
            pattern = np.frombuffer(data, dtype=np.uint8)[fixed]
            return Layout(names, (offsets[0], offsets[1], offsets[2]), fixed, pattern, reader.little_endian)
    return None


@dataclass(slots=True)
class JointStateDecoder:
    """Decodes streams of serialised JointState messages; remembers their layouts."""

    MOST_LAYOUTS: ClassVar[int] = 64  # more of them are not a stream of joint states

    # the joints wanted, in the order wanted; empty takes those of the message with the most joints among the first ones
    # (a gripper may publish on the same topic)
    joints: tuple[str, ...] = ()
    layouts: list[Layout] = field(default_factory=list)  # every layout so far
    # messages so far, those of no use by their reason, and how often the order of the joints changed
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    _names: set[str] = field(default_factory=set)
    _orders: dict[tuple[str, ...], int] = field(default_factory=dict)
    _order: int = -1
    _known: dict[int, list[int]] = field(default_factory=dict)  # layouts by the length of their messages

    @property
    def extra(self) -> list[str]:
        """Joints in the messages that are not wanted."""
        return sorted(self._names - set(self.joints))

    def decode(self, messages: Sequence[bytes]) -> dict[str, Any]:
        """Return M messages as arrays, see :meth:`decode_block`."""
        lengths = np.fromiter((len(m) for m in messages), dtype=np.int64, count=len(messages))
        return self.decode_block(np.frombuffer(b''.join(messages), dtype=np.uint8), lengths)

    def decode_block(self, payload: ByteArray, lengths: IntArray) -> dict[str, Any]:
        """Return concatenated messages of these lengths, shape (M,), as arrays.

        That are the ``stamp`` of each header, shape (M,) [ns], ``position``, ``velocity`` and ``effort``, shape (M, n),
        NaN where a message has none, and the ``reason``, shape (M,): COMPLETE, UNDECODABLE, OTHER_JOINTS or INCOMPLETE.
        """
        count = len(lengths)
        if not self.joints:
            at = 0
            for length in lengths[:100].tolist():
                layout = decode_layout(payload[at : at + length].tobytes())
                if layout is not None and layout.offsets[0] >= 0 and len(layout.names) > len(self.joints):
                    self.joints = layout.names
                at += length
        reason = np.full(count, UNDECODABLE, dtype=np.uint8)
        batch: dict[str, Any] = {'stamp': np.zeros(count, dtype=np.int64), 'reason': reason}
        batch |= {name: np.full((count, len(self.joints)), np.nan) for name in FIELDS}
        order = np.full(count, -1)
        starts = np.cumsum(lengths) - lengths
        for length in np.unique(lengths[lengths <= LARGEST]):
            chosen = np.flatnonzero(lengths == length)
            if len(chosen) == count:
                rows = payload.reshape(count, length)
            else:
                rows = payload[starts[chosen, None] + np.arange(length)]
            while len(chosen):
                number, same = self._match(rows)
                if number >= 0:
                    self._read(self.layouts[number], rows[same], chosen[same], batch)
                    own = tuple(name for name in self.layouts[number].names if name in self.joints)
                    order[chosen[same]] = self._orders.setdefault(own, len(self._orders))
                chosen, rows = chosen[~same], rows[~same]
        order = order[reason == COMPLETE]
        for name, code in zip(COUNTS, (None, UNDECODABLE, OTHER_JOINTS, INCOMPLETE), strict=False):
            self.counts[name] += len(reason) if code is None else int((reason == code).sum())
        if len(order):
            before = order[0] if self._order < 0 else self._order
            self.counts['order_changes'] += int((np.diff(order, prepend=before) != 0).sum())
            self._order = int(order[-1])
        return batch

    def _match(self, rows: ByteArray) -> tuple[int, NDArray[np.bool_]]:
        """Return the layout of the first row, and which rows share it."""
        known = self._known.setdefault(rows.shape[1], [])
        number = next((k for k in known if self.layouts[k].fits(rows[:1])[0]), -1)
        if number < 0:
            layout = decode_layout(rows[0].tobytes())
            if layout is None:
                return -1, np.arange(len(rows)) == 0
            if len(self.layouts) >= self.MOST_LAYOUTS:
                self.layouts.clear()
                self._known.clear()
            number = len(self.layouts)
            self.layouts.append(layout)
            self._known.setdefault(rows.shape[1], []).append(number)
            self._names.update(layout.names)
        return number, self.layouts[number].fits(rows)

    def _read(self, layout: Layout, rows: ByteArray, at: IntArray, batch: dict[str, Any]) -> None:
        stamp, reason, order = batch['stamp'], batch['reason'], '<' if layout.little_endian else '>'
        seconds = np.ascontiguousarray(rows[:, HEADER : HEADER + 4]).view(f'{order}i4')[:, 0]
        nanoseconds = np.ascontiguousarray(rows[:, HEADER + 4 : HEADER + 8]).view(f'{order}u4')[:, 0]
        stamp[at] = seconds.astype(np.int64) * 1_000_000_000 + nanoseconds
        where = {name: k for k, name in enumerate(layout.names)}
        own = [k for k, joint in enumerate(self.joints) if joint in where]
        theirs = [where[self.joints[k]] for k in own]
        if not own or layout.offsets[0] < 0:
            reason[at] = OTHER_JOINTS
            return
        reason[at] = COMPLETE if len(own) == len(self.joints) else INCOMPLETE
        straight = theirs == list(range(len(layout.names))) and len(own) == len(self.joints)
        for name, offset in zip(FIELDS, layout.offsets, strict=True):
            if offset < 0:
                continue
            target = batch[name]
            block = np.ascontiguousarray(rows[:, offset : offset + 8 * len(layout.names)]).view(f'{order}f8')
            if straight:
                target[at] = block
            else:
                target[at[:, None], np.array(own)] = block[:, theirs]
