# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The directive ``{architecture}``: the rooms of the package and their imports, drawn from the source.

python docs/_ext/architecture.py > architecture.svg
"""

import ast
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

import robotid_ros

PACKAGE = Path(robotid_ros.__file__).parent  # the manual may be built from a copy of docs/
WIDTH, ROW, BOX, HEIGHT = 960, 84, 116, 40


def imports() -> dict[str, Counter[str]]:
    """Return, for each room, how many imports of every other room it has. A room is a folder or a file at the top."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        room = path.relative_to(PACKAGE).parts[0].removesuffix('.py')
        if room == '__init__':
            continue
        own = found.setdefault(room, Counter())
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('robotid_ros.'):
                other = str(node.module).split('.')[1]
                if other != room:
                    own[other] += 1
    return found


def levels(found: dict[str, Counter[str]]) -> dict[str, int]:
    """Return how high each room stands: above everything that it imports.

    Raises
    ------
    ValueError
        If rooms import each other in a circle.
    """
    level: dict[str, int] = {}
    while len(level) < len(found):
        ready = [room for room in found if room not in level and all(o in level for o in found[room] if o in found)]
        if not ready:
            raise ValueError(f'rooms import each other in a circle: {", ".join(sorted(set(found) - set(level)))}')
        for room in ready:
            level[room] = 1 + max((level[other] for other in found[room] if other in found), default=-1)
    return level


def svg() -> str:
    """Return the picture: what is imported stands below what imports it; a line is as wide as it has imports."""
    found = imports()
    level = levels(found)
    top = max(level.values())
    place: dict[str, tuple[float, float]] = {}
    for height in range(top + 1):
        rooms = sorted(room for room in level if level[room] == height)
        for k, room in enumerate(rooms):
            place[room] = ((k + 0.5) * WIDTH / len(rooms), 30 + (top - height) * ROW)
    lines, boxes = [], []
    for room, others in found.items():
        x, y = place[room]
        for other, count in sorted(others.items()):
            if other in place:
                a, b = place[other]
                lines.append(
                    f'<path d="M{x:.0f} {y + HEIGHT / 2:.0f} '
                    f'C{x:.0f} {(y + b) / 2:.0f} {a:.0f} {(y + b) / 2:.0f} {a:.0f} {b - HEIGHT / 2:.0f}" '
                    f'stroke-width="{min(0.6 + 0.15 * count, 4.0):.2f}">'
                    f'<title>{room} imports {other}, {count} times</title></path>'
                )
        boxes.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}">{room}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {60 + top * ROW}" role="img" '
        'aria-label="rooms of the package and their imports"><style>path{fill:none;stroke:#7a8aa0;opacity:.45}'
        'rect{fill:#e8eef6;stroke:#456}text{font:14px sans-serif;text-anchor:middle;fill:#123}</style>'
        f'{"".join(lines)}{"".join(boxes)}</svg>'
    )


class Architecture(Directive):
    """``{architecture}``: the picture."""

    def run(self) -> list[nodes.Node]:
        """Return the picture as HTML."""
        return [nodes.raw('', svg(), format='html')]


def setup(app: object) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('architecture', Architecture)  # type: ignore[attr-defined]
    return {'parallel_read_safe': True}


if __name__ == '__main__':
    print(svg())
