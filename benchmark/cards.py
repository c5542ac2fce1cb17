# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Makes the cards of ``arms/`` and their index: ``python -m benchmark.cards [--cases FOLDER] [ARM ...]``.

``FOLDER`` has a folder for each arm of ``arms/sources.yaml`` that has a card there, with ``arm.urdf`` and the two
recordings, as :mod:`benchmark.cases` makes them. Without it the index alone is made, of the cards that are there,
whoever made them.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import yaml

from robotid_ros.cli import main as robotid

ARMS = Path(__file__).parents[1] / 'arms'
_HEAD = """# Arms that others have identified

Each card is one arm on one day, identified with the defaults from one public recording and judged by another, which it
was not identified from. They are figures to compare with, and priors for an arm of your own of the same type:

```bash not-run: needs a recording
robotid identify RECORDING --robot URDF --prior arms/ur10e/card.yaml
robotid compare arms/ur10e/card.yaml my_result
```

Neither recordings nor descriptions are here. `sources.yaml` says where they are published, with the SHA-256 of each
file, and what was done to them. `python -m benchmark.cases --clones CLONES --out FOLDER` does it again from clones of
the repositories; a card has the SHA-256 of the recordings it was made from. `python -m benchmark.cards --cases FOLDER`
makes the cards and this page again, without `--cases` this page alone. For an arm of your own, add the folder of
`robotid card my_result --out arms/my_arm`. The licence is that of the recordings, as their publisher states it; where
none is stated, ask the publisher before you use more than the figures.

The error is that of all joints on torque that was held out, unless the judge is `training`; the deviation is the median
of the essential base parameters.

| card | arm | joints | judged by | error [%] | deviation [%] | usable | licence of the recordings |
|---|---|---|---|---|---|---|---|
"""


def index(folder: Path) -> str:
    """Return the page of all cards of a folder."""
    lines = []
    for path in sorted(folder.glob('*/card.yaml')):
        card = yaml.load(path.read_text(encoding='utf-8'), Loader=getattr(yaml, 'CSafeLoader', yaml.SafeLoader))
        cells = (
            f'[{path.parent.name}]({path.parent.name}/card.md)',
            card.get('arm', card['robot']),
            len(card['joints']),
            card['judged_by'].replace('_', ' '),
            f'{card["error"]:.3g}',
            f'{card["median_deviation"]:.2g}',
            'yes' if card['usable'] else 'no',
            card.get('terms', 'not said'),
        )
        lines.append(f'| {" | ".join(map(str, cells))} |\n')
    return _HEAD + ''.join(lines)


def make(name: str, said: dict[str, Any], cases: Path, results: Path) -> None:
    """Identify an arm, unless it was, and write its card."""
    case, result = cases / name, results / name
    recordings = [f'{said[use]}.csv' for use in ('train', 'test')]
    joints = ['--joints', *said['joints']] if 'joints' in said else []
    if not (result / 'result.yaml').is_file():
        files = [str(case / each) for each in recordings]
        arm = ['--robot', str(case / 'arm.urdf'), *joints]
        robotid(['identify', files[0], '--validate', files[1], *arm, '--out', str(result)])
        if not (result / 'result.yaml').is_file():  # one that is not usable has a card too
            raise SystemExit(f'{name}: not identified')
    stated = {
        'arm': said['arm'],
        'source': f'{said["address"]}/tree/{said["commit"]}, {len(said["files"])} files, see sources.yaml',
        'terms': said['terms'],
        'conversion': said['conversion'],
        'reproduce': f'robotid identify {recordings[0]} --validate {recordings[1]} --robot arm.urdf '
        f'{" ".join([*joints, "--out result"])} && robotid card result',
    }
    options = [part for key, text in stated.items() for part in (f'--{key}', text)]
    if robotid(['card', str(result), '--out', str(ARMS / name), *options]):
        raise SystemExit(f'{name}: no card')


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m benchmark.cards', description=__doc__.split('\n')[0])
    parser.add_argument('arms', nargs='*', metavar='ARM', help='default: all of arms/sources.yaml')
    parser.add_argument('--cases', type=Path, metavar='FOLDER', help='recordings, a folder for each arm')
    parser.add_argument('--results', type=Path, metavar='DIR', help='keep results there; what is there is taken')
    options = parser.parse_args()
    sources = yaml.safe_load((ARMS / 'sources.yaml').read_text(encoding='utf-8'))
    if unknown := set(options.arms) - set(sources):
        parser.error(f'not in arms/sources.yaml: {", ".join(sorted(unknown))}; it has: {", ".join(sources)}')
    if options.cases is not None:
        with tempfile.TemporaryDirectory() as kept:
            for name in options.arms or [name for name, said in sources.items() if 'role' not in said]:
                make(name, sources[name], options.cases, options.results or Path(kept))
    (ARMS / 'README.md').write_text(index(ARMS), encoding='utf-8')


if __name__ == '__main__':
    main()
