# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Makes the case folders of published recordings: ``python -m benchmark.cases --clones FOLDER --out FOLDER``.

``arms/sources.yaml`` says where each recording is published, with commit and checksums, and what is done to it. The
clones are the user's: ``git clone ADDRESS FOLDER/OWNER/NAME`` and ``git checkout COMMIT`` in it. Nothing is downloaded
here. Each arm becomes a folder with ``arm.urdf``, its recordings as CSV and ``pairs.csv``, as
``python -m benchmark --only recordings --cases FOLDER`` and ``python -m benchmark.cards`` read them.

What an entry of ``sources.yaml`` says of its conversion:

``description``
    ``urdf``: a file of the repository; or ``table``: a Denavit-Hartenberg table as ``robotid`` reads it, which becomes
    a description with links of 1 kg at their joints. ``mount``: roll, pitch and yaw of the base [rad]. ``address``,
    ``commit``, ``sha256``: where the description is from another repository. ``inertials``: what links of a ``urdf``
    have instead, as mass, first moments and inertia xx, xy, xz, yy, yz, zz about the link's frame [kg, m].
``earlier``
    Files that the commit no longer has, each with one that does: ``git checkout THAT -- FILE`` in the clone.
``recorded``
    Joints of the recording, in the order of its columns; where it is missing, ``joints``.
``signals``
    For ``time``, ``position`` and ``effort`` (and ``velocity``, ``current``): ``column`` is a number (from 0; the
    following joints in the columns that follow), a list of numbers, or a name in which ``{0}`` stands for the number
    of the joint from 0, ``{1}`` from 1, ``{2}`` for its name (``of``: which columns of what has that name); then
    ``scale`` or ``over`` (for all, or for each), ``mix`` (rows ``[joint, other, factor]`` from 1: the other's value,
    scaled, is added) and ``offset``. ``names``: what a bag calls the joints, in the same way. ``number``: a pattern
    that finds a sample of all joints, or of one, in a text; ``wrap``: one number a line, joint by joint.
    ``time`` may be ``{rate: HZ}``.
``recordings``
    Each with its file; or a file for each signal. ``{1}`` in a path: a file for each joint.
``otherwise``
    For recordings that differ in it, what is said of a signal instead of ``signals``.
``start``, ``end``
    What is kept of each recording [s from its beginning].
``advancing``
    A sample whose time is not after that of the one before is left out.
``halves``
    The recording becomes ``first`` and ``second``; where there are several, each becomes ``NAME_first`` and so on.
``role``
    ``new``: not run before; ``kept back``: run only at the end of a change. Such an entry has no card.
``pairs``
    ``[train, test]``, several joined by ``+``, in the order of ``docs/real_recordings.md``.
"""

import argparse
import csv
import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.data import Recording, read_recording
from robotid_ros.data.readers import write_csv
from robotid_ros.model.transforms import rotation_x, rotation_z, rpy_of_rotation, translation

SOURCES = Path(__file__).parents[1] / 'arms' / 'sources.yaml'
_SIGNALS = ('position', 'velocity', 'effort', 'current')


class CaseError(ValueError):
    """A case cannot be made; the message says why in one line."""


def make(name: str, said: Mapping[str, Any], clones: Path, out: Path) -> Path:
    """Make the case folder of one arm and return it.

    Raises
    ------
    CaseError
        If a clone or a file is missing, or a file is not the published one.
    """
    clone = _clone(said['address'], clones)
    for path, checksum in said['files'].items():
        kept = said.get('earlier', {})
        _checked(name, clone / path, checksum, f"{kept[path]} -- '{path}'" if path in kept else said['commit'])
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    _describe(name, said, clone, clones, folder / 'arm.urdf')
    for recording, files in said['recordings'].items():
        other = said.get('otherwise', {}).get(recording, {})
        signals = {signal: {**stated, **other.get(signal, {})} for signal, stated in said['signals'].items()}
        files = files if isinstance(files, dict) else dict.fromkeys(signals, files)
        whole = _converted(said, signals, files, clone)
        parts = {recording: whole}
        if said.get('halves'):
            middle = len(whole) // 2
            start = '' if len(said['recordings']) == 1 else f'{recording}_'
            parts = {f'{start}first': whole.slice(0, middle), f'{start}second': whole.slice(middle, len(whole))}
        for part, kept in parts.items():
            write_csv(folder / f'{part}.csv', kept)
    with (folder / 'pairs.csv').open('w', encoding='utf-8', newline='') as file:
        csv.writer(file, lineterminator='\n').writerows([('train', 'test'), *said['pairs']])
    return folder


def _recorded(said: Mapping[str, Any]) -> Sequence[str]:
    return said.get('recorded') or said['joints']


def _clone(address: str, clones: Path) -> Path:
    owner, name = address.rstrip('/').split('/')[-2:]
    for folder in (clones / owner / name, clones / name):
        if folder.is_dir():
            return folder
    raise CaseError(f'no clone at {clones / owner / name}: git clone {address} there')


def _checked(name: str, path: Path, checksum: str, commit: str) -> None:
    if not path.is_file():
        raise CaseError(f'{name}: no file {path}; git checkout {commit} in its clone')
    if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != checksum:
        raise CaseError(f'{name}: {path} is not the published file: SHA-256 {found[:12]}..., not {checksum[:12]}...')


def _describe(name: str, said: Mapping[str, Any], clone: Path, clones: Path, path: Path) -> None:
    """Write the description of an arm, with its mount."""
    stated = said['description']
    if 'table' in stated:
        root = table_urdf(name, stated['table'].get('joints') or _recorded(said), stated['table'])
    else:
        source = clone / stated['urdf']
        if 'address' in stated:
            source = _clone(stated['address'], clones) / stated['urdf']
            _checked(name, source, stated['sha256'], stated['commit'])
        root = ElementTree.parse(source).getroot()
        named = {link.get('name', '') for link in root.findall('link')}
        missing = [end.get('link', '') for end in root.iter('parent') if end.get('link', '') not in named]
        if not missing and not {'mount', 'inertials'} & set(stated):
            shutil.copyfile(source, path)
            return
        for link in missing:  # such as a world that is named nowhere else
            root.insert(0, ElementTree.Element('link', name=link))
    for link, (mass, *rest) in stated.get('inertials', {}).items():
        place = np.array(rest[:3]) / mass
        about = mass * (place @ place * np.eye(3) - np.outer(place, place))[np.triu_indices(3)]
        element = next(each for each in root.findall('link') if each.get('name') == link)
        for old in element.findall('inertial'):
            element.remove(old)
        inertial = ElementTree.SubElement(element, 'inertial')
        ElementTree.SubElement(inertial, 'origin', xyz=' '.join(map(repr, place.tolist())), rpy='0 0 0')
        ElementTree.SubElement(inertial, 'mass', value=repr(mass))
        inertia = zip(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), (np.array(rest[3:]) - about).tolist(), strict=True)
        ElementTree.SubElement(inertial, 'inertia', {key: repr(value) for key, value in inertia})
    if 'mount' in stated:
        children = {child.get('link') for child in root.iter('child')}
        base = next(link.get('name', '') for link in root.findall('link') if link.get('name') not in children)
        root.insert(0, ElementTree.Element('link', name='mount'))
        joint = ElementTree.SubElement(root, 'joint', name='mounted', type='fixed')
        ElementTree.SubElement(joint, 'parent', link='mount')
        ElementTree.SubElement(joint, 'child', link=base)
        ElementTree.SubElement(joint, 'origin', xyz='0 0 0', rpy=' '.join(map(str, stated['mount'])))
    ElementTree.indent(root)
    path.write_text(ElementTree.tostring(root, encoding='unicode') + '\n', encoding='utf-8')


def table_urdf(name: str, joints: Sequence[str], table: Mapping[str, Any]) -> ElementTree.Element:
    """Return the description of a Denavit-Hartenberg table, rows ``[theta, d, a, alpha]``, with links of 1 kg.

    A joint of a standard table turns before its row's transform, one of a modified table before its row's rotation
    and shift along the same axis: the origin of a joint is what stands between its axis and the one before.
    """
    rows, standard = np.array(table['rows'], dtype=float), table['convention'] == 'standard'
    rows[:, [0, 3]] *= np.pi / 180.0 if table.get('angle_unit', 'rad') == 'deg' else 1.0
    sliding = table.get('prismatic', [])
    root = ElementTree.Element('robot', name=name)
    ElementTree.SubElement(root, 'link', name='base_link')
    parent, before = 'base_link', np.eye(4)
    for k, (joint, (theta, d, a, alpha)) in enumerate(zip(joints, rows, strict=True)):
        turn, rise, bend = rotation_z(theta), translation((0, 0, d)), rotation_x(alpha) @ translation((a, 0, 0))
        if standard:
            origin, before = before @ turn, rise @ bend
        else:
            origin = bend @ turn @ rise
        link = ElementTree.SubElement(root, 'link', name=f'link_{k + 1}')
        inertial = ElementTree.SubElement(link, 'inertial')
        ElementTree.SubElement(inertial, 'mass', value='1.0')
        ElementTree.SubElement(inertial, 'inertia', ixx='0.01', ixy='0', ixz='0', iyy='0.01', iyz='0', izz='0.01')
        kind = 'prismatic' if joint in sliding else 'continuous'
        element = ElementTree.SubElement(root, 'joint', name=joint, type=kind)
        ElementTree.SubElement(element, 'parent', link=parent)
        ElementTree.SubElement(element, 'child', link=f'link_{k + 1}')
        roll, pitch, yaw = (f'{angle:.12g}' for angle in rpy_of_rotation(origin[:3, :3]))
        place = ' '.join(f'{value:.12g}' for value in origin[:3, 3])
        ElementTree.SubElement(element, 'origin', xyz=place, rpy=f'{roll} {pitch} {yaw}')
        ElementTree.SubElement(element, 'axis', xyz='0 0 1')
        if joint in sliding:  # without limits it is no valid description
            ElementTree.SubElement(element, 'limit', lower='-10', upper='10', velocity='10', effort='10000')
        parent = f'link_{k + 1}'
    return root


def _converted(said: Mapping[str, Any], signals: Mapping[str, Any], files: Mapping[str, str], clone: Path) -> Recording:
    """Return a recording of an arm from its published files, in SI units."""
    joints, columns = _recorded(said), {}
    for signal in _SIGNALS:
        if signal in signals:
            raw = _columns(clone / files[signal], signals[signal], joints)
            columns[signal] = _scaled(raw, signals[signal])
    length = min(map(len, columns.values()))
    time = np.arange(length) / signals['time']['rate'] if 'rate' in signals['time'] else None
    if time is None:
        time = _scaled(_columns(clone / files['time'], signals['time'], ['time']), signals['time'])[:, 0]
        time = time - time[0]
    length = min(length, len(time))
    taken = np.flatnonzero(np.r_[True, (np.diff(time[:length]) > 0) | (not said.get('advancing'))])
    recording = Recording(joint_names=tuple(joints), time=time[taken], **{k: v[taken] for k, v in columns.items()})
    kept = np.flatnonzero((recording.time >= said.get('start', 0.0)) & (recording.time <= said.get('end', np.inf)))
    return recording.slice(int(kept[0]), int(kept[-1]) + 1)


def _scaled(raw: Array, stated: Mapping[str, Any]) -> Array:
    value = raw * np.array(stated.get('scale', 1.0), dtype=float) / np.array(stated.get('over', 1.0), dtype=float)
    mixed = value.copy()
    for joint, other, factor in stated.get('mix', ()):
        mixed[:, joint - 1] += factor * value[:, other - 1]
    return mixed + np.array(stated.get('offset', 0.0), dtype=float)


def _columns(path: Path, stated: Mapping[str, Any], joints: Sequence[str]) -> Array:
    """Return the columns of a signal as published, shape (N, n)."""
    n, column = len(joints), stated.get('column', 0)
    if '{' in path.name:
        each = [_columns(Path(str(path).format(k, k + 1, joint)), stated, [joint]) for k, joint in enumerate(joints)]
        return np.hstack(each)
    if 'number' in stated:
        found = ' '.join(re.findall(stated['number'], path.read_text(encoding='utf-8')))
        return np.array(found.split(), dtype=float).reshape(-1, n)
    if isinstance(column, str):
        names = [column.format(k, k + 1, joint) for k, joint in enumerate(joints)]
        known = [stated.get('names', '{2}').format(k, k + 1, joint) for k, joint in enumerate(joints)]
        value = _named(path, list(dict.fromkeys(names)), known)
        value = value[:, stated['of']] if 'of' in stated else value
    else:
        value = _numbers(path)[1]
        if not stated.get('wrap'):
            value = value[:, column if isinstance(column, list) else range(column, column + n)]
    return value.reshape(-1, n)


def _named(path: Path, names: Sequence[str], joints: Sequence[str]) -> Array:
    """Return named columns of a table, an archive, a bag or a list of messages."""
    if path.suffix == '.db3':
        recording = read_recording(path)
        return np.asarray(getattr(recording if names[0] == 'time' else recording.select(tuple(joints)), names[0]))
    if path.suffix == '.npz':
        return np.asarray(np.load(path)[names[0]])
    if path.suffix == '.mat':
        import scipy.io

        value = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)
        for part in names[0].split('.'):
            value = value[part] if isinstance(value, dict) else getattr(value, part)
        value = np.array([np.ravel(each) for each in value], dtype=float)  # a cell for each sample, or a matrix
        return value.T if len(value) == len(joints) else value
    if path.suffix == '.json':
        return np.array([message[names[0]] for message in json.loads(path.read_text(encoding='utf-8'))], dtype=float)
    header, value = _numbers(path)
    if missing := [name for name in names if name not in header]:
        raise CaseError(f'{path} has no column {missing[0]!r}; it has: {", ".join(header)[:200]}')
    return value[:, [header.index(name) for name in names]]


def _numbers(path: Path) -> tuple[list[str], Array]:
    """Return the names of a text's columns, if it has any, and its numbers."""
    lines = path.read_text(encoding='utf-8-sig').splitlines()
    separator = next((mark for mark in (',', ';') if mark in lines[0]), None)
    header = [name.strip() for name in lines[0].split(separator)]
    try:
        header = [] if [float(name) for name in header if name] else header
    except ValueError:
        lines = lines[1:]
    if len(lines[-1].split(separator)) != len(lines[0].split(separator)):  # the recording was cut off in it
        lines = lines[:-1]
    return header, np.loadtxt(lines, delimiter=separator, ndmin=2)


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m benchmark.cases', description=__doc__.split('\n')[0])
    parser.add_argument('--clones', type=Path, required=True, metavar='FOLDER', help='clones, as OWNER/NAME')
    parser.add_argument('--out', type=Path, required=True, metavar='FOLDER', help='a folder for each arm is made there')
    parser.add_argument('--only', nargs='+', metavar='ARM', help='default: all of arms/sources.yaml')
    options = parser.parse_args()
    sources = yaml.safe_load(SOURCES.read_text(encoding='utf-8'))
    if unknown := set(options.only or ()) - set(sources):
        parser.error(f'not in arms/sources.yaml: {", ".join(sorted(unknown))}; it has: {", ".join(sources)}')
    failed = False
    for name in options.only or sources:
        try:
            print(f'{name}: {make(name, sources[name], options.clones, options.out)}')
        except (CaseError, OSError) as cause:
            failed = True
            print(f'{cause}' if isinstance(cause, CaseError) else f'{name}: {cause}')
    raise SystemExit(2 if failed else 0)


if __name__ == '__main__':
    main()
