# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Chunks of serialised messages with times of arrival and sequence numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Serialised messages of one topic, in the order of their arrival.

    Attributes
    ----------
    payload : ndarray of uint8, shape (sum of lengths,)
        The messages, concatenated.
    lengths : ndarray of int64, shape (M,)
        Bytes of each.
    arrival : ndarray of int64, shape (M,)
        Time at which each was sent, where the middleware gives it, or received [ns].
    sequence : ndarray of int64, shape (M,)
        The publisher's sequence numbers; -1 where unknown.
    publisher : ndarray of int64, shape (M,)
        Number of the publisher, in order of appearance.
    """

    payload: NDArray[np.uint8]
    lengths: IntArray
    arrival: IntArray
    sequence: IntArray
    publisher: IntArray

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

    @classmethod
    def joined(cls, chunks: Sequence['MessageChunk']) -> 'MessageChunk':
        """Return the messages of several chunks as one."""
        if len(chunks) == 1:
            return chunks[0]
        return cls(**{name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in cls.__slots__})

    def __len__(self) -> int:
        return len(self.lengths)

    def messages(self) -> list[bytes]:
        """Return the messages one by one."""
        data = self.payload.tobytes()
        ends = np.cumsum(self.lengths).tolist()
        return [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


class LossCounter:
    """Counts messages that are missing in the publishers' sequence numbers."""

    def __init__(self) -> None:
        self.lost = 0
        self._last: dict[int, int] = {}

    def count(self, chunk: MessageChunk) -> int:
        """Return how many were lost before or within this chunk."""
        lost = 0
        for publisher in np.unique(chunk.publisher).tolist():
            numbers = chunk.sequence[(chunk.publisher == publisher) & (chunk.sequence >= 0)]
            if not len(numbers):
                continue
            steps = np.diff(numbers, prepend=self._last.get(publisher, int(numbers[0]) - 1))
            lost += int((steps[steps > 1] - 1).sum())
            self._last[publisher] = int(numbers[-1])
        self.lost += lost
        return lost
