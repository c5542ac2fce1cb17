# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Change numbers in a URDF's text and leave every other character as it was.

The text is parsed for the positions of its tags only; new attribute values are spliced in, so
comments, order, spacing and unknown elements survive.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.transforms import rpy_of_rotation

_START_TAG = re.compile(rb'<([^>"\']|"[^"]*"|\'[^\']*\')*>')  # a '>' in quotes does not end it
_ATTRIBUTE = re.compile(rb'(\s+)([^\s=/>]+)(\s*=\s*)("[^"]*"|\'[^\']*\')')


@dataclass(slots=True)
class _Element:
    """Where one element stands in the bytes of the text."""

    tag: str
    name: str
    start: int
    open_end: int = 0  # just behind the start tag
    close_start: int = 0  # where the end tag starts; open_end for <tag/>
    children: 'list[_Element]' = field(default_factory=list)

    def child(self, tag: str) -> '_Element | None':
        return next((c for c in self.children if c.tag == tag), None)


class _Splicer:
    """Collects replacements of byte ranges and applies them from the end."""

    def __init__(self, text: str) -> None:
        self.data = text.encode('utf-8')
        self.edits: list[tuple[int, int, bytes]] = []
        parser = expat.ParserCreate()
        top = _Element('', '', 0)
        stack = [top]

        def start(tag: str, attributes: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            tag_text = _START_TAG.match(self.data, at)
            assert tag_text is not None  # the parser has found it
            element = _Element(tag, attributes.get('name', ''), at, open_end=tag_text.end())
            stack[-1].children.append(element)
            stack.append(element)

        def end(_: str) -> None:
            element = stack.pop()
            at = parser.CurrentByteIndex  # of "</tag>", or of "<tag/>" itself or just behind it
            element.close_start = at if self.data[at : at + 2] == b'</' and at >= element.open_end else element.open_end

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        try:
            parser.Parse(self.data, True)
        except expat.ExpatError as cause:
            raise ModelError(f'the URDF is not well-formed XML: {cause}') from cause
        self.root = top.children[0]

    def find(self, tag: str, name: str) -> _Element:
        named = {each.name: each for each in self.root.children if each.tag == tag}
        require_names([name], list(named), tag, 'the URDF', ModelError)
        return named[name]

    def set_attributes(self, element: _Element, values: Mapping[str, str]) -> None:
        tag_text = self.data[element.start : element.open_end]
        left = dict(values)

        def swap(match: re.Match[bytes]) -> bytes:
            key = match[2].decode()
            if key not in left:
                return match[0]
            quote = match[4][:1]
            return match[1] + match[2] + match[3] + quote + left.pop(key).encode() + quote

        new = _ATTRIBUTE.sub(swap, tag_text)
        end = b'/>' if new.endswith(b'/>') else b'>'
        extra = b''.join(f' {key}="{value}"'.encode() for key, value in left.items())
        self.edits.append((element.start, element.open_end, new[: -len(end)].rstrip() + extra + end))

    def add_child(self, parent: _Element, text: str) -> None:
        """Insert an element before the parent's end tag, opening <parent/> where needed."""
        line = self.data.rfind(b'\n', 0, parent.start) + 1
        lead = self.data[line : parent.start]
        indent = lead if not lead.strip() else b''
        if self.data[: parent.open_end].endswith(b'/>'):
            opened = self.data[parent.start : parent.open_end - 2].rstrip() + b'>'
            closing = b'\n' + indent + f'</{parent.tag}>'.encode()
            inside = b'\n' + indent + b'  ' + text.encode()
            self.edits.append((parent.start, parent.open_end, opened + inside + closing))
        else:
            at = parent.close_start
            before = self.data[:at].rstrip(b' \t')
            if before.endswith(b'\n'):  # the end tag has a line of its own
                self.edits.append((len(before), len(before), indent + b'  ' + text.encode() + b'\n'))
            else:
                self.edits.append((at, at, text.encode()))

    def result(self) -> str:
        data = self.data
        for start, end, new in sorted(self.edits, reverse=True):
            data = data[:start] + new + data[end:]
        return data.decode('utf-8')


def edited_urdf(
    text: str,
    *,
    inertials: Mapping[str, Array] | None = None,
    origins: Mapping[str, Array] | None = None,
    dynamics: Mapping[str, tuple[float, float]] | None = None,
) -> str:
    """Return a URDF with other numbers, all digits of them, and everything else as it was.

    ``inertials``: standard inertial parameters about the link frame's origin, shape (10,), by link name; they are
    written as mass, centre of mass and inertia about it, along the link frame's axes. ``origins``: joint frame in the
    parent link's frame at zero position, shape (4, 4) [m], by joint name. ``dynamics``: viscous [N m s/rad] and Coulomb
    [N m] friction by joint name. Raises a ModelError if a link or joint is not in the URDF or the text is not
    well-formed.
    """
    splicer = _Splicer(text)
    for link, pi in (inertials or {}).items():
        mass, com, tensor = split_inertial_parameters(np.asarray(pi, dtype=float))
        wanted = {
            'origin': {'xyz': spelled(com), 'rpy': '0 0 0'},
            'mass': {'value': spelled(mass)},
            'inertia': {f'i{"xyz"[i]}{"xyz"[j]}': spelled(tensor[i, j]) for i in range(3) for j in range(i, 3)},
        }
        parent = splicer.find('link', link)
        child = parent.child('inertial')
        if child is None:
            inside = ''.join(_spell(tag, attributes) for tag, attributes in wanted.items())
            splicer.add_child(parent, f'<inertial>{inside}</inertial>')
            continue
        absent = ''
        for tag, attributes in wanted.items():
            grandchild = child.child(tag)
            if grandchild is None:
                absent += _spell(tag, attributes)
            else:
                splicer.set_attributes(grandchild, attributes)
        if absent:
            splicer.add_child(child, absent)
    for joint, transform in (origins or {}).items():
        values = {'xyz': spelled(transform[:3, 3]), 'rpy': spelled(rpy_of_rotation(transform))}
        _set_child(splicer, splicer.find('joint', joint), 'origin', values)
    for joint, (damping, friction) in (dynamics or {}).items():
        values = {'damping': spelled(damping), 'friction': spelled(friction)}
        _set_child(splicer, splicer.find('joint', joint), 'dynamics', values)
    return splicer.result()


def _set_child(splicer: _Splicer, parent: _Element, tag: str, attributes: Mapping[str, str]) -> None:
    child = parent.child(tag)
    if child is None:
        splicer.add_child(parent, _spell(tag, attributes))
    else:
        splicer.set_attributes(child, attributes)


def _spell(tag: str, attributes: Mapping[str, str]) -> str:
    return f'<{tag} ' + ' '.join(f'{key}="{value}"' for key, value in attributes.items()) + '/>'


def spelled(values: ArrayLike) -> str:
    """Return numbers as XML holds them: to the last digit, divided by spaces."""
    return ' '.join(repr(float(value) + 0.0) for value in np.ravel(values))


def quoted(text: str) -> str:
    """Return a text as the value of an XML attribute, with its quotes."""
    return f'"{html.escape(text)}"'
