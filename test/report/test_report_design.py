# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a design: what it says of its limits, the arm it draws, and the browser that shows it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_helpers import UR10E, Chromium, find_chromium, small_design

from robotid_ros.excitation import FourierTrajectory
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.model import RobotModel
from robotid_ros.model.kinematics import link_transforms, tip_transforms

trimesh = pytest.importorskip('trimesh', reason='the plot extra is not installed')
pytest.importorskip('plotly', reason='the plot extra is not installed')

from robotid_ros.report.content import Report  # noqa: E402
from robotid_ros.report.design import (  # noqa: E402
    DrawnMotion,
    arm_bodies,
    design_page,
    design_report,
    write_design_page,
)

MOMENTS = (0.0, 2.0, 7.0)


@pytest.fixture(scope='module')
def arm() -> RobotModel:
    return RobotModel.from_urdf(UR10E)


def _report(arm: RobotModel, design: ExcitationDesign) -> Report:
    return design_report(DrawnMotion(arm, design))


def test_a_calm_motion_is_green(arm: RobotModel) -> None:
    verdict = _report(arm, small_design(arm)).verdict
    assert verdict is not None
    assert (verdict.level, verdict.headline) == ('good', 'Good')


def test_a_badly_conditioned_motion_is_red(arm: RobotModel) -> None:
    assert _report(arm, small_design(arm, condition=120.0)).verdict.level == 'caution'
    verdict = _report(arm, small_design(arm, condition=260.0)).verdict
    assert verdict.level == 'bad'
    assert 'column-scaled condition number is 260' in verdict.reasons[0]


def test_violent_and_low_motions_are_red(arm: RobotModel) -> None:
    design = small_design(arm)
    violent = replace(design.trajectory, a=40.0 * design.trajectory.a, base_frequency=2.0)
    limits = replace(design.limits, velocity=np.full(6, np.inf), acceleration=np.full(6, np.inf))
    verdict = _report(arm, replace(design, trajectory=violent, limits=limits)).verdict
    fastest = np.abs(violent.evaluate(violent.sample_times(1000.0))[2]).max()
    assert verdict.level == 'bad'
    assert any(f'up to {fastest:.3g} rad/s²' in reason for reason in verdict.reasons)
    assert any('no acceleration limit' in reason for reason in verdict.reasons)
    low = replace(design.trajectory, offset=np.array([0.0, 0.7, 0.0, 0.0, 0.0, 0.0]))
    verdict = _report(arm, replace(design, trajectory=low)).verdict
    assert any('below its base' in reason for reason in verdict.reasons)
    deepest = -tip_transforms(arm, low.position(low.sample_times(100.0)))[:, 2, 3].min()
    found = float(next(reason for reason in verdict.reasons if 'below' in reason).split(' m below')[0].split()[-1])
    assert deepest - 0.02 <= found <= deepest + 0.15  # the wrist is as thick as that


def test_the_closest_approach_is_that_of_a_cosine(arm: RobotModel) -> None:
    """A joint that moves as A cos(wt) is fastest at a quarter of the period, with A w."""
    design = small_design(arm)
    a = np.zeros((6, 1))
    a[1, 0] = 0.5
    moving = FourierTrajectory(a=a, b=np.zeros((6, 1)), offset=design.trajectory.offset, base_frequency=0.1)
    position = moving.position(np.linspace(0.0, 10.0, 2001))[:, 1]
    velocity = np.gradient(position, 0.005)
    report = _report(arm, replace(design, trajectory=moving))
    table = report.sections[0][1][0]
    cells = dict(zip([name for name, _, _ in table.columns], table.rows[1], strict=True))
    share = 100.0 * np.abs(velocity).max() / design.limits.velocity[1]
    assert cells['Velocity'].startswith(f'{share:.1f} %')
    assert float(cells['Velocity'].split(' at ')[1].split()[0]) % 5.0 == pytest.approx(
        0.005 * np.abs(velocity).argmax() % 5.0, abs=0.1
    )
    broken = replace(design.limits, velocity=np.full(6, 0.9 * np.abs(velocity).max()))
    verdict = _report(arm, replace(design, trajectory=moving, limits=broken)).verdict
    assert any('velocity of shoulder_lift_joint breaks its limit: 111.1 %' in reason for reason in verdict.reasons)


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_meshes_are_found_beside_the_urdf_and_capsules_stand_for_the_others(tmp_path: Path) -> None:
    (tmp_path / 'my_arm' / 'meshes').mkdir(parents=True)
    (tmp_path / 'my_arm' / 'urdf').mkdir()
    box = trimesh.creation.box(extents=[100.0, 200.0, 300.0])  # in millimetres
    box.export(tmp_path / 'my_arm' / 'meshes' / 'box.stl')
    dense = trimesh.creation.icosphere(subdivisions=5, radius=0.2)
    dense.export(tmp_path / 'my_arm' / 'meshes' / 'dense.stl')
    origin = '<origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>'
    link = '<link name="{0}"><visual>' + origin + '<geometry>{1}</geometry></visual></link>'
    joint = (
        '<joint name="j{0}" type="revolute"><parent link="l{0}"/><child link="l{1}"/><origin xyz="0.5 0 0"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
    )
    mesh = '<mesh filename="package://my_arm/meshes/{}"/>'
    urdf = (
        '<robot name="r"><link name="l0"/>'
        + link.format('l1', mesh.format('box.stl').replace('/>', ' scale="0.001 0.001 0.001"/>'))
        + link.format('l2', mesh.format('dense.stl'))
        + link.format('l3', mesh.format('absent.dae'))
        + ''.join(joint.format(k, k + 1) for k in range(3))
        + '<link name="tool"/><joint name="end" type="fixed"><parent link="l3"/><child link="tool"/>'
        '<origin xyz="0.3 0 0"/></joint></robot>'
    )
    path = tmp_path / 'my_arm' / 'urdf' / 'arm.urdf'
    path.write_text(urdf)
    model = RobotModel.from_urdf(path, tip='tool')
    bodies, notes = arm_bodies(model, path.parent)
    found = {name: vertices for name, _, vertices, _ in bodies}
    np.testing.assert_allclose(np.ptp(found['l1'], axis=0), [0.2, 0.1, 0.3], atol=1e-9)  # turned about z
    np.testing.assert_allclose(found['l1'].mean(axis=0), [0.0, 0.0, 1.0], atol=1e-9)
    assert 500 < next(len(faces) for name, _, _, faces in bodies if name == 'l2') <= 3000 < len(dense.faces)
    radius = np.linalg.norm(found['l2'] - [0.0, 0.0, 1.0], axis=1)
    assert 0.18 < radius.min() <= radius.max() < 0.21
    assert any('absent.dae was not found' in note for note in notes)
    capsule = found['l3']
    assert capsule[:, 0].max() > 0.3
    assert np.abs(capsule[:, 1]).max() == pytest.approx(0.05 * 1.8, rel=0.05)  # of an arm of 1.8 m
    assert {link for _, link, _, _ in bodies} >= {0, 1, 2}


@pytest.fixture(scope='module')
def opened(arm: RobotModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chromium, ExcitationDesign]]:
    design = small_design(arm, size=0.4, ground=True, workspace_frames=('tip',), workspace_lower=(-1.5, -1.5, 0.0))
    path = tmp_path_factory.mktemp('design') / 'excitation.html'
    write_design_page(arm, design, path, folder=UR10E.parent)
    assert path.stat().st_size < 3_500_000
    browser = Chromium(find_chromium())
    try:
        browser.open(path, 1000)
        browser.evaluate('robotid.ready.then(() => robotid.shown).then(() => { robotid.all(); return 1; })')
        yield browser, design
    finally:
        browser.close()


def test_the_browser_moves_the_arm_as_its_kinematics_say(
    arm: RobotModel, opened: tuple[Chromium, ExcitationDesign]
) -> None:
    browser, design = opened
    bodies, _ = arm_bodies(arm, UR10E.parent)
    pictures = []
    for moment in MOMENTS:
        browser.evaluate(f'robotid.seek({moment}).then(() => 1)')
        frame = int(browser.evaluate('Number(document.getElementById("time").value)'))
        time = design.trajectory.period * frame / int(browser.evaluate('Number(document.getElementById("time").max)'))
        assert time == pytest.approx(moment, abs=0.05)
        poses = link_transforms(arm, design.trajectory.position(np.array([time])))[0]
        for k, (_, link, vertices, _) in enumerate(bodies):
            pose = np.eye(4) if link < 0 else poses[link]
            expected = vertices[0] @ pose[:3, :3].T + pose[:3, 3]
            shown = browser.evaluate(f"'xyz'.split('').map(c => document.getElementById('scene').data[{k}][c][0])")
            np.testing.assert_allclose(shown, expected, atol=1e-5)
        tool = browser.evaluate(
            "(() => { const t = document.getElementById('scene').data.find(t => t.name === 'tool');"
            " return 'xyz'.split('').map(c => t[c][0]); })()"
        )
        np.testing.assert_allclose(tool, (poses[-1] @ arm.tip)[:3, 3], atol=1e-5)
        pictures.append(
            browser.evaluate(
                "Plotly.toImage('scene', {format: 'png', width: 300, height: 200}).then(url => new Promise(done => {"
                " const i = new Image(); i.onload = () => { const c = document.createElement('canvas'); c.width = 300;"
                " c.height = 200; const g = c.getContext('2d', {willReadFrequently: true}); g.drawImage(i, 0, 0);"
                ' const d = g.getImageData(0, 0, 300, 200).data; const r = []; for (let k = 0; k < d.length; k += 4)'
                ' r.push(d[k] + d[k + 1] + d[k + 2]); done(r); }; i.src = url; }))'
            )
        )
    seen = np.array(pictures)
    assert (seen < 600).mean() > 0.01  # something stands there
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert (np.abs(seen[first] - seen[second]) > 60).sum() > 50  # and moves


def test_slider_and_charts_show_one_moment(opened: tuple[Chromium, ExcitationDesign]) -> None:
    browser, design = opened
    browser.evaluate('robotid.seek(5).then(() => 1)')
    places = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(c => { const x = c._fullLayout.xaxis; return [parseFloat("
        "c.querySelector('.cursor').style.left) - x._offset, x._length, x.range[0], x.range[1]]; })"
    )
    assert len(places) == len(design.joint_names)
    for at, length, low, high in places:
        assert low + at / length * (high - low) == pytest.approx(5.0, abs=0.05)
    assert browser.evaluate("document.getElementById('clock').textContent") == '5.0 s'


def test_the_browser_has_nothing_to_complain_about(opened: tuple[Chromium, ExcitationDesign]) -> None:
    browser, _ = opened
    assert browser.errors() == []
    assert [address for address in browser.requests() if not address.startswith(('file:', 'data:', 'blob:'))] == []
    names = browser.evaluate("document.getElementById('scene').data.map(t => t.name)")
    assert {'ground', 'path of the tool', 'wall x ≥ -1.5 m', 'wall z ≥ 0 m'} <= set(names)


def test_on_paper_stills_stand_for_the_moving_picture(opened: tuple[Chromium, ExcitationDesign]) -> None:
    browser, design = opened
    seen = (
        "(() => [getComputedStyle(document.getElementById('scene')).display, "
        "getComputedStyle(document.querySelector('.stills')).display])()"
    )
    assert browser.evaluate(seen) == ['block', 'none']
    browser.call('Emulation.setEmulatedMedia', media='print')
    assert browser.evaluate(seen) == ['none', 'grid']
    pictures = browser.evaluate(
        "[...document.querySelectorAll('.stills svg')].map(s => [...s.querySelectorAll('polygon, polyline')].map(p => "
        '[...p.points].map(q => [q.x, q.y])))'
    )
    labels = browser.evaluate("[...document.querySelectorAll('.stills p')].map(p => p.textContent)")
    browser.call('Emulation.setEmulatedMedia', media='')
    assert labels == [f'{design.trajectory.period * k / 3:.1f} s' for k in range(3)]
    for picture in pictures:
        ends = np.concatenate([np.array(shape) for shape in picture])
        assert ends.min() >= 0.0
        assert ends[:, 0].max() <= 300.0
        assert np.ptp(ends[:, 0]) > 200.0
    first, second, _ = (sorted(map(str, picture)) for picture in pictures)
    assert first != second
    arm = RobotModel.from_urdf(UR10E)
    tips = tip_transforms(arm, design.trajectory.position(np.linspace(0.0, design.trajectory.period, 2001)[::4]))
    x, y = np.array(next(shape for shape in pictures[0] if len(shape) == len(tips))).T
    # Seen from (1, -1.1, 0.55): further right is further along (1.1, 1, 0), and z only raises what is seen.
    along = tips[:, :3, 3] @ [1.1, 1.0, 0.0] / np.hypot(1.1, 1.0)
    scale = np.polyfit(along, x, 1)[0]
    np.testing.assert_allclose(x - x[0], scale * (along - along[0]), atol=0.2)
    towards = np.array([1.0, -1.1, 0.55])
    raised = (tips[:, :3, 3] @ [0.0, 0.0, 1.0]) * np.linalg.norm(towards) - tips[
        :, :3, 3
    ] @ towards * 0.55 / np.linalg.norm(towards)
    raised /= np.hypot(1.0, 1.1)
    np.testing.assert_allclose(y - y[0], -scale * (raised - raised[0]), atol=0.2)


def test_a_table_of_joints_alone_is_drawn_by_capsules() -> None:
    model = RobotModel.from_mdh([(0.0, 0.0, 0.3, 0.0), (1.57, 0.0, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)])
    text = design_page(model, small_design(model))
    assert 'Capsules stand for' in text
