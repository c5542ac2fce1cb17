# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent  # colcon build --symlink-install runs a link to this file
PACKAGE = 'robotid_ros'
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()

EXECUTABLES = (
    'excitation',
    'recorder',
    'identification',
    'pose_recorder',
    'floating_recorder',
    'simulated_arm',
    'simulated_tracker',
    'chain',
)

ROS = [
    'ros-rclpy[fastrtps]',
    'ros-action-msgs',
    'ros-sensor-msgs',
    'ros-geometry-msgs',
    'ros-trajectory-msgs',
    'ros-std-msgs',
    'ros-std-srvs',
    'ros-diagnostic-msgs',
    'ros-builtin-interfaces',
    'ros-rcl-interfaces',
    'ros-rosgraph-msgs',
    'ros-visualization-msgs',
    'ros-ament-index-python',
]
BAG = ['rosbags>=0.11,<0.12']  # what is used of its writer's storage is no public interface
CSV = ['pyarrow>=14,<27']
PLOT = ['plotly>=6.0,<8', 'trimesh>=4.0,<6']
WEB = [*PLOT, 'tornado>=6.1,<7']
SIM = ['mujoco>=3.2,<5']
FLEET = ['distributed>=2024.1']  # versioned by date, without a major number to stop at
USD = ['usd-core>=25.5; python_version >= "3.11" and python_version < "3.15"']
TEST = ['pytest>=7,<9', 'pytest-xdist>=3.8', 'hypothesis>=6.80', 'pin>=2.7', 'mcap>=1.6,<2', *USD]
DOCS = ['sphinx>=8', 'furo', 'myst-parser>=4', 'numpydoc>=1.8', 'latex2mathml>=3.77', 'pillow>=10']
LINT = ['ruff', 'mypy', 'types-PyYAML']
COVERAGE = ['coverage>=7.10']


def files(folder: str, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob(pattern) if path.is_file())


setup(
    name=PACKAGE,
    version='0.1.0',  # in words: catkin_prepare_release writes it here and into package.xml
    description=MANIFEST.findtext('description'),
    long_description=(ROOT / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license=MANIFEST.findtext('license'),
    maintainer=MANIFEST.findtext('maintainer'),
    maintainer_email=MANIFEST.find('maintainer').get('email'),
    classifiers=[
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Topic :: Scientific/Engineering',
        'Typing :: Typed',
    ],
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={
        PACKAGE: [
            'py.typed',
            'robots/*.urdf',
            'robots/*.yaml',
            'report/templates/*',
            'export/templates/*',
            'dynamics/*.c',
            'dynamics/codegen/*.h',
        ]
    },
    python_requires='>=3.10',
    install_requires=['numpy>=1.21,<3', 'scipy>=1.8,<2', 'PyYAML>=6.0,<7', 'joblib>=1.3,<2'],
    extras_require={
        'ros': [*ROS, *BAG],  # the recorder writes bags
        'bag': BAG,
        'csv': CSV,
        'plot': PLOT,
        'web': WEB,
        'sim': SIM,
        'fleet': FLEET,
        'test': TEST,
        'docs': DOCS,
        'lint': LINT,
        'coverage': COVERAGE,
        'all': [*ROS, *BAG, *CSV, *WEB, *SIM],
    },
    entry_points={'console_scripts': ['robotid = robotid_ros.__main__:main']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (f'share/{PACKAGE}', ['package.xml']),
        (f'share/{PACKAGE}/launch', files('launch', '*.launch.py')),
        (
            f'share/{PACKAGE}/config',
            [name for kind in ('yaml', 'rviz', 'sdf', 'xml', 'json') for name in files('config', f'*.{kind}')],
        ),
        (f'lib/{PACKAGE}', [f'resource/executables/{name}' for name in EXECUTABLES]),
        ('bin', ['resource/executables/robotid']),  # colcon puts bin, not lib/robotid_ros, on the PATH
    ],
    zip_safe=False,
)
