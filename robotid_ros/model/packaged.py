# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The packaged arms, by name."""

from importlib import resources
from pathlib import Path

from robotid_ros.errors import ModelError
from robotid_ros.model.urdf_tree import read_urdf_text


def packaged_folder() -> Path:
    """Return the folder of the packaged arms' URDFs and configurations."""
    return Path(str(resources.files('robotid_ros') / 'robots'))


def packaged_arms() -> tuple[str, ...]:
    """Return the names of the packaged arms."""
    return tuple(sorted(path.stem for path in packaged_folder().glob('*.urdf')))


def arm_file(robot: str | Path) -> Path:
    """Return the file of an arm given as a path, or as the name of a packaged one; refuse what is neither."""
    path = Path(robot).expanduser()
    if path.is_file():
        return path
    name = str(robot).removesuffix('.urdf')
    if name in packaged_arms():
        return packaged_folder() / f'{name}.urdf'
    message = (
        f"robot '{robot}': no such file, and no packaged arm of that name; packaged are: {', '.join(packaged_arms())}"
    )
    raise ModelError(message, name=str(robot), expected=packaged_arms())


def config_file(config: str | Path) -> Path:
    """Return the file of a robot configuration given as a path, or as the name of a packaged arm."""
    path = Path(config).expanduser()
    return packaged_folder() / f'{config}.yaml' if not path.exists() and str(config) in packaged_arms() else path


def arm_description(robot: str | Path) -> str:
    """Return the text of an arm's URDF, given like in :func:`arm_file`; refuse what is not XML."""
    text = read_urdf_text(arm_file(robot)).lstrip('\ufeff')
    if not text.lstrip().startswith('<'):
        raise ModelError(f"'{robot}' is not a URDF: expected XML, which begins with '<', got {text[:20]!r}")
    return text
